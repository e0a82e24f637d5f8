package drf

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// running is a job with one pod that runs.
func running(name, asks string) []runtime.Object {
	return []runtime.Object{fixture.Group(name, "q", 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks(asks), fixture.On("n1"))}
}

func TestTheJobWithTheSmallerDominantShareIsServedFirst(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=10 memory=100Gi pods=20"), fixture.Queue("q"))
	jobs := map[string]string{
		"a-tenth-of-the-cpu":         "cpu=1 memory=9Gi",
		"a-fifth-of-the-memory":      "cpu=1 memory=20Gi",
		"a-third-of-the-cpu":         "cpu=3300m memory=1Gi",
		"nearly-as-much":             "cpu=3299m memory=1Gi",
		"one-of-twenty-pods":         "",
		"all-of-what-no-node-offers": "cpu=2500m example.com/ghost=9",
	}
	for name, asks := range jobs {
		w.Set(running(name, asks))
	}
	w.Set(fixture.Group("nothing", "q", 1))
	s := w.Open()
	order := []string{"nothing", "one-of-twenty-pods", "a-tenth-of-the-cpu", "a-fifth-of-the-memory", "nearly-as-much", "a-third-of-the-cpu",
		"all-of-what-no-node-offers"}
	p := &flat{}
	p.OpenSession(s)
	for i, name := range order {
		for _, later := range order[i+1:] {
			if a, b := w.JobNamed(name), w.JobNamed(later); p.CompareJobs(a, b) >= 0 || p.CompareJobs(b, a) <= 0 {
				t.Errorf("%s should be served before %s", name, later)
			}
		}
	}
}

func TestJobsWithEqualSharesAreLeftToOthersToOrder(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=3 memory=9"), fixture.Queue("q"))
	w.Set(running("a", "cpu=1")).Set(running("b", "memory=3"))
	p := &flat{}
	p.OpenSession(w.Open())
	if p.CompareJobs(w.JobNamed("a"), w.JobNamed("b")) != 0 {
		t.Error("a third of the CPU and a third of the memory differ")
	}
}

func TestTheSharesOfJobsFollowPlacementsAtOnce(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=4"), fixture.Queue("q"), fixture.Group("a", "q", 1), fixture.Group("b", "q", 1),
		fixture.Pod("a-0", fixture.In("a")), fixture.Pod("b-0", fixture.In("b")))
	s := w.Open()
	a, b := w.JobNamed("a"), w.JobNamed("b")
	x := s.Begin()
	x.Place(w.TaskNamed("a-0"), w.Node("n1"))
	if s.CompareJobs(a, b) <= 0 {
		t.Error("the job that has a pod is still first")
	}
	x.Undo()
	if s.CompareJobs(a, b) >= 0 {
		t.Error("the job that has none any more is not first again")
	}
}

func TestTheHierarchyDoesNotGoWithProportion(t *testing.T) {
	catalogue := conf.Catalogue{Actions: map[string]conf.Spec{"allocate": {}},
		Plugins: map[string]conf.Spec{Name: Factory().Spec, "proportion": {}}}
	for _, hierarchy := range []bool{true, false} {
		_, err := conf.Parse(fmt.Appendf(nil, "actions: allocate\ntiers:\n- plugins:\n  - name: drf\n    enableHierarchy: %t\n  - name: proportion\n",
			hierarchy), catalogue)
		if refused := err != nil && strings.Contains(err.Error(), "each by weights of its own"); refused != hierarchy {
			t.Errorf("with enableHierarchy %t: %v", hierarchy, err)
		}
	}
}

func TestQueuesAreOrderedOnlyWithTheHierarchy(t *testing.T) {
	for _, on := range []bool{false, true} {
		plugin, err := Factory().New(conf.Switches{}.With(conf.EnableHierarchy, on), conf.Arguments{})
		if err != nil {
			t.Fatal(err)
		}
		if _, orders := plugin.(framework.QueueOrderer); orders != on {
			t.Errorf("with the hierarchy %t the plugin orders queues: %t", on, orders)
		}
	}
}

func BenchmarkCompareJobs(b *testing.B) {
	w := harness.ForPlugin(b, Factory(), "").Set(fixture.Node("n1", "cpu=64 memory=256Gi nvidia.com/gpu=8"), fixture.Queue("q"))
	w.Set(running("a", "cpu=1 memory=3Gi nvidia.com/gpu=1")).Set(running("b", "cpu=2 memory=1Gi nvidia.com/gpu=1"))
	s := w.Open()
	x, y := w.JobNamed("a"), w.JobNamed("b")
	b.ReportAllocs()
	for b.Loop() {
		if s.CompareJobs(x, y) == 0 {
			b.Fatal("the jobs are equal")
		}
	}
}
