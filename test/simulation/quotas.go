package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
)

// quotas is the rule that no Workload is admitted beyond the quotas: with what is admitted already, and with what still
// runs of Jobs whose Workload is gone or holds nothing any more. All ClusterQueues are of one cohort and have one
// flavor, so that the sum counts.
type quotas struct {
	driver *driver
	of     map[types.UID]string    // the id of the Workload of a Job, by the Job's UID
	queued map[types.UID]types.UID // the UID of the Job whose pod runs, by the pod's UID
	before []nominals              // what the quotas were together; the last is what they are
}

type nominals struct {
	until time.Time
	sum   int64
}

// seen looks at a change.
func (q *quotas) seen(before, now *object) {
	of := before
	if now != nil {
		of = now
	}
	switch of.collection {
	case clusterQueues:
		q.note()
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
		if ref := owner(now); ref != nil && ref.Kind == "Job" && q.of[ref.UID] != now.id() {
			q.of[ref.UID] = now.id()
			for _, o := range q.driver.observer.all(pods) {
				q.remember(o)
			}
		}
		was := before != nil && before.GetUID() == now.GetUID() && hasCondition(before, "QuotaReserved")
		if !was && hasCondition(now, "QuotaReserved") && !hasCondition(now, "Finished") && !q.driver.isLate {
			q.check(now)
		}
	}
}

// remember keeps of which Job a pod is that runs, for when it is of none any more.
func (q *quotas) remember(o *object) {
	if ref := owner(o); ref != nil && ref.Kind == "Job" && q.of[ref.UID] != "" && o.pod.Spec.NodeName != "" {
		q.queued[o.GetUID()] = ref.UID
	}
}

// note keeps what the quotas are.
func (q *quotas) note() {
	sum := q.driver.allQuotas()
	if n := len(q.before); n > 0 {
		q.before[n-1].until = time.Now()
	}
	q.before = append(q.before, nominals{sum: sum})
	for len(q.before) > 1 && time.Since(q.before[0].until) > unseen {
		q.before = q.before[1:]
	}
}

// allowed is the most that the quotas have been together of late: a scheduler may not have seen the last change.
func (q *quotas) allowed() int64 {
	most := int64(0)
	for _, n := range q.before {
		if n.until.IsZero() || time.Since(n.until) <= unseen {
			most = max(most, n.sum)
		}
	}
	return most
}

// check adds up what is held when a Workload is admitted.
func (q *quotas) check(admitted *object) {
	d := q.driver
	total, holds := int64(0), map[string]bool{}
	for _, o := range d.observer.all(workloads) {
		if hasCondition(o, "QuotaReserved") && !hasCondition(o, "Finished") {
			total += held(o)
			holds[o.id()] = true
		}
	}
	uncharged := int64(0)
	for _, o := range d.observer.all(pods) {
		if job, is := q.queued[o.GetUID()]; is && isRunning(o.pod) && !holds[q.of[job]] {
			requests := resource.PodRequests(o.pod, resource.PodResourcesOptions{})
			uncharged += requests.Cpu().MilliValue()
		}
	}
	if allowed := q.allowed(); total+uncharged > allowed {
		d.rules.violate("quota: with %s Workloads hold %dm CPUs, pods of other queued Jobs run with %dm, and the quotas are %dm together", admitted.id(), total, uncharged, allowed)
	}
}

// held is what a Workload is charged for, without the places that it has given up.
func held(o *object) (sum int64) {
	reclaimed := map[string]int64{}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "reclaimablePods")
	for _, entry := range list {
		m := entry.(map[string]any)
		count, _ := m["count"].(int64)
		if f, is := m["count"].(float64); is {
			count = int64(f)
		}
		reclaimed[m["name"].(string)] = count
	}
	sets, _, _ := unstructured.NestedSlice(o.Object, "status", "admission", "podSetAssignments")
	for _, s := range sets {
		m := s.(map[string]any)
		usage, _, _ := unstructured.NestedStringMap(m, "resourceUsage")
		count, _ := m["count"].(int64)
		if f, is := m["count"].(float64); is {
			count = int64(f)
		}
		name, _ := m["name"].(string)
		if charge := milli(usage[string(corev1.ResourceCPU)]); count > 0 {
			sum += charge / count * max(count-reclaimed[name], 0)
		}
	}
	return sum
}
