package cluster

import (
	"iter"
	"maps"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/resources"
)

// Admission is how an admitted job comes by its pods.
type Admission struct {
	// Since is when it was admitted, or had more pods than ever for the first time; zero if it is not known yet.
	Since time.Time
	Pods  int // the most that it has had since it was admitted

	clipped bool      // it is kept no more than its pods ask for
	revisit time.Time // when time alone makes a difference
}

// BackOff is how long a namespace comes last at admission, since jobs of it were admitted and brought no pods.
type BackOff struct {
	Until  time.Time
	Length time.Duration
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
	if j.Phase != schedulingv1beta1.PodGroupInqueue || j.Admission.clipped || j.Usage.Inqueue.IsZero() || j.AwaitsPods() {
		return false
	}
	for d := range j.Usage.Inqueue {
		if dim := resources.Dim(d); j.Usage.Inqueue.At(dim) > j.unplaced(dim) {
			return true
		}
	}
	return false
}

// Clip has an admitted job be kept no more than its pods ask for, as long as it has all that it must have to start.
func (c *Cluster) Clip(j *Job) {
	j.Admission.clipped = true
	c.settleJob(j)
	c.world.Note(wake.UsageFreed)
}

// Revisit has a cycle run at a time though nothing may have happened by then, on account of a job that waits.
func (c *Cluster) Revisit(j *Job, at time.Time) { j.Admission.revisit = at }

// SendBack takes back that a job was admitted: it is not admitted again before a time.
func (c *Cluster) SendBack(j *Job, until time.Time) {
	c.SetPhase(j, schedulingv1beta1.PodGroupPending)
	j.BarredUntil = until
	c.Revisit(j, until)
}

// BackOff is the back-off of a namespace, zero if it has had none for long.
func (c *Cluster) BackOff(namespace string) BackOff { return c.backOffs[namespace] }

// SetBackOff has a namespace come last at admission; a zero back-off forgets that there was one.
func (c *Cluster) SetBackOff(namespace string, b BackOff) {
	if b == (BackOff{}) {
		delete(c.backOffs, namespace)
		return
	}
	c.backOffs[namespace] = b
}

// BackOffs returns the namespaces that have a back-off, in no particular order.
func (c *Cluster) BackOffs() iter.Seq2[string, BackOff] { return maps.All(c.backOffs) }
