package priority_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/plugins/priority"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func gated(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }

func TestAPodLeavesForWhatRanksAboveIt(t *testing.T) {
	const lowerJob, lowerTask = "rule J1 (the priority of their job is not lower)", "rule P1 (their task priority is not lower)"
	ranked := func(value string) func(*corev1.Pod) {
		return fixture.Annotated(schedulingv1beta1.TaskPriorityAnnotationKey, value)
	}
	w := harness.ForPlugin(t, priority.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n", "cpu=9"),
		fixture.PriorityClass("high", 10), fixture.PriorityClass("low", -10),
		fixture.Group("low", "default", 1, classed("low")), fixture.Group("mid", "default", 1), fixture.Group("high", "default", 1, classed("high")),
		fixture.Pod("of-low", fixture.In("low"), fixture.On("n"), ranked("99")),
		fixture.Pod("mid-1", fixture.In("mid"), fixture.On("n"), ranked("1")), fixture.Pod("mid-2", fixture.In("mid"), fixture.On("n"), ranked("2")),
		fixture.Pod("mid-waits", fixture.In("mid"), ranked("2")),
		fixture.Pod("of-high", fixture.In("high"), ranked("-99")))
	s := w.Open()
	for name, test := range map[string]struct {
		question harness.Question
		want     string
	}{
		"of a lower job, whatever their tasks rank":      {harness.Question{Preemptor: "high", For: "of-high", Victims: "of-low"}, "yes"},
		"of a job that is lower by less":                 {harness.Question{Preemptor: "high", For: "of-high", Victims: "mid-1 mid-2"}, "yes"},
		"for a job pending admission":                    {harness.Question{Preemptor: "high", Victims: "of-low"}, "yes"},
		"of a higher job":                                {harness.Question{Preemptor: "low", Victims: "mid-1"}, lowerJob},
		"of the same job, lower":                         {harness.Question{Preemptor: "mid", For: "mid-waits", Victims: "mid-1"}, "yes"},
		"of the same job, equal":                         {harness.Question{Preemptor: "mid", For: "mid-waits", Victims: "mid-2"}, lowerTask},
		"of the same job, one lower and one equal":       {harness.Question{Preemptor: "mid", For: "mid-waits", Victims: "mid-1 mid-2"}, lowerTask},
		"of the same job, while it is pending admission": {harness.Question{Preemptor: "mid", Victims: "mid-1"}, lowerTask},
		"for another queue, where it has no say":         {harness.Question{Reclaim: true, Preemptor: "low", Victims: "mid-1"}, ""},
	} {
		test.question.Session = s
		if got := w.Vote(test.question); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestEqualPriorityEvictsNothing(t *testing.T) {
	w := harness.ForPlugin(t, priority.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n", "cpu=9"),
		fixture.Group("a", "default", 1), fixture.Group("b", "default", 1),
		fixture.Pod("of-a", fixture.In("a"), fixture.On("n")), fixture.Pod("of-b", fixture.In("b"), fixture.WithPriority(9)),
		fixture.Pod("low-of-b", fixture.In("b"))) // A job without a class has the lowest priority of its pods.
	if got := w.Vote(harness.Question{Session: w.Open(), Preemptor: "b", For: "of-b", Victims: "of-a"}); got == "yes" {
		t.Error("a pod leaves for a job of the priority of its own")
	}
}

func TestAJobLacksSomethingWhileOneOfItsPodsWaits(t *testing.T) {
	w := harness.ForPlugin(t, priority.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n", "cpu=9"),
		fixture.Group("g", "default", 1), fixture.Group("pending", "default", 1, fixture.PendingAdmission), fixture.Group("runs", "default", 1),
		fixture.Pod("r", fixture.In("runs"), fixture.On("n")),
		fixture.Pod("a", fixture.In("g"), fixture.On("n")), fixture.Pod("b", fixture.In("g")), fixture.Pod("c", fixture.In("g"), gated))
	s := w.Open()
	if !s.IsStarving(w.JobNamed("g")) || !s.IsStarving(w.JobNamed("pending")) || s.IsStarving(w.JobNamed("runs")) {
		t.Error("a job with a waiting pod, one pending admission, and one that has all: not the first two alone are starving")
	}
	x := s.Begin()
	w.Nominate(x, "b", "n")
	if s.IsStarving(w.JobNamed("g")) {
		t.Error("it is starving though its only pod without gates has the promise of a node")
	}
	x.Undo()
}
