package simulation

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
)

// quotas is the rule that no Workload is admitted beyond the quotas: with what is admitted already, and with what
// still runs of Jobs whose Workload is gone or holds nothing any more. After a cut what has run before may run on, and
// nothing is admitted that was decided after the scheduler was told of the cut. All ClusterQueues are of one cohort and
// have one flavor, so that the sum counts.
type quotas struct {
	driver *driver
	of     map[types.UID]string    // the id of the Workload of a Job or a pod, by the UID of that
	queued map[types.UID]types.UID // the UID of the Job whose pod runs, by the pod's UID
	last   map[string]admission    // the last one of a Workload, by its id
}

// admission is when a Workload was admitted, and what the quotas were together for who decided that.
type admission struct {
	at      time.Time
	allowed int64
}

// seen looks at a change.
func (q *quotas) seen(before, now *object) {
	of := before
	if now != nil {
		of = now
	}
	switch of.collection {
	case pods:
		if now == nil {
			delete(q.queued, before.GetUID())
		} else {
			q.remember(now)
		}
	case workloads:
		if now == nil {
			return
		}
		was := before != nil && before.GetUID() == now.GetUID() && hasCondition(before, "QuotaReserved")
		for _, ref := range now.GetOwnerReferences() {
			q.of[ref.UID] = now.id()
		}
		if was || !hasCondition(now, "QuotaReserved") {
			return
		}
		for _, o := range q.driver.observer.all(pods) {
			q.remember(o)
		}
		q.last[now.id()] = admission{time.Now(), q.allowed(now)}
		if !hasCondition(now, "Finished") && !q.driver.isLate {
			q.check(now)
		}
	}
}

// remember keeps of which Job a pod is that runs while its Workload holds quota, for when it holds none any more. A Job
// that users start themselves is stopped, and its pods hold no quota until then.
func (q *quotas) remember(o *object) {
	ref := owner(o)
	if ref == nil || ref.Kind != "Job" || o.pod.Spec.NodeName == "" {
		return
	}
	if w := q.driver.observer.objects[q.of[ref.UID]]; w != nil && hasCondition(w, "QuotaReserved") {
		q.queued[o.GetUID()] = ref.UID
	}
}

// admissionOf is the last admission of the Workload of a pod, zero if there is none.
func (q *quotas) admissionOf(o *object) admission {
	uid := o.GetUID()
	if ref := owner(o); ref != nil && ref.Kind == "Job" {
		uid = ref.UID
	}
	return q.last[q.of[uid]]
}

// allowed is the most that the quotas may be together for a decision of a process: what it was told of them about the
// time of the decision. Of others it is what they are.
func (q *quotas) allowed(admitted *object) int64 {
	if by := q.driver.writer; by != nil {
		if most, ok := by.told.most(changedAt(admitted, "QuotaReserved")); ok {
			return most
		}
	}
	return q.driver.allQuotas()
}

// changedAt is when a condition got its status, as its writer says, in whole seconds.
func changedAt(o *object, kind string) time.Time {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m := c.(map[string]any); m["type"] == kind {
			at, _ := time.Parse(time.RFC3339, fmt.Sprint(m["lastTransitionTime"]))
			return at
		}
	}
	return time.Time{}
}

// check adds up what is held when a Workload is admitted.
func (q *quotas) check(admitted *object) {
	d := q.driver
	total, holds := int64(0), map[string]bool{}
	for _, o := range d.observer.all(workloads) {
		if hasCondition(o, "QuotaReserved") && !hasCondition(o, "Finished") {
			total += q.takes(o)
			holds[o.id()] = true
		}
	}
	uncharged, leftBehind := int64(0), []string{}
	for _, o := range d.observer.all(pods) {
		if job, is := q.queued[o.GetUID()]; is && isRunning(o.pod) && !holds[q.of[job]] {
			requests := resource.PodRequests(o.pod, resource.PodResourcesOptions{})
			uncharged += requests.Cpu().MilliValue()
			leftBehind = append(leftBehind, o.GetNamespace()+"/"+o.GetName())
		}
	}
	if allowed := q.last[admitted.id()].allowed; total+uncharged > allowed {
		d.rules.violate("quota: with %s Workloads hold %dm CPUs, pods of other queued Jobs run with %dm (%s), and the quotas are %dm together", admitted.id(), total, uncharged,
			strings.Join(leftBehind, ", "), allowed)
	}
}

// takes is what a Workload holds, or what is requested by the pods of its Job that run if that is more. It is never
// more than what it was admitted with: a Job that runs more, since a user has changed it, is stopped.
func (q *quotas) takes(w *object) int64 {
	ref := owner(w)
	if ref == nil || ref.Kind != "Job" {
		return held(w)
	}
	runs := int64(0)
	for _, o := range q.driver.observer.all(pods) {
		if of := owner(o); of != nil && of.UID == ref.UID && isRunning(o.pod) && o.pod.DeletionTimestamp == nil && o.pod.Spec.NodeName != "" {
			requests := resource.PodRequests(o.pod, resource.PodResourcesOptions{})
			runs += requests.Cpu().MilliValue()
		}
	}
	return max(held(w), min(runs, charged(w, false)))
}

// held is what a Workload is charged for, without the places that it has given up.
func held(o *object) int64 { return charged(o, true) }

// charged is what a Workload was admitted with, or what is left of it without the places that it has given up.
func charged(o *object, withoutGivenUp bool) (sum int64) {
	reclaimed := map[string]int64{}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "reclaimablePods")
	for _, entry := range list {
		if !withoutGivenUp {
			break
		}
		m := entry.(map[string]any)
		reclaimed[m["name"].(string)] = toNumber(m["count"])
	}
	queued := map[string]int64{}
	podSets, _, _ := unstructured.NestedSlice(o.Object, "spec", "podSets")
	for _, s := range podSets {
		m := s.(map[string]any)
		name, _ := m["name"].(string)
		queued[name] = toNumber(m["count"])
	}
	sets, _, _ := unstructured.NestedSlice(o.Object, "status", "admission", "podSetAssignments")
	for _, s := range sets {
		m := s.(map[string]any)
		usage, _, _ := unstructured.NestedStringMap(m, "resourceUsage")
		count := toNumber(m["count"])
		name, _ := m["name"].(string)
		if charge := milli(usage[string(corev1.ResourceCPU)]); count > 0 {
			// The places that are given up are counted of all that are queued, and fewer may have been admitted.
			sum += charge / count * max(min(count, max(queued[name], count)-reclaimed[name]), 0)
		}
	}
	return sum
}
