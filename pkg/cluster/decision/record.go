package decision

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/bounds"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// A plan is recorded in JSON annotations of its pods. Each is written in the same request as the part of the pod's
// status to which it belongs: a [PromiseRecord] with the nominated node, an [EvictionRecord] with the condition
// DisruptionTarget. Without that status a record is ignored. So a user who may only write annotations can neither have
// a pod evicted nor protect it. Messages of conditions are for users, and are never parsed.

// PromiseRecord is recorded on a pod with a nominated node from a plan.
type PromiseRecord struct {
	// Plan is the ID of the plan, which is also recorded on its victims. Since is when it was made.
	Plan  string      `json:"plan"`
	Since metav1.Time `json:"since"`
	// Action and Scope say by which rules the plan is checked until its evictions are sent.
	Action string `json:"action"`
	Scope  string `json:"scope"`
}

// EvictionRecord is recorded on a victim, and on a pod whose eviction the API server has refused.
type EvictionRecord struct {
	// Plan is the ID of the plan for which the pod is evicted; "" if it is not evicted.
	Plan string `json:"plan,omitempty"`
	// Rule is the number of the rule that allows the eviction.
	Rule string `json:"rule,omitempty"`
	// PastBudget is set if the pod is deleted past its disruption budgets.
	PastBudget bool `json:"pastBudget,omitempty"`
	// Allowance is for how many seconds after its grace period the pod is counted on to end, 0 for the default.
	Allowance int64 `json:"allowance,omitempty"`
	// Refusals is how often in a row the API server has refused the eviction, 0 if it has not.
	Refusals int `json:"refusals,omitempty"`
}

// StandInRecord is recorded on a PodGroup whose gang has its nodes while some of its pods do not exist yet.
type StandInRecord struct {
	// Since is when the gang had all its nodes, nil if it never had.
	Since *metav1.Time `json:"since,omitempty"`
	// Nodes are the nodes that are held, by role, sorted.
	Nodes map[string][]string `json:"nodes,omitempty"`
	// IsOver is set if the gang has waited too long, and its pods are scheduled without a gang.
	IsOver bool `json:"isOver,omitempty"`
}

// Encode returns the record as JSON, "" if it says nothing.
func (r *StandInRecord) Encode() string {
	if r.Since == nil && len(r.Nodes) == 0 && !r.IsOver {
		return ""
	}
	return encode(r)
}

// StandInsOf returns the record of a PodGroup, empty if there is none that can be read.
func StandInsOf(group *schedulingv1beta1.PodGroup) (r StandInRecord) {
	if text := group.Annotations[schedulingv1beta1.StandInsKey]; text == "" || bounds.UnmarshalJSON([]byte(text), &r) != nil {
		return StandInRecord{}
	}
	return r
}

// PromiseRecord returns the record for each pod with a nominated node.
func (p *PlanStart) PromiseRecord() string {
	return encode(PromiseRecord{Plan: p.ID, Since: metav1.NewTime(p.Since), Action: p.Action, Scope: p.Scope.String()})
}

// Record returns the record for the victim.
func (e *Eviction) Record() string {
	return encode(EvictionRecord{Plan: e.Plan, Rule: e.Rule, PastBudget: e.PastBudget, Allowance: int64(e.Allowance.Seconds())})
}

// Record returns the record for the pod, "" if there is none.
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

// PromiseOf returns the record of a pod's nominated node. ok is false if the pod has no nominated node, or no record
// that can be read.
func PromiseOf(pod *pods.Pod) (r PromiseRecord, ok bool) {
	text, ok := pod.Annotations[schedulingv1beta1.PromiseRecordKey]
	ok = ok && pod.Status.NominatedNodeName != "" && bounds.UnmarshalJSON([]byte(text), &r) == nil && r.Plan != ""
	return r, ok
}

// EvictionOf returns the record of a pod's eviction for a plan. ok is false if there is none that can be read, or if
// the condition DisruptionTarget does not say that the pod is to be evicted.
func EvictionOf(pod *pods.Pod) (r EvictionRecord, ok bool) {
	c := disruptionTarget(pod)
	if c == nil || c.Status != corev1.ConditionTrue {
		return r, false
	}
	r = readEviction(pod)
	return r, r.Plan != ""
}

// RefusalOf returns how often in a row the API server has refused to evict a pod, at least once, and the condition that
// says so. The condition is nil if it has not.
func RefusalOf(pod *pods.Pod) (times int, condition *corev1.PodCondition) {
	c := disruptionTarget(pod)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != EvictionRefused {
		return 0, nil
	}
	return max(readEviction(pod).Refusals, 1), c
}

// readEviction returns the record of a pod, the zero value if there is none that can be read.
func readEviction(pod *pods.Pod) (r EvictionRecord) {
	if bounds.UnmarshalJSON([]byte(pod.Annotations[schedulingv1beta1.EvictionRecordKey]), &r) != nil {
		return EvictionRecord{}
	}
	return r
}

func disruptionTarget(pod *pods.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget {
			return c
		}
	}
	return nil
}

// EvictionRefused is the reason of the condition DisruptionTarget of a pod whose eviction the API server has refused.
// Its status is False, and its transition time is the time of the refusal. The [EvictionRecord] says how often it was
// refused.
const EvictionRefused = "EvictionRefused"

// IsRecord reports whether an annotation of a pod is one of the records. The scheduler writes them, and no decision
// about a pending pod depends on them.
func IsRecord(key string) bool {
	return key == schedulingv1beta1.PromiseRecordKey || key == schedulingv1beta1.EvictionRecordKey
}
