package victims

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// priority is how a victim counts, most significant first: its queue's priority between queues, its job's priority, and its task
// priority, counted from the lowest of its job. Task priorities rank the pods of one job only (rule P1). Counted so, pods of
// different jobs of one priority are equal unless their own jobs rank them.
type priority [3]int64

func (p priority) compare(q priority) int {
	return cmp.Or(cmp.Compare(p[0], q[0]), cmp.Compare(p[1], q[1]), cmp.Compare(p[2], q[2]))
}

// importance orders victims.
type importance struct {
	priority
	endsJob bool // nothing of its job stays when it leaves
	start   time.Time
	uid     types.UID
}

// compare is positive if a victim matters more than another: more priority, the end of its job, an earlier start, a smaller UID.
func (i *importance) compare(j *importance) int {
	if c := cmp.Or(i.priority.compare(j.priority), btoi(i.endsJob)-btoi(j.endsJob)); c != 0 {
		return c
	}
	if c := j.start.Compare(i.start); c != 0 {
		return c
	}
	return cmp.Compare(j.uid, i.uid)
}

// importanceOf returns how much a pod matters.
func (s *Selector) importanceOf(t *cluster.Task) importance {
	i := importance{start: t.Started(), uid: t.UID()}
	if s.rules.Scope.CrossesQueues() {
		i.priority[0] = s.rules.Queues.Priority(t.Job.QuotaNode())
	}
	i.priority[1] = int64(t.Job.Priority)
	i.priority[2] = int64(t.Priority) - s.rules.LowestTaskPriority(t.Job)
	return i
}

// endsJob reports whether nothing of a job stays when some of its pods leave: no pod that holds a node, and none that is promised one.
func endsJob(j *cluster.Job, leaving int) bool { return j.Staying() <= leaving }

// Cost is what the victims on a node cost, or those of a plan. Less is better (rule K3).
type Cost struct {
	violations int // of disruption budgets
	// queue and share are of the queue whose victims are chosen last: the highest priority and, among equals, the queue that is least
	// far above its share as the plan stands (rule Q8).
	queue     int64
	share     resources.Ratio
	top       priority
	endedJobs int // of which nothing stays
	sum       [3]int64
	victims   int
	start     time.Time // of the most important victim
	rank      int       // of the node
}

// shift makes every priority count, negative ones too: two victims never cost less than one of them.
const shift = 1 << 31

// add counts one more victim in.
func (c *Cost) add(i *importance) {
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

// merge counts in what a whole gang costs.
func (c *Cost) merge(d *Cost) {
	switch {
	case c.victims == 0 || c.top.compare(d.top) < 0:
		c.top, c.start = d.top, d.start
	case c.top == d.top && d.start.Before(c.start):
		c.start = d.start
	}
	c.victims += d.victims
	for k := range c.sum {
		c.sum[k] += d.sum[k]
	}
}

// Compare is negative if a cost is less than another, as an action chooses victims.
func (c *Cost) Compare(d *Cost, action *framework.EvictionRules) int {
	if n := cmp.Or(cmp.Compare(min(c.victims, 1), min(d.victims, 1)), cmp.Compare(c.violations, d.violations)); n != 0 {
		return n
	}
	if n := cmp.Or(cmp.Compare(c.queue, d.queue), d.share.Compare(c.share), c.top.compare(d.top)); n != 0 {
		return n
	}
	if n := cmp.Compare(c.endedJobs, d.endedJobs); n != 0 && action.Ends {
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
	if action.Starts {
		if n := d.start.Compare(c.start); n != 0 {
			return n
		}
	}
	return cmp.Compare(c.rank, d.rank)
}

// Cost returns what units cost that leave together on a node of a rank.
func (s *Selector) Cost(units []Unit, rank int) Cost {
	c := Cost{rank: rank}
	for i := range units {
		u := &units[i]
		s.countQueue(&c, i == 0, u.Job.QuotaNode())
		if g := s.known(u.Job); u.Whole && g != nil && len(u.Tasks) == len(g.tasks) {
			c.merge(&g.cost)
			continue
		}
		for _, t := range u.Tasks {
			i := s.importanceOf(t)
			c.add(&i)
		}
	}
	for _, pods := range s.violations(lastFirst(units)) {
		c.violations += pods
	}
	c.endedJobs = endedJobs(units)
	return c
}

// countQueue counts in the queue that a unit leaves.
func (s *Selector) countQueue(c *Cost, isFirst bool, q *quota.Node) {
	if !s.rules.Scope.CrossesQueues() {
		return
	}
	priority, ratio := s.rules.Queues.Priority(q), s.rules.Queues.Standing(q).Ratio
	if isFirst || priority > c.queue || priority == c.queue && ratio.Compare(c.share) < 0 {
		c.queue, c.share = priority, ratio
	}
}

// endedJobs is how many jobs units would end that leave together. The model shows the units on their nodes.
func endedJobs(units []Unit) int {
	if len(units) == 1 {
		return btoi(endsJob(units[0].Job, len(units[0].Tasks)))
	}
	leaving := map[*cluster.Job]int{}
	var jobs []*cluster.Job
	for i := range units {
		u := &units[i]
		if leaving[u.Job] == 0 {
			jobs = append(jobs, u.Job)
		}
		leaving[u.Job] += len(u.Tasks)
	}
	count := 0
	for _, j := range jobs {
		count += btoi(endsJob(j, leaving[j]))
	}
	return count
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
