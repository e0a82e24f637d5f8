package model

import (
	"iter"
	"maps"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// BackOff is how long a namespace comes last at admission, since jobs of it were admitted and brought no pods.
type BackOff struct {
	Until  time.Time
	Length time.Duration
}

// Clip has an admitted job be kept no more than its pods ask for, as long as it has all that it must have to start.
func (c *Cluster) Clip(j *cluster.Job) {
	j.Admission.Clipped = true
	c.settleJob(j)
	c.world.Note(wake.UsageFreed)
}

// Revisit has a cycle run at a time though nothing may have happened by then, on account of a job that waits.
func (c *Cluster) Revisit(j *cluster.Job, at time.Time) { j.Admission.Revisit = at }

// SendBack takes back that a job was admitted: it is not admitted again before a time.
func (c *Cluster) SendBack(j *cluster.Job, until time.Time) {
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
