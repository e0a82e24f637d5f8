package decision

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// A plan is recorded on the pods that it is about, as annotations in JSON, each in the same request as what it belongs to in the
// status of the pod: a [PromiseRecord] with the nominated node, an [EvictionRecord] with the condition DisruptionTarget. Without
// that status a record says nothing, so that a user who may only write annotations can neither have a pod evicted nor protect it. The
// messages of conditions are for people: nothing is read back from them.

// PromiseRecord is what is recorded on a pod of which status.nominatedNodeName is the node that a plan promises it.
type PromiseRecord struct {
	// Plan is the ID of the plan, which its victims name too, and Since when it was made.
	Plan  string      `json:"plan"`
	Since metav1.Time `json:"since"`
	// Action and Scope say by whose rules, and by which laws, victims that are not on their way yet may leave.
	Action string `json:"action"`
	Scope  string `json:"scope"`
}

// EvictionRecord is what is recorded on a victim, and on a pod that the API server refused to evict.
type EvictionRecord struct {
	// Plan is the ID of the plan that the pod is to leave for; "" if it stays.
	Plan string `json:"plan,omitempty"`
	// Rule is the number of the law that allowed the eviction.
	Rule string `json:"rule,omitempty"`
	// PastBudget is set if the pod is deleted without asking for a disruption budget.
	PastBudget bool `json:"pastBudget,omitempty"`
	// Refusals is how often in a row the API server has refused to evict the pod; 0 if it has not.
	Refusals int `json:"refusals,omitempty"`
}

// PromiseRecord is what is to be recorded on each pod that the plan promises a node.
func (p *PlanStart) PromiseRecord() string {
	return encode(PromiseRecord{Plan: p.ID, Since: metav1.NewTime(p.Since), Action: p.Action, Scope: p.Scope.String()})
}

// Record is what is to be recorded on the victim.
func (e *Eviction) Record() string {
	return encode(EvictionRecord{Plan: e.Plan, Rule: e.Rule, PastBudget: e.PastBudget})
}

// Record is what is to be recorded on the pod, "" if nothing is.
func (s *Spared) Record() string {
	if s.Refusals == 0 {
		return ""
	}
	return encode(EvictionRecord{Refusals: s.Refusals})
}

func encode(record any) string {
	text, err := json.Marshal(record)
	if err != nil {
		panic("invariant: a record cannot be encoded: " + err.Error())
	}
	return string(text)
}

// PromiseOf returns what is recorded on a pod about the node that it is promised; ok is false if nothing is that can be read, or it is
// promised none.
func PromiseOf(pod *corev1.Pod) (r PromiseRecord, ok bool) {
	text, ok := pod.Annotations[schedulingv1beta1.PromiseRecordKey]
	ok = ok && pod.Status.NominatedNodeName != "" && json.Unmarshal([]byte(text), &r) == nil && r.Plan != ""
	return r, ok
}

// EvictionOf returns what is recorded on a pod about its eviction for a plan; ok is false if nothing is that can be read, or its
// condition DisruptionTarget does not say that it is to leave.
func EvictionOf(pod *corev1.Pod) (r EvictionRecord, ok bool) {
	c := disruptionTarget(pod)
	if c == nil || c.Status != corev1.ConditionTrue {
		return r, false
	}
	r = readEviction(pod)
	return r, r.Plan != ""
}

// RefusalOf returns how often in a row the API server has refused to evict a pod, at least once, and the condition that says so; nil if
// it has not.
func RefusalOf(pod *corev1.Pod) (times int, condition *corev1.PodCondition) {
	c := disruptionTarget(pod)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != EvictionRefused {
		return 0, nil
	}
	return max(readEviction(pod).Refusals, 1), c
}

// readEviction returns what is recorded on a pod, the zero value if nothing is that can be read.
func readEviction(pod *corev1.Pod) (r EvictionRecord) {
	if json.Unmarshal([]byte(pod.Annotations[schedulingv1beta1.EvictionRecordKey]), &r) != nil {
		return EvictionRecord{}
	}
	return r
}

func disruptionTarget(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget {
			return c
		}
	}
	return nil
}

// EvictionRefused is the reason of the condition DisruptionTarget of a pod that the API server refused to evict. Its status is
// False, and the time of its transition is when that was. How often it has been refused is in the [EvictionRecord].
const EvictionRefused = "EvictionRefused"

// IsRecord reports whether an annotation of a pod is one of the records: the scheduler writes them, and no decision about a pod that
// waits rests on them.
func IsRecord(key string) bool {
	return key == schedulingv1beta1.PromiseRecordKey || key == schedulingv1beta1.EvictionRecordKey
}
