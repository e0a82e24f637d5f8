package cluster

import (
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Admission is how an admitted job comes by its pods.
type Admission struct {
	// Since is when it was admitted, or had more pods than ever for the first time; zero if it is not known yet.
	Since time.Time
	Pods  int // the most that it has had since it was admitted

	revisit time.Time // when time alone makes a difference
}

// AwaitsPods reports whether pods that a job must have to start are not made yet: what they will tolerate is not known.
func (j *Job) AwaitsPods() bool { return j.Valid()+j.counts[Gated] < max(j.MinMember, 1) }

// ClaimsWithoutPods reports whether a job was admitted, is kept room for, and lacks pods that it must have to start.
func (j *Job) ClaimsWithoutPods() bool {
	return j.Phase == schedulingv1beta1.PodGroupInqueue && !j.Usage.Inqueue.IsZero() && j.AwaitsPods()
}

// Revisit has a cycle run at a time though nothing may have happened by then, on account of a job that waits.
func (c *Cluster) Revisit(j *Job, at time.Time) { j.Admission.revisit = at }

// SendBack takes back that a job was admitted: it is not admitted again before a time.
func (c *Cluster) SendBack(j *Job, until time.Time) {
	c.SetPhase(j, schedulingv1beta1.PodGroupPending)
	j.BarredUntil = until
	c.Revisit(j, until)
}
