package reclaim_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/actions/reclaim"
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

// newStage has nodes of one cpu, each held by a job of queue low.
func newStage(t *testing.T, nodes int, plugins ...framework.Plugin) *harness.Model {
	s := harness.ForActions(t, []framework.ActionFactory{reclaim.Factory()}, append(plugins, harness.Gang{})...)
	s.Set(fixture.Queue("low"), ranking("qa", 1), ranking("qb", 1))
	for i := range nodes {
		node := fmt.Sprintf("n%d", i)
		s.Set(fixture.Node(node, "cpu=1")).Set(job(fmt.Sprintf("low%d", i), "low", fixture.On(node)))
	}
	return s
}

func ranking(name string, priority int32) *schedulingv1beta1.Queue {
	return fixture.Queue(name, func(q *schedulingv1beta1.Queue) { q.Spec.Priority = priority })
}

func job(name, queue string, options ...func(*corev1.Pod)) []runtime.Object {
	return []runtime.Object{fixture.Group(name, queue, 1),
		fixture.Pod(name+"-0", append(options, fixture.In(name), fixture.Annotated(schedulingv1beta1.PreemptableKey, "true"))...)}
}

func TestReclaim(t *testing.T) {
	t.Run("queues take turns, ordered by what they were given", func(t *testing.T) {
		// Both queues hold nothing at first. A queue that got something comes after one that did not.
		s := newStage(t, 3, &harness.Limits{})
		for _, name := range []string{"a1", "a2", "a3"} {
			s.Set(job(name, "qa"))
		}
		s.Set(job("b1", "qb"))
		s.Run(reclaim.Name)
		if diff := cmp.Diff([]string{"low0-0 for a1", "low1-0 for b1", "low2-0 for a2"}, s.Planned); diff != "" {
			t.Errorf("the plans differ (-want +got):\n%s", diff)
		}
		if code := s.Code("a3"); code != verdict.NotEnoughResources {
			t.Errorf("the last waits for %q", code)
		}
	})

	t.Run("a job that fails or is satisfied hides none behind it", func(t *testing.T) {
		s := newStage(t, 1, &harness.Limits{}, satisfied{"a1": true}).Set(job("a1", "qa")).Set(job("a2", "qa", fixture.Asks("cpu=2"))).Set(job("a3", "qa"))
		s.Run(reclaim.Name)
		if diff := cmp.Diff([]string{"low0-0 for a3"}, s.Planned); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a job takes nothing inside its own queue", func(t *testing.T) {
		s := newStage(t, 1).Set(fixture.PriorityClass("high", 100))
		a := job("a", "low")
		a[0].(*schedulingv1beta1.PodGroup).Spec.PriorityClassName = "high"
		s.Set(a).Run(reclaim.Name)
		if len(s.Planned) > 0 {
			t.Errorf("it takes %v", s.Planned)
		}
	})
}
