package simulation

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
)

// charges are the rules about what runs of queued Jobs: only while the Job's Workload is admitted, and no more than it
// holds. A stop takes a while, so each may be broken for some seconds in which nothing is in the way of the
// programs.
type charges struct {
	driver *driver
	dirty  bool
	broken map[types.UID]breach // by the UID of the Job
	calmAt time.Time            // since when nothing is in their way
}

// breach is a rule that is broken.
type breach struct {
	since time.Time
	text  string
}

// stopTakes is how long pods of a Job may run that should not.
const stopTakes = 45 * time.Second

// seen takes in a change.
func (c *charges) seen(before, now *object) {
	of := before
	if now != nil {
		of = now
	}
	switch of.collection {
	case pods, jobs, workloads:
		c.dirty = true
	}
}

// isCalm reports whether nothing keeps the programs from working, or from seeing what there is.
func (d *driver) isCalm() bool {
	if !d.isServed() || d.isLagging() || d.isHit || d.awaitsAnyWrite() {
		return false
	}
	for _, s := range d.streams {
		if d.holds(s) {
			return false
		}
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return !slices.ContainsFunc(d.calls, func(c *call) bool { return c.heldTo > d.step })
}

// check looks at all Jobs if something has changed, and at how long a rule has been broken.
func (c *charges) check() {
	d := c.driver
	if !d.isCalm() {
		c.calmAt = time.Time{}
	} else if c.calmAt.IsZero() {
		c.calmAt = time.Now()
	}
	if c.dirty {
		c.dirty = false
		c.look()
	}
	if c.calmAt.IsZero() || time.Since(c.calmAt) < stopTakes {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(c.broken)) {
		if b := c.broken[uid]; time.Since(b.since) >= stopTakes {
			d.rules.violate("%s, for %s", b.text, time.Since(b.since).Round(time.Second))
			return
		}
	}
}

// look finds the Jobs of which more runs than may.
func (c *charges) look() {
	d := c.driver
	runs := map[types.UID]int64{}
	for _, o := range d.observer.all(pods) {
		ref := owner(o)
		if ref == nil || ref.Kind != "Job" || !isRunning(o.pod) || o.pod.DeletionTimestamp != nil || o.pod.Spec.NodeName == "" {
			continue
		}
		requests := resource.PodRequests(o.pod, resource.PodResourcesOptions{})
		runs[ref.UID] += requests.Cpu().MilliValue()
	}
	admitted := map[types.UID]int64{}
	for _, o := range d.observer.all(workloads) {
		if ref := owner(o); ref != nil && hasCondition(o, "Admitted") {
			admitted[ref.UID] += held(o)
		}
	}
	broken := map[types.UID]breach{}
	for _, o := range d.observer.all(jobs) {
		uid := o.GetUID()
		if runs[uid] == 0 || o.GetLabels()[queueLabel] == "" || isChild(o) {
			continue
		}
		b := breach{since: time.Now()}
		if before, ok := c.broken[uid]; ok {
			b.since = before.since
		}
		charge, isAdmitted := admitted[uid]
		switch {
		case !isAdmitted:
			b.text = "pods of Job " + o.GetNamespace() + "/" + o.GetName() + " run, and its Workload is not admitted"
		case runs[uid] > charge:
			b.text = "pods of Job " + o.GetNamespace() + "/" + o.GetName() + " request more than its Workload holds"
		default:
			continue
		}
		broken[uid] = b
	}
	c.broken = broken
}
