package edge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// expectRecords compares what is recorded on a pod with what should be, "" if nothing should.
func (s *planning) expectRecords(pod *corev1.Pod, promise, eviction string) {
	s.t.Helper()
	live := s.live(pod)
	if got := live.Annotations[schedulingv1beta1.PromiseRecordKey]; got != promise {
		s.t.Errorf("of the promise to pod %s is recorded %q, want %q", pod.Name, got, promise)
	}
	if got := live.Annotations[schedulingv1beta1.EvictionRecordKey]; got != eviction {
		s.t.Errorf("of the eviction of pod %s is recorded %q, want %q", pod.Name, got, eviction)
	}
}

// The API server takes the annotation and the status in one request, or neither: nothing else is written.
func TestAPlanIsRecordedWithTheStatusItBelongsTo(t *testing.T) {
	s := newPlanning(t)
	preemptor, v := createPod(t, s.admin, s.namespace, "a"), s.running("v")
	s.budget(0)
	plan := s.plan("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v})
	plan.Action, plan.Scope, plan.Since = "preempt", decision.BetweenJobs, s.group.CreationTimestamp.Time
	plan.Evictions[0].Plan = "p"
	s.begin(plan)
	s.settle()
	s.expectMarks("True PreemptionByScheduler: by rule J1 (plan p)", v)
	s.expectRecords(preemptor, plan.PromiseRecord(), "")
	s.expectRecords(v, "", `{"plan":"p","rule":"J1"}`)
	end := s.endOf("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v})
	end.Spared[0].Refused, end.Spared[0].Refusals = "no", 2
	s.end(end)
	s.settle()
	s.expectMarks("False EvictionRefused: no", v)
	s.expectRecords(preemptor, "", "")
	s.expectRecords(v, "", `{"refusals":2}`)
}

func TestAPodThatStaysIsRecordedForNoPlan(t *testing.T) {
	s := newPlanning(t)
	v := s.running("v")
	s.budget(0)
	plan := s.plan("p", nil, []*corev1.Pod{v})
	plan.Evictions[0].Plan = "p"
	s.begin(plan)
	s.settle()
	s.end(s.endOf("p", nil, []*corev1.Pod{v}))
	s.settle()
	s.expectMarks(cancelled, v)
	s.expectRecords(v, "", "")
}
