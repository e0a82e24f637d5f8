package eviction

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// priority is what a victim counts, most significant first: its queue's priority where queues take from each other, its
// job's, and its own among the pods of its job, counted from the lowest of them. Task priorities rank the pods of one job
// only (law P1): counted so, pods of different jobs of one priority are equal unless their own jobs rank them.
type priority [3]int64

func (p priority) compare(q priority) int {
	return cmp.Or(cmp.Compare(p[0], q[0]), cmp.Compare(p[1], q[1]), cmp.Compare(p[2], q[2]))
}

// importance orders victims.
type importance struct {
	priority
	ends  bool // nothing of its job stays when it leaves
	start time.Time
	uid   types.UID
}

// compare is positive if a victim matters more than another: more priority, the end of its job, an earlier start, a smaller UID.
func (i *importance) compare(j *importance) int {
	if c := cmp.Or(i.priority.compare(j.priority), btoi(i.ends)-btoi(j.ends)); c != 0 {
		return c
	}
	if c := j.start.Compare(i.start); c != 0 {
		return c
	}
	return cmp.Compare(j.uid, i.uid)
}

// importanceOf returns how much a task matters.
func (a *attempt) importanceOf(t *cluster.Task) importance {
	i := importance{start: t.Started(), uid: t.UID()}
	if a.scope.CrossesQueues() {
		i.priority[0] = a.queues.Priority(t.Job.QuotaNode())
	}
	i.priority[1] = int64(t.Job.Priority)
	i.priority[2] = int64(t.Priority) - a.search.lowestOf(t.Job)
	return i
}

// ends reports whether nothing of a job stays when some of its tasks leave, which hold their nodes now, or a task that is promised
// one.
func ends(j *cluster.Job, leaving int) bool { return j.Staying() <= leaving }

// lowestOf returns the lowest task priority in a job.
func (f *Search) lowestOf(j *cluster.Job) int64 {
	lowest, ok := f.lowest[j]
	if !ok {
		for i, t := range j.Tasks() {
			if i == 0 || int64(t.Priority) < lowest {
				lowest = int64(t.Priority)
			}
		}
		f.lowest[j] = lowest
	}
	return lowest
}

// cost is what a node would cost, or a plan; less is better (law K3).
type cost struct {
	violations int // of disruption budgets
	// queue and share are of the giver that is asked last: the most important by its priority and, among equals, the one that
	// is least far above its share as the plan stands (law Q8).
	queue   int64
	share   resources.Ratio
	top     priority
	ended   int // jobs of which nothing stays
	sum     [3]int64
	victims int
	start   time.Time // of the most important victim
	rank    int       // of the node
}

// shift makes every priority count, negative ones too: two victims never cost less than one of them.
const shift = 1 << 31

// add counts one more victim in.
func (c *cost) add(i *importance) {
	if c.victims == 0 || c.top.compare(i.priority) < 0 {
		c.top, c.start = i.priority, i.start
	} else if c.top == i.priority && i.start.Before(c.start) {
		c.start = i.start
	}
	c.victims++
	for k := range c.sum {
		c.sum[k] += i.priority[k] + shift
	}
}

// compare is negative if a cost is less than another.
func (c *cost) compare(d *cost, rules *framework.EvictionRules) int {
	if n := cmp.Or(cmp.Compare(min(c.victims, 1), min(d.victims, 1)), cmp.Compare(c.violations, d.violations)); n != 0 {
		return n
	}
	if n := cmp.Or(cmp.Compare(c.queue, d.queue), d.share.Compare(c.share), c.top.compare(d.top)); n != 0 {
		return n
	}
	if n := cmp.Compare(c.ended, d.ended); n != 0 && rules.Ends {
		return n
	}
	for k := range c.sum {
		if n := cmp.Compare(c.sum[k], d.sum[k]); n != 0 {
			return n
		}
	}
	if n := cmp.Compare(c.victims, d.victims); n != 0 {
		return n
	}
	if rules.Starts {
		if n := d.start.Compare(c.start); n != 0 {
			return n
		}
	}
	return cmp.Compare(c.rank, d.rank)
}
