package gang_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/plugins/gang"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// member is a pod of the gang g; what it is follows from its name: "worker" or "worker running" and so on.
func members(words ...[2]string) []runtime.Object {
	var objects []runtime.Object
	for i, word := range words {
		p := fixture.Pod(fmt.Sprintf("p%d", i), fixture.In("g"), fixture.As(word[0], i))
		switch word[1] {
		case "running":
			fixture.On("n0")(p)
		case "succeeded":
			p.Status.Phase = corev1.PodSucceeded
		case "failed":
			p.Status.Phase = corev1.PodFailed
		case "gated":
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
		case "leaving":
			fixture.On("n0")(p)
			p.DeletionTimestamp = &p.CreationTimestamp
		}
		objects = append(objects, p)
	}
	return objects
}

func of(role, state string) [2]string { return [2]string{role, state} }

func TestAJobOfWhichTooFewPodsExistIsRefused(t *testing.T) {
	wait, run := of("worker", "pending"), of("worker", "running")
	type groupOption = func(*schedulingv1beta1.PodGroup)
	for name, test := range map[string]struct {
		minimum int32
		options []groupOption
		members [][2]string
		want    *verdict.Verdict
	}{
		"enough":               {2, nil, [][2]string{wait, wait}, nil},
		"nothing needed":       {0, nil, [][2]string{wait}, nil},
		"one is missing":       {3, nil, [][2]string{wait, wait}, lacks(2, 3)},
		"one runs":             {2, nil, [][2]string{wait, run}, nil},
		"one has succeeded":    {2, nil, [][2]string{wait, of("worker", "succeeded")}, nil},
		"one has failed":       {2, nil, [][2]string{wait, of("worker", "failed")}, lacks(1, 2)},
		"one is being deleted": {2, nil, [][2]string{wait, of("worker", "leaving")}, lacks(1, 2)},
		"one is gated": {2, nil, [][2]string{wait, of("worker", "gated")},
			&verdict.Verdict{Code: verdict.SchedulingGated, Help: verdict.HelpJob, Placed: 1, Wanted: 2}},
		"one is gated and one is missing":     {3, nil, [][2]string{wait, of("worker", "gated")}, lacks(1, 3)},
		"before admission no pods are needed": {3, []groupOption{fixture.PendingAdmission}, [][2]string{wait}, nil},
		"a role is missing": {2, []groupOption{fixture.NeedingOf("master", 1)}, [][2]string{wait, wait},
			&verdict.Verdict{Code: verdict.NotEnoughPodsOfTask, Subject: "master", Help: verdict.HelpJob, Wanted: 1}},
		"a role has too few": {3, []groupOption{fixture.NeedingOf("master", 1), fixture.NeedingOf("worker", 2)},
			[][2]string{of("master", "pending"), of("master", "pending"), wait},
			&verdict.Verdict{Code: verdict.NotEnoughPodsOfTask, Subject: "worker", Help: verdict.HelpJob, Placed: 1, Wanted: 2}},
		"all roles have enough": {3, []groupOption{fixture.NeedingOf("master", 1), fixture.NeedingOf("worker", 2)},
			[][2]string{of("master", "pending"), wait, wait}, nil},
		// As in Volcano: a job with a smaller minimum than the sum of its roles starts with any pods.
		"the roles add up to more than the minimum": {2, []groupOption{fixture.NeedingOf("master", 1), fixture.NeedingOf("worker", 2)},
			[][2]string{wait, wait}, nil},
		"a role that needs none": {2, []groupOption{fixture.NeedingOf("master", 0)}, [][2]string{wait, wait}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, gang.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n0", "cpu=9"),
				fixture.Group("g", "default", test.minimum, test.options...)).Set(members(test.members...))
			w.Open()
			if diff := cmp.Diff(test.want, w.JobNamed("g").Verdict); diff != "" {
				t.Errorf("the verdict differs (-want +got):\n%s", diff)
			}
		})
	}
}

func lacks(have, need int) *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.NotEnoughTasks, Help: verdict.HelpJob, Placed: have, Wanted: need}
}

func TestAJobIsReadyOnceItsMinimumsArePlaced(t *testing.T) {
	for name, test := range map[string]struct {
		minimum int32
		roles   map[string]int32
		place   []int
		want    bool
	}{
		"nothing is placed":                      {2, nil, nil, false},
		"too few are placed":                     {2, nil, []int{0}, false},
		"as many as must":                        {2, nil, []int{0, 1}, true},
		"more than must":                         {2, nil, []int{0, 1, 2}, true},
		"enough, of the wrong role":              {2, map[string]int32{"master": 1}, []int{1, 2}, false},
		"enough, one of the role":                {2, map[string]int32{"master": 1}, []int{0, 1}, true},
		"roles met, total not":                   {3, map[string]int32{"master": 1}, []int{0, 1}, false},
		"roles that do not bind":                 {1, map[string]int32{"master": 1, "worker": 2}, []int{2}, true},
		"no minimum, and nothing placed":         {0, nil, nil, true},
		"a role that nobody has, when it is due": {3, map[string]int32{"other": 1}, []int{0, 1, 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := fixture.Group("g", "default", test.minimum)
			g.Spec.MinTaskMember = test.roles
			w := harness.ForPlugin(t, gang.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n0", "cpu=9"), g).
				Set(members(of("master", ""), of("worker", ""), of("worker", "")))
			s := w.Open()
			x := s.Begin()
			for _, i := range test.place {
				x.Place(w.TaskNamed(fmt.Sprintf("p%d", i)), w.Node("n0"))
			}
			if got := s.IsReady(w.JobNamed("g")); got != test.want {
				t.Errorf("ready is %t", got)
			}
			x.Undo()
		})
	}
}

func TestABrokenGangComesFirstAndOneThatOnlyGrowsLast(t *testing.T) {
	w := harness.ForPlugin(t, gang.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n0", "cpu=99"))
	add := func(name string, running, waiting int) {
		w.Set(fixture.Group(name, "default", 2))
		for i := range running + waiting {
			p := fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i))
			if i < running {
				fixture.On("n0")(p)
			}
			w.Set(p)
		}
	}
	add("a-grows", 2, 1)
	add("b-waits", 0, 2)
	add("c-broken", 1, 1)
	s := w.Open()
	order := []string{"c-broken", "b-waits", "a-grows"}
	for i, later := range order[1:] {
		if a, b := w.JobNamed(order[i]), w.JobNamed(later); s.CompareJobs(a, b) >= 0 || s.CompareJobs(b, a) <= 0 {
			t.Errorf("%s is not before %s", order[i], later)
		}
	}
}
