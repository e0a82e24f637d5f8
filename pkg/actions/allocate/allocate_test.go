package allocate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/actions/allocate"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func newStage(t *testing.T, l *harness.Limits) *harness.Model {
	return harness.ForActions(t, []framework.ActionFactory{allocate.Factory()}, harness.Gang{}, l)
}

func expect(t *testing.T, got []string, want string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Errorf("what is bound differs (-want +got):\n%s", diff)
	}
}

func TestMinimumOfAJob(t *testing.T) {
	t.Run("of a job below its minimum nothing is bound", func(t *testing.T) {
		s := newStage(t, &harness.Limits{Pods: map[string]int{"default": 2}}).Set(fixture.Node("n0", "cpu=9")).Gang("g", "default", 3, 3, "cpu=1")
		expect(t, s.Run(allocate.Name), "")
		want := &verdict.Verdict{Code: verdict.OverCapability, Subject: "default", Help: verdict.HelpQueue, Placed: 2, Wanted: 3}
		if diff := cmp.Diff(want, s.Verdict("g")); diff != "" {
			t.Errorf("the verdict differs (-want +got):\n%s", diff)
		}
	})

	t.Run("a gang takes its minimum at once and the rest pod by pod", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9"), fixture.Queue("other")).
			Gang("a", "default", 2, 4, "cpu=1").Gang("b", "other", 1, 3, "cpu=1")
		// The queue that holds less is always next: first a's minimum of two, then both queues in turn.
		expect(t, s.Run(allocate.Name), "a-0 a-1 b-0 b-1 a-2 b-2 a-3")
	})

	t.Run("the minimum counts what runs already", func(t *testing.T) {
		s := newStage(t, &harness.Limits{Pods: map[string]int{"default": 3}}).Set(fixture.Node("n0", "cpu=9")).Gang("g", "default", 3, 3, "cpu=1")
		for _, name := range []string{"g-0", "g-2"} {
			s.Set(fixture.Pod(name, fixture.In("g"), fixture.As("worker", 0), fixture.On("n0")))
		}
		expect(t, s.Run(allocate.Name), "g-1")
	})

	t.Run("best effort pods beyond the minimum are left to backfill", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9"), fixture.Group("g", "default", 2))
		for i, asks := range []string{"", "", "", "cpu=1"} {
			s.Set(fixture.Pod([]string{"p0", "p1", "p2", "p3"}[i], fixture.In("g"), fixture.As("worker", i), fixture.Asks(asks)))
		}
		expect(t, s.Run(allocate.Name), "p0 p1 p3")
	})
}

func TestJobsThatCannotBePlaced(t *testing.T) {
	t.Run("a job that cannot be placed hides none behind it", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=2")).
			Gang("a", "default", 3, 3, "cpu=1").Gang("b", "default", 1, 1, "cpu=7").Gang("c", "default", 2, 2, "cpu=1")
		expect(t, s.Run(allocate.Name), "c-0 c-1")
		if s.Code("a") != verdict.NotEnoughResources || s.Code("b") != verdict.NotEnoughResources || s.Code("c") != "" {
			t.Errorf("the verdicts are %s, %s and %s", s.Code("a"), s.Code("b"), s.Code("c"))
		}
	})

	t.Run("every job of a queue that has enough is told so", func(t *testing.T) {
		s := newStage(t, &harness.Limits{Overuses: map[string]int{"default": 2}}).Set(fixture.Node("n0", "cpu=9"), fixture.Queue("other")).
			Gang("a", "default", 2, 2, "cpu=1").Gang("b", "default", 1, 1, "cpu=1").Gang("c", "default", 1, 1, "cpu=1").Gang("d", "other", 1, 1, "cpu=1")
		expect(t, s.Run(allocate.Name), "a-0 a-1 d-0")
		if s.Code("b") != verdict.OverShare || s.Code("c") != verdict.OverShare {
			t.Errorf("the verdicts are %s and %s", s.Code("b"), s.Code("c"))
		}
	})

	t.Run("in a strict queue a job that waits holds up later ones", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=4"), fixture.Queue("line", inOrder), fixture.Queue("other")).
			Gang("a", "line", 1, 2, "cpu=1").Gang("b", "line", 3, 3, "cpu=1").Gang("c", "line", 1, 1, "cpu=1").Gang("d", "other", 1, 1, "cpu=1")
		expect(t, s.Run(allocate.Name), "a-0 d-0 a-1")
		if v := s.Verdict("c"); v == nil || v.Sentence() != "job work/b comes first; queue line has the dequeueStrategy fifo" {
			t.Errorf("c waits because of %v", v)
		}
		s.Set(fixture.Node("n0", "cpu=9"))
		expect(t, s.Run(allocate.Name), "b-0 b-1 b-2 c-0")
	})

	t.Run("a job whose pods do not exist yet holds up no other", func(t *testing.T) {
		s := harness.ForActions(t, []framework.ActionFactory{allocate.Factory()}, harness.Gang{}, &harness.Limits{}, incomplete{}).
			Set(fixture.Node("n0", "cpu=3"), fixture.Queue("line", inOrder)).Gang("a", "line", 2, 1, "cpu=1").Gang("b", "line", 1, 1, "cpu=1")
		expect(t, s.Run(allocate.Name), "b-0")
	})
}

func TestPodsOfAJob(t *testing.T) {
	t.Run("a pod that does not fit is passed over", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=3"), fixture.Group("g", "default", 1))
		for i, asks := range []string{"cpu=1", "cpu=9", "cpu=8", "cpu=1"} {
			s.Set(fixture.Pod([]string{"p0", "p1", "p2", "p3"}[i], fixture.In("g"), fixture.As("worker", i), fixture.Asks(asks)))
		}
		expect(t, s.Run(allocate.Name), "p0 p3")
		if v := s.Verdict("g"); v != nil {
			t.Errorf("of a job that has all that fits it is said: %s", v.Sentence())
		}
		expect(t, s.Run(allocate.Name), "")
		if v := s.Verdict("g"); v == nil || v.Code != verdict.NotEnoughResources {
			t.Errorf("the verdict is %+v", v)
		}
	})

	// Two pods wait for different reasons. A change that helps either must be noticed, whichever is tried first.
	t.Run("what helps any of the pods is remembered", func(t *testing.T) {
		for _, minimum := range []int32{0, 1, 2} {
			for _, first := range []int{0, 1} {
				s := harness.ForActions(t, []framework.ActionFactory{allocate.Factory()}, harness.Gang{}, noCPU{}).Set(fixture.Node("n0", "cpu=9"),
					fixture.Group("g", "default", minimum),
					fixture.Pod("cpu", fixture.In("g"), fixture.As("worker", first), fixture.Asks("cpu=1")),
					fixture.Pod("device", fixture.In("g"), fixture.As("worker", 1-first), fixture.Asks("nvidia.com/gpu=1")))
				expect(t, s.Run(allocate.Name), "")
				if v := s.Verdict("g"); v == nil || v.Code != verdict.OverCapability || v.Help != verdict.HelpQueue|verdict.HelpNode {
					t.Errorf("with a minimum of %d the verdict is %+v", minimum, v)
				}
			}
		}
	})

	t.Run("of a job that is placed nothing is said", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Gang("g", "default", 1, 1, "cpu=1")
		expect(t, s.Run(allocate.Name), "")
		s.Set(fixture.Node("n0", "cpu=9"))
		expect(t, s.Run(allocate.Name), "g-0")
		if v := s.Verdict("g"); v != nil {
			t.Errorf("the verdict is still %s", v.Sentence())
		}
	})

	t.Run("gated and leaving pods are not placed", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9"), fixture.Group("g", "default", 1))
		s.Set(fixture.Pod("gated", fixture.In("g"), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}} }),
			fixture.Pod("leaving", fixture.In("g"), func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }),
			fixture.Pod("plain", fixture.In("g")))
		expect(t, s.Run(allocate.Name), "plain")
		if status := s.Task(fixture.Key("gated")).Status; status != cluster.Gated {
			t.Errorf("the gated pod is %s", status)
		}
	})
}

// noCPU refuses every task that requests CPU.
type noCPU struct{}

func (noCPU) Name() string { return "no-cpu" }

func (noCPU) MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	if t.Request().At(resources.CPU) == 0 {
		return nil
	}
	return &verdict.Verdict{Code: verdict.OverCapability, Subject: q.Name, Help: verdict.HelpQueue}
}

func TestWithoutEnqueueJobsAreAdmitted(t *testing.T) {
	s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9"), fixture.Group("g", "default", 1, fixture.PendingAdmission),
		fixture.Pod("p", fixture.In("g")))
	expect(t, s.Run(allocate.Name), "p")
}

func inOrder(q *schedulingv1beta1.Queue) {
	q.Spec.DequeueStrategy = schedulingv1beta1.DequeueStrategyFIFO
}

// incomplete refuses jobs that have fewer pods than they need.
type incomplete struct{}

func (incomplete) Name() string { return "incomplete" }

func (incomplete) ValidateJob(j *cluster.Job) *verdict.Verdict {
	if len(j.Tasks()) < int(j.MinMember) {
		return &verdict.Verdict{Code: verdict.NotEnoughTasks, Help: verdict.HelpJob}
	}
	return nil
}
