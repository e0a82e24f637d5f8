package preempt_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/actions/enqueue"
	"hekla.sh/hekla/pkg/actions/preempt"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// satisfied is a plugin by which these jobs are not starving.
type satisfied map[string]bool

func (satisfied) Name() string                     { return "satisfied" }
func (s satisfied) IsStarving(j *cluster.Job) bool { return !s[j.ID.Name] }

func newStage(t *testing.T, plugins ...framework.Plugin) *harness.Model {
	s := harness.ForActions(t, []framework.ActionFactory{preempt.Factory()}, append(plugins, harness.Gang{})...)
	return s.Set(fixture.PriorityClass("low", 1), fixture.PriorityClass("high", 100))
}

// job is a job with a PriorityClass and one pod of one cpu, on a node or pending.
func job(name, queue, class, node string, options ...func(*corev1.Pod)) []runtime.Object {
	group := fixture.Group(name, queue, 1)
	group.Spec.PriorityClassName = class
	pod := fixture.Pod(name+"-0", append([]func(*corev1.Pod){fixture.In(name), fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")}, options...)...)
	if node != "" {
		fixture.On(node)(pod)
	}
	return []runtime.Object{group, pod}
}

func TestOrderOfPreemptors(t *testing.T) {
	t.Run("queues and their jobs are served in order", func(t *testing.T) {
		for backwards, want := range map[bool][]string{false: {"low-a-0 for a", "low-b-0 for c"}, true: {"low-b-0 for d", "low-a-0 for b"}} {
			s := newStage(t, &harness.Limits{Backwards: backwards}).Set(fixture.Queue("other"), fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1"))
			s.Set(job("low-a", "default", "low", "n1")).Set(job("low-b", "other", "low", "n2"))
			for _, name := range []string{"b", "a"} {
				s.Set(job(name, "default", "high", ""))
			}
			for _, name := range []string{"d", "c"} {
				s.Set(job(name, "other", "high", ""))
			}
			s.Run(preempt.Name)
			if diff := cmp.Diff(want, s.Planned); diff != "" {
				t.Errorf("the plans differ (-want +got):\n%s", diff)
			}
		}
	})

	t.Run("room on its way goes to the queue that has less", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Queue("other"), fixture.Node("n1", "cpu=2"))
		leaves := func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: p.CreationTimestamp.Add(time.Hour)}
		}
		s.Set(job("gone", "default", "low", "n1", leaves)).Set(job("going", "default", "low", "n1", leaves))
		for _, name := range []string{"a", "b"} {
			s.Set(job(name, "default", "low", "")).Set(job("other-"+name, "other", "low", ""))
		}
		s.Run(preempt.Name)
		if diff := cmp.Diff([]string{"for a", "for other-a"}, s.Planned); diff != "" {
			t.Errorf("the plans differ (-want +got):\n%s", diff)
		}
	})
}

func TestWhichJobsPreempt(t *testing.T) {
	t.Run("only starving jobs take room of others", func(t *testing.T) {
		s := newStage(t, satisfied{"a": true}).Set(fixture.Node("n1", "cpu=1")).Set(job("low", "default", "low", "n1")).Set(job("a", "default", "high", ""))
		s.Run(preempt.Name)
		if len(s.Planned) > 0 || s.Verdict("a") != nil {
			t.Errorf("plans %v, verdict %v", s.Planned, s.Verdict("a"))
		}
	})

	t.Run("a job that has enough still ranks its own pods", func(t *testing.T) {
		rank := func(value string) func(*corev1.Pod) {
			return fixture.Annotated(schedulingv1beta1.TaskPriorityAnnotationKey, value)
		}
		s := newStage(t, satisfied{"a": true}).Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1")).Set(job("a", "default", "low", "n1", rank("1")))
		s.Set(fixture.Pod("a-1", fixture.In("a"), fixture.On("n2"), rank("3")), fixture.Pod("a-2", fixture.In("a"), rank("2")))
		s.Run(preempt.Name)
		if diff := cmp.Diff([]string{"a-0 for a"}, s.Planned); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("nothing more is planned for a job with a plan", func(t *testing.T) {
		s := newStage(t).Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1")).Set(job("b", "default", "low", "n1")).Set(job("c", "default", "low", "n2"))
		s.Set(job("a", "default", "high", ""))
		s.Run(preempt.Name, preempt.Name)
		if diff := cmp.Diff([]string{"b-0 for a"}, s.Planned); diff != "" {
			t.Error(diff)
		}
		if s.Run(preempt.Name); len(s.Planned) > 0 || s.Code("a") != verdict.Preempting {
			t.Errorf("then plans %v, and a waits for %s", s.Planned, s.Code("a"))
		}
	})

	t.Run("a job takes nothing from other queues", func(t *testing.T) {
		s := newStage(t).Set(fixture.Queue("other"), fixture.Node("n1", "cpu=1")).Set(job("low", "other", "low", "n1")).Set(job("a", "default", "high", ""))
		if s.Run(preempt.Name); len(s.Planned) > 0 {
			t.Errorf("it takes %v", s.Planned)
		}
	})

	t.Run("a job that finds no room is told", func(t *testing.T) {
		s := newStage(t).Set(fixture.Node("n1", "cpu=1")).Set(job("equal", "default", "high", "n1")).Set(job("a", "default", "high", ""))
		s.Run(preempt.Name)
		want := []verdict.Spared{{Why: verdict.RuleNotLowerJob.Protection(), Pods: 1}}
		if diff := cmp.Diff(want, s.Verdict("a").Spared); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("admission evicts nothing", func(t *testing.T) {
		s := harness.ForActions(t, []framework.ActionFactory{enqueue.Factory(), preempt.Factory()}, harness.Gang{}, crowded{}).Set(fixture.PriorityClass("high", 100), fixture.Node("n1", "cpu=1"))
		group := fixture.Group("a", "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu=1"))
		group.Spec.PriorityClassName = "high"
		s.Set(job("low", "default", "low", "n1")).Set(group).Run(enqueue.Name)
		if len(s.Planned) > 0 || s.Job(cluster.GroupID(fixture.Key("a"))).IsPendingAdmission() || s.Task(fixture.Key("low-0")).Status != cluster.Running {
			t.Errorf("plans %v, pending admission %t, the pod is %s", s.Planned, s.Job(cluster.GroupID(fixture.Key("a"))).IsPendingAdmission(), s.Task(fixture.Key("low-0")).Status)
		}
	})
}

// crowded is a plugin that admits no job while any pod runs.
type crowded struct{}

func (crowded) Name() string { return "crowded" }
func (crowded) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	if !j.Queue.Own.Allocated.IsZero() {
		return framework.Reject, &verdict.Verdict{Code: verdict.OverCommitted}
	}
	return framework.Permit, nil
}
