package cluster

import (
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/resources"
)

// Admission is how an admitted job comes by its pods.
type Admission struct {
	// Since is when it was admitted, or had more pods than ever for the first time; zero if it is not known yet.
	Since time.Time
	Pods  int // the most that it has had since it was admitted

	Clipped bool      // it is kept no more than its pods ask for
	Revisit time.Time // when time alone makes a difference
}

// AwaitsPods reports whether pods that a job must have to start are not made yet: what they will tolerate is not known.
func (j *Job) AwaitsPods() bool { return j.Valid()+j.Count(Gated) < max(j.MinMember, 1) }

// ClaimsWithoutPods reports whether a job was admitted, is kept room for, and lacks pods that it must have to start.
func (j *Job) ClaimsWithoutPods() bool {
	return j.Phase == schedulingv1beta1.PodGroupInqueue && !j.Usage.Inqueue.IsZero() && j.AwaitsPods()
}

// ClaimsBeyondPods reports whether a job was admitted, has all pods that it must have to start, and is kept more room than they
// ask for. Pods that are to come later may need it: those that a driver makes once it runs, for instance.
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

// WantsAttention reports whether an action may have something to do for the job, or something is to be said of it: one that
// was admitted and lacks pods waits for them, and its owner is to know. Where it needs none to start it is kept room all the same,
// and that for no longer than others are.
func (j *Job) WantsAttention() bool {
	return j.Group != nil && !j.IsForeign && (j.Count(Pending) > 0 || j.IsPendingAdmission() || (j.Lacks() > 0 || j.isKeptMore()) && !j.Over())
}

// isKeptMore reports whether a job was admitted, and more pods may come for which it is kept room.
func (j *Job) isKeptMore() bool {
	return j.Phase == schedulingv1beta1.PodGroupInqueue && (j.AwaitsPods() || j.ClaimsBeyondPods())
}

// IsPendingAdmission reports whether the job waits to be admitted by enqueue.
func (j *Job) IsPendingAdmission() bool {
	return !j.IsForeign && (j.Phase == "" || j.Phase == schedulingv1beta1.PodGroupPending)
}
