package simulation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// places is the rule that a Workload gives up no place that its Job will fill again: others get the quota of it, and
// the Job runs with fewer pods than it was admitted with until it ends. It looks at Jobs that end with a number of pods
// that have succeeded, and whose parallelism no user has changed.
type places struct {
	driver *driver
	first  map[types.UID]int64 // the parallelism that a Job had first; negative if it has changed
}

// trackingFinalizer is on a pod of a Job until the Job's status counts it.
const trackingFinalizer = "batch.kubernetes.io/job-tracking"

// seen looks at a change.
func (p *places) seen(before, now *object) {
	switch {
	case now == nil:
	case now.collection == jobs:
		parallelism := numberOf(now, "spec", "parallelism")
		if first, is := p.first[now.GetUID()]; !is {
			p.first[now.GetUID()] = parallelism
		} else if first != parallelism {
			p.first[now.GetUID()] = -1
		}
	case now.collection == workloads && before != nil && before.GetUID() == now.GetUID() && hasCondition(now, "QuotaReserved") && givenUp(now) > givenUp(before):
		p.check(now)
	}
}

// check compares what a Workload has given up with what its Job is still to run.
func (p *places) check(w *object) {
	d := p.driver
	ref := owner(w)
	if ref == nil || ref.Kind != "Job" || ref.APIVersion != "batch/v1" {
		return
	}
	job := d.observer.get(jobs, w.GetNamespace(), ref.Name)
	if job == nil || job.GetUID() != ref.UID || p.first[ref.UID] < 0 || text(job, "spec", "completionMode") == `"Indexed"` ||
		slices.ContainsFunc([]string{"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"}, func(kind string) bool { return hasCondition(job, kind) }) {
		return
	}
	uncounted, _, _ := unstructured.NestedStringSlice(job.Object, "status", "uncountedTerminatedPods", "succeeded")
	succeeded := numberOf(job, "status", "succeeded") + int64(len(uncounted))
	for _, o := range d.observer.all(pods) {
		if of := owner(o); of != nil && of.UID == ref.UID && o.pod.Status.Phase == corev1.PodSucceeded && slices.Contains(o.pod.Finalizers, trackingFinalizer) &&
			!slices.Contains(uncounted, string(o.GetUID())) {
			succeeded++
		}
	}
	count := int64(0)
	sets, _, _ := unstructured.NestedSlice(w.Object, "spec", "podSets")
	for _, s := range sets {
		n, _, _ := unstructured.NestedFieldNoCopy(s.(map[string]any), "count")
		count += toNumber(n)
	}
	needs := min(p.first[ref.UID], numberOf(job, "spec", "completions")-succeeded, count)
	if left := count - givenUp(w); left < needs {
		d.rules.violate("%s keeps %d places, and Job %s needs %d until it ends: %s", w.id(), left, ref.Name, needs, text(job, "status"))
	}
}

// givenUp is how many places a Workload has given up.
func givenUp(w *object) (count int64) {
	list, _, _ := unstructured.NestedSlice(w.Object, "status", "reclaimablePods")
	for _, entry := range list {
		count += toNumber(entry.(map[string]any)["count"])
	}
	return count
}

// numberOf is a number in an object, 0 if it is not there.
func numberOf(o *object, path ...string) int64 {
	n, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return toNumber(n)
}

func toNumber(value any) (n int64) {
	if value != nil {
		_, _ = fmt.Sscan(fmt.Sprint(value), &n) // what is no number is none
	}
	return n
}
