package plans

import (
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// scripted is an outlook in which a pod fits depending on the pods that have nodes before it. It records the questions:
// "ab" asks for pod b after pod a.
type scripted struct {
	framework.Outlook
	job   *cluster.Job
	fits  func(before, pod string) bool
	asked []string
}

func (o *scripted) Fits(t *cluster.Task, _ *cluster.Node) bool {
	before := ""
	for _, other := range o.job.Tasks() {
		if other.Status == cluster.Pipelined {
			before += other.Pod.Name
		}
	}
	o.asked = append(o.asked, before+t.Pod.Name)
	return o.fits(before, t.Pod.Name)
}

func TestTheGivenOrderIsAskedAboutOnce(t *testing.T) {
	for name, test := range map[string]struct {
		fits  func(before, pod string) bool
		order string // "" if there is none
		asked string
	}{
		"it fits": {func(string, string) bool { return true }, "abc", "a ab abc"},
		"the first pod fits behind the second": {func(before, pod string) bool { return pod != "a" || before != "" },
			"bac", "a b ba abc"},
		"the second fits last only": {func(before, pod string) bool { return pod != "b" || before == "ac" }, "acb", "a ab b ac acb"},
		"the last fits nowhere":     {func(_, pod string) bool { return pod != "c" }, "", "a ab abc c ac b ba abc bc c"},
	} {
		t.Run(name, func(t *testing.T) {
			m := harness.ForPlugins(t).Placing().Set(fixture.Queue("default"), fixture.Node("n", "cpu=8"), fixture.Group("g", "default", 3))
			for i, pod := range []string{"a", "b", "c"} {
				m.Set(fixture.Pod(pod, fixture.In("g"), fixture.Asks("cpu="+string(rune('1'+i)))))
			}
			s := m.Open()
			j := m.JobNamed("g")
			outlook := &scripted{Outlook: m.Outlook, job: j, fits: test.fits}
			s.Outlook = outlook
			var promises []Promise
			for _, pod := range j.Pending(cluster.CompareTasks) {
				promises = append(promises, Promise{Task: pod, Node: m.Node("n")})
			}
			x := s.Begin()
			order, ok := inOrder(s, x, promises)
			got := ""
			for _, pod := range order {
				got += pod.Pod.Name
			}
			if got != test.order || ok != (test.order != "") {
				t.Errorf("the order is %q (%t), want %q", got, ok, test.order)
			}
			if asked := strings.Join(outlook.asked, " "); asked != test.asked {
				t.Errorf("asked is %q, want %q", asked, test.asked)
			}
			x.Undo()
		})
	}
}

// scriptedPlacer is a placement engine in which a pod fits depending on the pods that are placed before it.
type scriptedPlacer struct {
	framework.Placer
	job  *cluster.Job
	fits func(before, pod string) bool
}

func (p *scriptedPlacer) Fits(t *cluster.Task, _ *cluster.Node) bool {
	before := ""
	for _, other := range p.job.Tasks() {
		if other.Status == cluster.Allocated {
			before += other.Pod.Name
		}
	}
	return p.fits(before, t.Pod.Name)
}

func TestPromisedPodsArePlacedInAnyOrderInWhichTheyFit(t *testing.T) {
	for name, test := range map[string]struct {
		fits func(before, pod string) bool
		want string // those that are placed
	}{
		"all as they come":                      {func(string, string) bool { return true }, "abc"},
		"the first fits behind the second":      {func(before, pod string) bool { return pod != "a" || before != "" }, "bca"},
		"each fits behind the one that follows": {func(before, pod string) bool { return pod == "c" || strings.Contains(before, string(pod[0]+1)) }, "cba"},
		"one fits nowhere":                      {func(_, pod string) bool { return pod != "b" }, "ac"},
	} {
		t.Run(name, func(t *testing.T) {
			m := harness.ForPlugins(t).Placing().Set(fixture.Queue("default"), fixture.Node("n", "cpu=8"), fixture.Group("g", "default", 3))
			for _, pod := range []string{"a", "b", "c"} {
				m.Set(fixture.Pod(pod, fixture.In("g"), fixture.Asks("cpu=1"), fixture.Spreading("zone", "x")))
			}
			s := m.Open()
			j := m.JobNamed("g")
			s.Outlook = &scripted{Outlook: m.Outlook, job: j, fits: func(string, string) bool { return true }}
			s.Placer = &scriptedPlacer{Placer: s.Placer, job: j, fits: test.fits}
			x := s.Begin()
			promised := j.Pending(cluster.CompareTasks)
			for _, pod := range promised {
				x.Pipeline(pod, m.Node("n"))
			}
			got := ""
			for _, placed := range placeInOrder(s, x, &cluster.Plan{Job: j}, promised, nil) {
				got += placed.Pod.Name
			}
			if got != test.want {
				t.Errorf("placed are %q, want %q", got, test.want)
			}
		})
	}
}
