package cluster

import (
	"math/bits"
	"time"

	"hekla.sh/hekla/pkg/verdict"
)

// Cause is what an event, or a decision, has changed in the world that could help a job that waits. A verdict says which kinds
// of change could help its job ([verdict.Help]); helps connects the two, and nothing else wakes a job but what happens to the
// job itself and time.
type Cause uint8

// The causes.
const (
	NodeShown      Cause = iota // a node joins, changes or goes, and with it what the cluster has in all
	NodeTouched                 // what a plugin says of a node has changed with time, or is known only now
	RoomFreed                   // a pod takes less of its node, leaves it, or begins to
	HyperNodeShown              // there are other HyperNodes, or other nodes are in them
	QueueShown                  // a queue joins, changes or goes
	QuotaShown                  // a ResourceQuota does
	ClassShown                  // a PriorityClass does: other jobs come first
	UsageFreed                  // a queue holds less, asks for less, or less of it is spoken for
	ShareChanged                // a queue deserves another share, since others ask for more or less, or more is shared
	PodPlaced                   // a pod gets a node: it may attract or repel others, and be evicted
	PodRelabelled               // a pod that has a node, or is promised one, has other labels, or other annotations that say when it may be evicted
	PodGrown                    // a pod that has a node takes more of it: there is more to be had from its queue, and from it
	GiverChanged                // a PodGroup says otherwise which of its pods may leave
	BudgetFreed                 // a disruption budget allows more, or goes
	RefusalOver                 // a pod that the API server refused to evict may be chosen again
	NamespaceShown              // a namespace has other labels: selectors of namespaces select others
	SupplyShown                 // a volume, a device or a claim comes, changes or goes
	SupplyFreed                 // what was reserved of one is given back
	PlanAdopted                 // a plan comes into force: who leaves counts with no queue any more, and may leave more than it needs
	PlanEnded                   // a plan is cancelled: promises and evictions are taken back
	causes                      // how many there are
)

// helps says which verdicts each cause gives hope to.
var helps = [causes]verdict.Help{
	NodeShown:      verdict.HelpNode | verdict.HelpQueue,
	NodeTouched:    verdict.HelpNode,
	RoomFreed:      verdict.HelpNode,
	HyperNodeShown: verdict.HelpNode,
	QueueShown:     verdict.HelpQueue,
	QuotaShown:     verdict.HelpQueue,
	ClassShown:     verdict.HelpQueue,
	UsageFreed:     verdict.HelpQueue,
	ShareChanged:   verdict.HelpQueue,
	PodPlaced:      verdict.HelpPod,
	PodRelabelled:  verdict.HelpPod,
	PodGrown:       verdict.HelpPod | verdict.HelpQueue,
	GiverChanged:   verdict.HelpPod,
	BudgetFreed:    verdict.HelpPod,
	RefusalOver:    verdict.HelpPod,
	NamespaceShown: verdict.HelpPod,
	SupplyShown:    verdict.HelpSupply,
	SupplyFreed:    verdict.HelpSupply,
	PlanAdopted:    verdict.HelpNode | verdict.HelpPod | verdict.HelpQueue,
	PlanEnded:      verdict.HelpNode | verdict.HelpPod | verdict.HelpQueue,
}

// stamp is how often each kind of change that could help a waiting job has happened.
type stamp struct {
	kinds [8]uint64 // by the bit of a verdict.Help
	job   uint64
}

// note counts something that has happened and that could help.
func (c *Cluster) note(cause Cause) {
	if c.options.Overlook != nil && c.options.Overlook(cause) {
		return
	}
	for kinds := uint8(helps[cause]); kinds != 0; kinds &= kinds - 1 {
		c.world.kinds[bits.TrailingZeros8(kinds)]++
	}
}

// Note counts something that a plugin has found to have changed, and that could help a job that waits.
func (c *Cluster) Note(cause Cause) { c.note(cause) }

// SetVerdict notes why a job waits, in place of all that was noted before; nil says that nothing keeps it. The job need not be looked
// at again until [Cluster.Hopeful] says so, by what this verdict hopes for alone. It is for what is true of the job as a whole;
// [Cluster.AddVerdict] is for one of several reasons.
func (c *Cluster) SetVerdict(j *Job, v *verdict.Verdict) {
	j.judged = c.present(j)
	if !j.Verdict.Equal(v) {
		c.touch(j)
	}
	j.Verdict = v
}

// AddVerdict notes one more reason why a job waits, given after another in the same cycle; the two are held together. Nil clears
// both. What the first hopes for may have happened since: a plan that was adopted in between, for instance, has freed the quota that was
// short. So each kind of change counts from the first of the two that hopes for it.
func (c *Cluster) AddVerdict(j *Job, v *verdict.Verdict) {
	if j.Verdict == nil || v == nil {
		c.SetVerdict(j, v)
		return
	}
	first, hoped := j.judged, uint8(j.Verdict.Help)
	c.SetVerdict(j, j.Verdict.With(v))
	for ; hoped != 0; hoped &= hoped - 1 {
		i := bits.TrailingZeros8(hoped)
		j.judged.kinds[i] = first.kinds[i]
	}
	j.judged.job = first.job
}

// present is what the world looks like now to a job.
func (c *Cluster) present(j *Job) stamp {
	now := c.world
	now.job = j.version
	return now
}

// postponement is how long a job waits that a cycle had no time for: long enough that what has happened meanwhile is taken
// in, and that the cycles leave time for others.
const postponement = 100 * time.Millisecond

// longestRest is after how long a job is looked at again though nothing seems to have happened that could help: should a
// change be missed for what it is, a job waits for minutes, not for ever (source: kube-scheduler does the same).
const longestRest = 5 * time.Minute

// Hopeful reports whether anything has happened that could help a job since it was judged, or it has rested for long. The
// caller looks at the job if it says yes.
func (c *Cluster) Hopeful(j *Job, now time.Time) bool {
	if now.Before(j.NotBefore) {
		return false
	}
	hasRested := !j.lookedAt.IsZero() && now.Sub(j.lookedAt) >= longestRest
	j.Postponed, j.postponed = j.postponed, 0
	hopeful := hasRested || j.Postponed != 0 || c.isHelped(j)
	if hopeful || j.lookedAt.IsZero() {
		j.lookedAt = now
	}
	return hopeful
}

// isHelpedSince reports whether a cycle has itself, after it had judged a job, decided what could help it: nothing need happen
// outside for that, so no event has the next cycle run.
func (c *Cluster) isHelpedSince(j *Job, now time.Time) bool {
	return j.Verdict != nil && j.Verdict.Help&verdict.HelpTime == 0 && !now.Before(j.NotBefore) && c.isHelped(j)
}

// isHelped reports whether anything has happened that the job's verdict hopes for.
func (c *Cluster) isHelped(j *Job) bool {
	v, then := j.Verdict, &j.judged
	switch {
	case v == nil, then.job != j.version, v.Help&verdict.HelpTime != 0:
		return true
	case v.Help == 0:
		// Whoever gave it did not think of what would help. It must not keep the job waiting for ever.
		return then.kinds != c.world.kinds
	}
	for kinds := uint8(v.Help); kinds != 0; kinds &= kinds - 1 {
		if i := bits.TrailingZeros8(kinds); then.kinds[i] != c.world.kinds[i] {
			return true
		}
	}
	return false
}
