package cluster

import (
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/resources"
)

// Admission records when an admitted job got its pods.
type Admission struct {
	// Since is when the job was admitted, or last had more pods than ever before; zero if not known yet.
	Since time.Time
	Pods  int // the most pods that it has had since it was admitted
	// EmptySince is since when it has had no pods, zero if it has some.
	EmptySince time.Time

	HadPods bool      // it has had some since it was admitted
	Emptied bool      // it has had some, before its admission or after it, and then none
	Clipped bool      // only the requests of its pods are kept for it
	Revisit time.Time // when time alone makes a difference
}

// AwaitsPods reports whether pods that a job needs to start are not created yet, so that their tolerations are not
// known.
func (j *Job) AwaitsPods() bool { return j.Valid()+j.Count(Gated) < max(j.MinMember, 1) }

// ClaimsWithoutPods reports whether a job is admitted, holds quota, and lacks pods that it needs to start.
func (j *Job) ClaimsWithoutPods() bool {
	return j.Phase == schedulingv1beta1.PodGroupInqueue && !j.Usage.Inqueue.IsZero() && j.AwaitsPods()
}

// ClaimsBeyondPods reports whether a job is admitted, has all pods that it needs to start, and holds more quota than
// they request. Later pods may need it, such as those that a driver creates once it runs.
func (j *Job) ClaimsBeyondPods() bool {
	if j.Phase != schedulingv1beta1.PodGroupInqueue || j.Admission.Clipped || j.Usage.Inqueue.IsZero() || j.AwaitsPods() {
		return false
	}
	for d := range j.Usage.Inqueue {
		if dim := resources.Dim(d); j.Usage.Inqueue.At(dim) > j.unplaced(dim) {
			return true
		}
	}
	return false
}

// WantsAttention reports whether an action may have something to do for the job, or must note a verdict. An admitted
// job without enough pods waits for them, and users must see that. A job that needs no pods to start holds quota all
// the same, for no longer than others.
func (j *Job) WantsAttention() bool {
	return j.Group != nil && !j.IsForeign && (j.Count(Pending) > 0 || j.IsPendingAdmission() || (j.Lacks() > 0 || j.isKeptMore()) && !j.Over())
}

// isKeptMore reports whether a job is admitted, and holds quota for pods that may follow.
func (j *Job) isKeptMore() bool {
	return j.Phase == schedulingv1beta1.PodGroupInqueue && (j.AwaitsPods() || j.ClaimsBeyondPods())
}

// IsPendingAdmission reports whether the job waits to be admitted by enqueue.
func (j *Job) IsPendingAdmission() bool {
	return !j.IsForeign && (j.Phase == "" || j.Phase == schedulingv1beta1.PodGroupPending)
}

// BackOff is how long a namespace comes last at admission, because pods of its admitted jobs were not created.
type BackOff struct {
	Until  time.Time
	Length time.Duration
}
