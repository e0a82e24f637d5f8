package integration

import "hekla.sh/hekla/pkg/apis/kueue/v1beta2"

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

// Unserved is a job that may ask for what Hekla does not serve.
type Unserved interface {
	// NotServed says what the job asks for that is not served, "" if nothing. While it is suspended, an Event says so,
	// and it gets no Workload.
	NotServed() string
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
