package queueing

import (
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

const (
	// StoppingAnnotation is left on a Job that Kueue was stopping. It means nothing here, and goes when the template is
	// restored.
	StoppingAnnotation = "kueue.x-k8s.io/stopping"

	// CompletionsAnnotation of a Job, "true", says that its completions follow the parallelism that is admitted.
	CompletionsAnnotation = "kueue.x-k8s.io/job-completions-equal-parallelism"
)

// BatchJobs is the kind of Jobs of batch/v1.
var BatchJobs = &Kind{
	GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), Controller: "jobs", HoldsUnnamed: true,
	New: func() Job { return BatchJob{&batchv1.Job{}} }, NewList: func() client.ObjectList { return &batchv1.JobList{} },
}

// BatchJob is a Job of batch/v1.
type BatchJob struct{ *batchv1.Job }

var _ interface {
	Job
	StatusResetter
	Marked
	Suspending
	Selecting
	Unserved
} = BatchJob{}

// Object is the Job itself.
func (j BatchJob) Object() client.Object { return j.Job }

// Kind is that of Jobs of batch/v1.
func (j BatchJob) Kind() *Kind { return BatchJobs }

// IsSuspended reports whether the Job is to have no pods.
func (j BatchJob) IsSuspended() bool { return ptr.Deref(j.Spec.Suspend, false) }

// IsActive reports whether the Job has pods that have not ended. A Job that was started and then suspended counts as
// active until its controller says that it has seen that: until then it may still make pods.
func (j BatchJob) IsActive() bool {
	return j.Status.Active > 0 || ptr.Deref(j.Status.Terminating, 0) > 0 || j.IsSuspended() && j.Status.StartTime != nil && j.SuspendedAt().IsZero()
}

// PodSelector is the selector of the Job, which the API server gives to each.
func (j BatchJob) PodSelector() labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector)
	if err != nil || j.Spec.Selector == nil {
		return labels.Everything()
	}
	return selector
}

// SuspendedAt is when the controller of Jobs has said that it has suspended the Job, zero if it does not say that now.
func (j BatchJob) SuspendedAt() time.Time {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// Suspend makes the Job end its pods.
func (j BatchJob) Suspend() { j.Spec.Suspend = ptr.To(true) }

// PodSets are the pods that the Job runs at a time.
func (j BatchJob) PodSets() []v1beta2.PodSet {
	set := v1beta2.PodSet{Name: v1beta2.DefaultPodSetName, Template: *j.Spec.Template.DeepCopy(), Count: j.count()}
	maps.DeleteFunc(set.Template.Labels, func(key, _ string) bool { return isGiven(key) })
	RemoveMarks(&set.Template)
	if least, is := j.least(); is {
		set.MinCount = ptr.To(min(least, set.Count))
	}
	return RequestTopology([]v1beta2.PodSet{set})
}

// NotServed says what a Job asks for that is not served, "" if nothing. Without it the Job would run as if it had not
// asked.
func (j BatchJob) NotServed() string {
	if by := ptr.Deref(j.Spec.ManagedBy, ""); by == v1beta2.MultiKueueController {
		return "spec.managedBy is " + by + ", and Hekla sends no Jobs to other clusters"
	}
	return GrowsUnserved(j)
}

func (j BatchJob) count() int32 {
	parallelism := ptr.Deref(j.Spec.Parallelism, 1)
	return min(parallelism, ptr.Deref(j.Spec.Completions, parallelism))
}

// least is the smallest parallelism with which the Job may run. One that cannot be meant is none.
func (j BatchJob) least() (int32, bool) {
	least, err := strconv.ParseInt(j.Annotations[v1beta2.JobMinParallelismAnnotation], 10, 32)
	return int32(least), err == nil && least > 0
}

// isGiven reports whether the API server gives a label to templates of Jobs.
func isGiven(label string) bool {
	return slices.Contains([]string{"job-name", "controller-uid", batchv1.JobNameLabel, batchv1.ControllerUidLabel}, label)
}

// Run lets the Job make its pods.
func (j BatchJob) Run(infos []PodSetInfo) error {
	info := &infos[0]
	RemoveMarks(&j.Spec.Template) // those of an earlier start, which another client has put back
	if err := info.Apply(&j.Spec.Template); err != nil {
		return err
	}
	if _, shrinks := j.least(); shrinks {
		j.setParallelism(info.Count)
	}
	j.Spec.Suspend = ptr.To(false)
	return nil
}

func (j BatchJob) setParallelism(count int32) {
	j.Spec.Parallelism = ptr.To(count)
	if j.Annotations[CompletionsAnnotation] == "true" {
		j.Spec.Completions = ptr.To(count)
	}
}

// IsMarked reports whether the template has what pods get at a start.
func (j BatchJob) IsMarked() bool { return HasMarks(&j.Spec.Template) }

// QueuedAs is what the Job would run if nothing held it back. Its template has what it got at its start as well, and
// was queued as these podsets say.
func (j BatchJob) QueuedAs(sets []v1beta2.PodSet) []v1beta2.PodSet {
	before := BatchJob{j.DeepCopy()}
	before.Restore(sets)
	return before.PodSets()
}

// Restore makes the template and the parallelism what was queued. Without podsets only the marks of the start go.
func (j BatchJob) Restore(sets []v1beta2.PodSet) {
	delete(j.Annotations, StoppingAnnotation)
	RemoveMarks(&j.Spec.Template)
	if len(sets) != 1 {
		return
	}
	given := map[string]string{}
	for key, value := range j.Spec.Template.Labels {
		if isGiven(key) {
			given[key] = value
		}
	}
	RestoreTemplate(&j.Spec.Template, &sets[0].Template)
	if len(given) > 0 && j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	maps.Copy(j.Spec.Template.Labels, given)
	if _, shrinks := j.least(); shrinks {
		j.setParallelism(sets[0].Count)
	}
}

// Finished reports whether the Job is complete or has failed.
func (j BatchJob) Finished() (message string, succeeded, is bool) {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Message, c.Type == batchv1.JobComplete, true
		}
	}
	return "", false, false
}

// PodsReady reports whether so many pods are ready or have succeeded.
func (j BatchJob) PodsReady(count int32) bool {
	ready := j.Status.Succeeded + ptr.Deref(j.Status.Ready, 0)
	if uncounted := j.Status.UncountedTerminatedPods; uncounted != nil {
		ready += int32(len(uncounted.Succeeded))
	}
	return ready >= count
}

// ResetStatus takes away the start time. API servers before Kubernetes 1.35 refuse changes of the template of a Job
// that has one; later ones take it away themselves.
func (j BatchJob) ResetStatus() bool {
	if j.Status.StartTime == nil {
		return false
	}
	j.Status.StartTime = nil
	return true
}
