package simulator

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// Fate is what becomes of an eviction. The zero value is the usual: the pod is told to end, and is gone when its time
// is up.
type Fate struct {
	// Refused is why the API server refuses the eviction for good, a clause; "" if it does not.
	Refused string
	// Late is set if it refuses what it would have done a moment ago, when it was asked.
	Late bool
	// Overdue is how much longer than its time the pod stays, for instance because of a finalizer.
	Overdue time.Duration
}

// Never is how long a pod is overdue that never goes.
const Never = time.Duration(math.MaxInt64)

// What is written in addition to the words of the API.
const (
	preemptionCancelled = "PreemptionCancelled"
	budgetForbids       = "a disruption budget forbids it: "
)

// planWriter carries out plans in the virtual cluster, as the edge does in a real one.
type planWriter struct{ *simulation }

// begin carries out a plan in the order in which a crash could interrupt it: record, nominations, evictions. If it has
// several evictions, the API server is asked about all before the first; it stops at the first that is refused.
func (s planWriter) begin(p *decision.PlanStart) {
	if p.Job != (cluster.JobID{}) {
		s.setGroupStatus(&p.Group, true)
	}
	record := p.PromiseRecord()
	for _, n := range p.Nominations {
		if s.nominate(n, record) {
			s.report.Nominations = append(s.report.Nominations, Nomination{Cycle: s.report.Cycles, Pod: n.Pod.String(), Node: n.Node})
		}
	}
	failed := cache.PlanFailed{Job: p.Job, Plan: p.ID, At: s.now}
	if len(p.Evictions) > 1 && p.Job != (cluster.JobID{}) {
		for i := range p.Evictions {
			e := &p.Evictions[i]
			if pod := s.livePod(e.Pod, e.UID); pod != nil && pod.DeletionTimestamp == nil {
				if refused := s.forbids(e, pod, true); refused != nil {
					failed.Refused = append(failed.Refused, *refused)
				}
			}
		}
	}
	for i := range p.Evictions {
		e := &p.Evictions[i]
		if len(failed.Refused) > 0 {
			break
		} else if refused := s.evict(e); refused != nil {
			failed.Refused = append(failed.Refused, *refused)
		} else {
			failed.Sent++
		}
	}
	if len(failed.Refused) > 0 {
		failed.Reason = failed.Refused[0].Reason
		s.events = append(s.events, failed)
	}
}

// forbids says why the API server refuses to evict a pod, nil if it does not. isAsked says that it is only asked
// whether it would.
func (s planWriter) forbids(e *decision.Eviction, pod *corev1.Pod, isAsked bool) *cache.Refused {
	if s.options.Fate != nil {
		if fate := s.options.Fate(*e); fate.Refused != "" && !(fate.Late && isAsked) {
			return &cache.Refused{Pod: e.Pod, UID: e.UID, Reason: fate.Refused}
		}
	}
	if !e.PastBudget {
		if budget := controllers(s).spend(pod, isAsked); budget != "" {
			return &cache.Refused{Pod: e.Pod, UID: e.UID, Reason: budgetForbids + budget, ByBudget: true}
		}
	}
	return nil
}

// end takes back what was written of a plan that is cancelled.
func (s planWriter) end(p *decision.PlanEnd) {
	for _, n := range p.Nominations {
		s.nominate(n, "")
	}
	for _, spared := range p.Spared {
		if pod := s.livePod(spared.Pod, spared.UID); pod != nil && pod.DeletionTimestamp == nil && s.mayWrite(true) {
			reason, why := preemptionCancelled, p.Why
			if spared.Refused != "" {
				reason, why = decision.EvictionRefused, spared.Refused
			}
			s.markTarget(pod, corev1.ConditionFalse, reason, why, spared.Record())
			s.setPod(pod)
		}
	}
}

// nominate writes on a pod which node it is promised, and the record of that, or that it is promised none. It reports
// whether that was written.
func (s planWriter) nominate(n decision.Nomination, record string) bool {
	pod := s.livePod(n.Pod, n.UID)
	if pod == nil || !s.mayWrite(true) {
		return false
	}
	pod.Status.NominatedNodeName = n.Node
	setRecord(pod, schedulingv1beta1.PromiseRecordKey, record)
	s.setPod(pod)
	return true
}

// evict tells a pod to end. It returns why the API server refuses that for good, nil if it does not. A pod that is gone
// already, or is leaving, needs no eviction.
func (s planWriter) evict(e *decision.Eviction) *cache.Refused {
	pod := s.livePod(e.Pod, e.UID)
	if pod == nil || pod.DeletionTimestamp != nil || !s.mayWrite(true) {
		return nil
	}
	s.markTarget(pod, corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler, e.Message, e.Record())
	if !s.mayWrite(true) {
		s.setPod(pod)
		return nil
	}
	if refused := s.forbids(e, pod, false); refused != nil {
		s.setPod(pod)
		return refused
	}
	var seconds int64
	if s.options.Grace {
		seconds = corev1.DefaultTerminationGracePeriodSeconds
		if given := pod.Spec.TerminationGracePeriodSeconds; given != nil {
			seconds = *given
		}
	}
	due := metav1.NewTime(s.now.Add(time.Duration(seconds) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &due, &seconds
	if s.options.Fate != nil {
		s.overdue[pod.UID] = s.options.Fate(*e).Overdue
	}
	s.setPod(pod)
	s.report.Evictions = append(s.report.Evictions, Eviction{Cycle: s.report.Cycles, Pod: e.Pod.String(), Node: e.Node,
		Action: e.Action, Rule: e.Rule, For: s.names[e.For], Message: e.Message})
	return nil
}

// markTarget says on a pod whether it is to be evicted, and records it.
func (s planWriter) markTarget(pod *corev1.Pod, status corev1.ConditionStatus, reason, message, record string) {
	setRecord(pod, schedulingv1beta1.EvictionRecordKey, record)
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget
	})
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: status,
		Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(s.now)})
}

// setRecord writes a record on a pod, or takes it off if it is "".
func setRecord(pod *corev1.Pod, key, record string) {
	delete(pod.Annotations, key)
	if record != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, record)
	}
}

// livePod returns a copy of a pod to change, nil if it is gone or is another of the same name.
func (s planWriter) livePod(key types.NamespacedName, uid types.UID) *corev1.Pod {
	if pod := s.pods[key]; pod != nil && pod.UID == uid {
		return pod.DeepCopy()
	}
	return nil
}
