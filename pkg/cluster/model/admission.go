package model

import (
	"iter"
	"maps"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"

	"hekla.sh/hekla/pkg/cluster"
)

// Clip limits what an admitted job claims to the requests of its pods, as long as it has all pods that it needs to
// start.
func (c *Cluster) Clip(j *cluster.Job) {
	j.Admission.Clipped = true
	c.settleJob(j)
	c.NoteFreed(j)
}

// FollowPods notes which admitted jobs have had pods and have none any more. Then nothing is kept for them until they
// have one, unless their controller creates others.
func (c *Cluster) FollowPods() {
	for _, j := range c.Attended() {
		if !j.IsForeign {
			c.followPods(j)
		}
	}
}

func (c *Cluster) followPods(j *cluster.Job) {
	at := &j.Admission
	switch {
	case j.Phase != schedulingv1beta1.PodGroupInqueue:
	case len(j.Tasks()) > 0:
		at.HadPods, at.Emptied = true, false
	case at.HadPods && !at.Emptied:
		at.Emptied = true
		c.settleJob(j)
		c.NoteFreed(j)
	}
}

// Revisit makes a cycle run at a time even without events, for a waiting job.
func (c *Cluster) Revisit(j *cluster.Job, at time.Time) {
	j.Admission.Revisit = at
	c.backlog.Attend(j)
}

// SendBack makes an admitted job pending admission again, and bars it from one time until another.
func (c *Cluster) SendBack(j *cluster.Job, at, until time.Time) {
	c.SetPhase(j, schedulingv1beta1.PodGroupPending)
	j.BarredUntil, j.BarredFor = until, until.Sub(at)
	c.Revisit(j, until)
}

// BackOff returns the back-off of a namespace, zero if there is none.
func (c *Cluster) BackOff(namespace string) cluster.BackOff { return c.backOffs[namespace] }

// SetBackOff sets the back-off of a namespace. Zero removes it.
func (c *Cluster) SetBackOff(namespace string, b cluster.BackOff) {
	if b == (cluster.BackOff{}) {
		delete(c.backOffs, namespace)
		return
	}
	c.backOffs[namespace] = b
}

// BackOffs returns the namespaces that have a back-off, in no particular order.
func (c *Cluster) BackOffs() iter.Seq2[string, cluster.BackOff] { return maps.All(c.backOffs) }
