package batchjob

import (
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing/integration"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

const (
	// StoppingAnnotation is left on a Job that Kueue was stopping. It means nothing here, and goes when the template is
	// restored.
	StoppingAnnotation = "kueue.x-k8s.io/stopping"

	// CompletionsAnnotation of a Job, "true", says that its completions follow the parallelism that is admitted.
	CompletionsAnnotation = "kueue.x-k8s.io/job-completions-equal-parallelism"
)

// kind is that of the Jobs.
var kind = batchv1.SchemeGroupVersion.WithKind("Job")

// Job is a Job of batch/v1.
type Job struct{ *batchv1.Job }

var _ integration.Job = Job{}

var _ interface {
	integration.Job
	integration.StatusResetter
	integration.Marked
	integration.Unserved
} = Job{}

// Object is the Job itself.
func (j Job) Object() client.Object { return j.Job }

// Kind is batch/v1 Job.
func (j Job) Kind() schema.GroupVersionKind { return kind }

// IsSuspended reports whether the Job is to have no pods.
func (j Job) IsSuspended() bool { return ptr.Deref(j.Spec.Suspend, false) }

// IsActive reports whether the Job has pods that have not ended. A Job that was started and then suspended counts as
// active until its controller says that it has seen that: until then it may still make pods.
func (j Job) IsActive() bool {
	return j.Status.Active > 0 || ptr.Deref(j.Status.Terminating, 0) > 0 || j.IsSuspended() && j.Status.StartTime != nil && !j.saysSuspended()
}

func (j Job) saysSuspended() bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
	})
}

// Suspend has the Job end its pods.
func (j Job) Suspend() { j.Spec.Suspend = ptr.To(true) }

// PodSets are the pods that the Job runs at a time.
func (j Job) PodSets() []v1beta2.PodSet {
	set := v1beta2.PodSet{Name: v1beta2.DefaultPodSetName, Template: *j.Spec.Template.DeepCopy(), Count: j.count()}
	maps.DeleteFunc(set.Template.Labels, func(key, _ string) bool { return isGiven(key) })
	integration.Unmark(&set.Template)
	if least, is := j.least(); is {
		set.MinCount = ptr.To(min(least, set.Count))
	}
	return integration.Wish([]v1beta2.PodSet{set})
}

// NotServed says what a Job asks for that is not served, "" if nothing. Without it the Job would run as if it had not
// asked.
func (j Job) NotServed() string {
	if by := ptr.Deref(j.Spec.ManagedBy, ""); by == v1beta2.MultiKueueController {
		return "spec.managedBy is " + by + ", and Hekla sends no Jobs to other clusters"
	}
	return integration.GrowsUnserved(j)
}

func (j Job) count() int32 {
	parallelism := ptr.Deref(j.Spec.Parallelism, 1)
	return min(parallelism, ptr.Deref(j.Spec.Completions, parallelism))
}

// least is the smallest parallelism with which the Job may run. One that cannot be meant is none.
func (j Job) least() (int32, bool) {
	least, err := strconv.ParseInt(j.Annotations[v1beta2.JobMinParallelismAnnotation], 10, 32)
	return int32(least), err == nil && least > 0
}

// isGiven reports whether the API server gives a label to templates of Jobs.
func isGiven(label string) bool {
	return slices.Contains([]string{"job-name", "controller-uid", batchv1.JobNameLabel, batchv1.ControllerUidLabel}, label)
}

// Run has the Job make its pods.
func (j Job) Run(infos []integration.Info) error {
	info := &infos[0]
	integration.Unmark(&j.Spec.Template) // those of an earlier start, which another client has put back
	if err := integration.Apply(&j.Spec.Template, info); err != nil {
		return err
	}
	if _, shrinks := j.least(); shrinks {
		j.setParallelism(info.Count)
	}
	j.Spec.Suspend = ptr.To(false)
	return nil
}

func (j Job) setParallelism(count int32) {
	j.Spec.Parallelism = ptr.To(count)
	if j.Annotations[CompletionsAnnotation] == "true" {
		j.Spec.Completions = ptr.To(count)
	}
}

// IsMarked reports whether the template has what pods get at a start.
func (j Job) IsMarked() bool { return integration.IsMarked(&j.Spec.Template) }

// QueuedAs is what the Job would run if nothing held it back. Its template has what it got at its start as well, and
// was queued as these podsets say.
func (j Job) QueuedAs(sets []v1beta2.PodSet) []v1beta2.PodSet {
	before := Job{j.DeepCopy()}
	before.Restore(sets)
	return before.PodSets()
}

// Restore makes the template and the parallelism what was queued. Without podsets only the marks of the start go.
func (j Job) Restore(sets []v1beta2.PodSet) {
	delete(j.Annotations, StoppingAnnotation)
	integration.Unmark(&j.Spec.Template)
	if len(sets) != 1 {
		return
	}
	given := map[string]string{}
	for key, value := range j.Spec.Template.Labels {
		if isGiven(key) {
			given[key] = value
		}
	}
	integration.Restore(&j.Spec.Template, &sets[0].Template)
	if len(given) > 0 && j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	maps.Copy(j.Spec.Template.Labels, given)
	if _, shrinks := j.least(); shrinks {
		j.setParallelism(sets[0].Count)
	}
}

// Finished reports whether the Job is complete or has failed.
func (j Job) Finished() (message string, succeeded, is bool) {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Message, c.Type == batchv1.JobComplete, true
		}
	}
	return "", false, false
}

// PodsReady reports whether so many pods are ready or have succeeded.
func (j Job) PodsReady(count int32) bool {
	ready := j.Status.Succeeded + ptr.Deref(j.Status.Ready, 0)
	if uncounted := j.Status.UncountedTerminatedPods; uncounted != nil {
		ready += int32(len(uncounted.Succeeded))
	}
	return ready >= count
}

// ResetStatus takes away the start time. API servers before Kubernetes 1.35 refuse changes of the template of a Job
// that has one; later ones take it away themselves.
func (j Job) ResetStatus() bool {
	if j.Status.StartTime == nil {
		return false
	}
	j.Status.StartTime = nil
	return true
}
