package queueing

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Job is a job of a kind that can be queued: one that can be made to wait, to run and to stop as a whole.
type Job interface {
	// Object is the object itself.
	Object() client.Object
	// Kind is the kind of jobs that it is of.
	Kind() *Kind

	// IsSuspended reports whether the job is to have no pods.
	IsSuspended() bool
	// IsActive reports whether the job has pods that have not ended, or may have some although it is suspended.
	IsActive() bool
	// Suspend makes the job end its pods and make no more.
	Suspend()

	// PodSets are what the job would run if nothing held it back.
	PodSets() []v1beta2.PodSet
	// Run lets the job make its pods, with what each podset gets. It fails if the job cannot run so.
	Run(infos []PodSetInfo) error
	// Restore makes the job what it was before Run: as these podsets say. What is so already stays untouched.
	Restore(sets []v1beta2.PodSet)

	// Finished reports whether the job has ended, how, and with which words.
	Finished() (message string, succeeded, is bool)
	// PodsReady reports whether all pods of the job are ready or have succeeded. count is how many were admitted.
	PodsReady(count int32) bool
	// Demand says how many places of each podset the job needs from now on.
	Demand() []Demand
	// KeepsCounts reports whether the job says how many pods it wants also while it is admitted with fewer.
	KeepsCounts() bool
}

// Demand is how many places of a podset a job needs, of those that it was queued with.
type Demand struct {
	Name string
	// Count is how many pods of the podset the job wants to run at a time, from its spec.
	Count int32
	// Ended is how many of these places no pod needs any more: the last pod has ended, and none is made in its place.
	Ended int32
	// Has is how many pods have not ended, with those that are being deleted. Each has a place until it is gone.
	Has int32
}

// What a [Job] of some kinds has beyond that interface. A kind implements each of these only if it needs it.

// StatusResetter is a job whose status has to be edited between being suspended and being restored. The caller writes
// the status.
type StatusResetter interface {
	// ResetStatus edits the status in memory, and reports whether that has changed it.
	ResetStatus() bool
}

// Marked is a job whose own template gets what its pods get at a start, so that it shows whether the job was started.
// Before such a job is taken for one that waits, it is restored.
type Marked interface {
	// IsMarked reports whether the template has what pods get at a start.
	IsMarked() bool
	// QueuedAs are the podsets of a marked job without what it got at its start. sets are those that it was queued
	// with.
	QueuedAs(sets []v1beta2.PodSet) []v1beta2.PodSet
}

// Suspending is a job whose controller says when it has suspended it.
type Suspending interface {
	// SuspendedAt is when the controller of the job has said that it is suspended, zero if it does not say that now.
	SuspendedAt() time.Time
}

// Selecting is a job whose pods have labels by which they are found.
type Selecting interface {
	// PodSelector selects the pods of the job, and hardly any others.
	PodSelector() labels.Selector
}

// PodSelector selects the pods of a job, among others.
func PodSelector(job Job) labels.Selector {
	if s, is := job.(Selecting); is {
		return s.PodSelector()
	}
	return labels.Everything()
}

// Unserved is a job that may ask for what Hekla does not serve.
type Unserved interface {
	// NotServed says what the job asks for that is not served, "" if nothing. While it is suspended, an Event says so,
	// and it gets no Workload.
	NotServed() string
}

// Selective is a job of a kind of which not every job that names a LocalQueue can be queued.
type Selective interface {
	// IsQueued reports whether the job names a LocalQueue and can be queued. why says of one that names a LocalQueue,
	// and has not begun, why it is not: an Event says so, and the job runs without a Workload.
	IsQueued() (is bool, why string)
}

// IsStarted reports whether a job shows by its template that it was started. A job that is not [Marked] never does.
func IsStarted(job Job) bool {
	m, is := job.(Marked)
	return is && m.IsMarked()
}

// NotServed says what a job asks for that is not served, "" if nothing.
func NotServed(job Job) string {
	if u, is := job.(Unserved); is {
		return u.NotServed()
	}
	return ""
}

// ArePodsQueued reports whether pods of a job are queued by themselves: they name a LocalQueue.
func ArePodsQueued(job Job) bool {
	return slices.ContainsFunc(job.PodSets(), func(s v1beta2.PodSet) bool { return s.Template.Labels[v1beta2.QueueNameLabel] != "" })
}

// GrowsUnserved says that a job or pod asks by an annotation to grow while it runs, which is not served, "" if it does
// not.
func GrowsUnserved(object metav1.Object) string {
	if object.GetAnnotations()[v1beta2.ElasticJobAnnotation] != "true" {
		return ""
	}
	return "the annotation " + v1beta2.ElasticJobAnnotation + " is set, and Hekla does not serve Jobs that grow while they run"
}
