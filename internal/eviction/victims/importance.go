package victims

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// priority is the priority of a victim, the most significant part first: of its queue if queues count, of its job, and
// its task priority above the lowest in the job. Task priorities only rank the pods of one job (rule P1). Taken
// relative to the lowest, they do not rank pods of different jobs with the same priority.
type priority [3]int64

func (p priority) compare(q priority) int {
	return cmp.Or(cmp.Compare(p[0], q[0]), cmp.Compare(p[1], q[1]), cmp.Compare(p[2], q[2]))
}

// importance sorts victims.
type importance struct {
	class rules.Class
	priority
	endsJob bool // its job has no pods left without it
	start   time.Time
	size    resources.Ratio
	uid     types.UID
}

// compareRank compares what counts before the start: the class, the priority, and the end of the job.
func (i *importance) compareRank(j *importance) int {
	return cmp.Or(cmp.Compare(i.class, j.class), i.priority.compare(j.priority), btoi(i.endsJob)-btoi(j.endsJob))
}

// compare is positive if i is more important than j: a higher class, a higher priority, the end of its job, an earlier
// start, a larger size by rule G8, or a smaller UID.
func (i *importance) compare(j *importance) int {
	if c := i.compareRank(j); c != 0 {
		return c
	}
	if c := j.start.Compare(i.start); c != 0 {
		return c
	}
	return cmp.Or(i.size.Compare(j.size), cmp.Compare(j.uid, i.uid))
}

// importanceOf returns the importance of a pod.
func (s *Selector) importanceOf(t *cluster.Task) importance {
	i := importance{start: t.Started(), uid: t.UID()}
	if s.rules.RanksJobs() {
		return rankedImportance(s.rules, i, t)
	}
	if s.rules.Scope.CrossesQueues() {
		i.priority[0] = s.rules.Queues.Priority(t.Job.QuotaNode())
	}
	i.priority[1] = int64(t.Job.Priority)
	i.priority[2] = int64(t.Priority) - s.rules.LowestTaskPriority(t.Job)
	return i
}

// Cost is the cost of the victims on a node, or of all victims of a plan. Less is better (rule K3).
type Cost struct {
	// marks is the number of victims that have opted out, in the upper half, and of first pods of applications (rule
	// G8).
	marks      int64
	violations int // of disruption budgets
	LastQueue
	top       priority
	endedJobs int // jobs without any pods left
	sum       [3]int64
	victims   int
	start     time.Time // of the most important victim
	rank      int       // of the node
}

// shift is added to every priority, so that negative ones count too: two victims must never cost less than one of them.
const shift = 1 << 31

// add adds a victim to the cost.
func (c *Cost) add(i *importance) {
	if c.victims == 0 || c.top.compare(i.priority) < 0 {
		c.top, c.start = i.priority, i.start
	} else if c.top == i.priority && i.start.Before(c.start) {
		c.start = i.start
	}
	c.victims++
	c.mark(i.class)
	for k := range c.sum {
		c.sum[k] += i.priority[k] + shift
	}
}

// optedOut is one victim that has opted out, in the unit of the marks of a cost.
const optedOut = 1 << 32

func (c *Cost) mark(class rules.Class) {
	if class&rules.OptedOut != 0 {
		c.marks += optedOut
	}
	if class&rules.Originator != 0 {
		c.marks++
	}
}

// merge adds the cost of a whole gang.
func (c *Cost) merge(d *Cost) {
	switch {
	case c.victims == 0 || c.top.compare(d.top) < 0:
		c.top, c.start = d.top, d.start
	case c.top == d.top && d.start.Before(c.start):
		c.start = d.start
	}
	c.victims += d.victims
	c.marks += d.marks
	for k := range c.sum {
		c.sum[k] += d.sum[k]
	}
}

// Compare is negative if c is less than d, by the rules of an action.
func (c *Cost) Compare(d *Cost, action *framework.EvictionRules) int {
	if n := c.compareFirst(d); n != 0 {
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
	return c.compareLast(d, action)
}

// compareLast compares what counts after the number of victims.
func (c *Cost) compareLast(d *Cost, action *framework.EvictionRules) int {
	if action.Starts {
		if n := d.start.Compare(c.start); n != 0 {
			return n
		}
	}
	return cmp.Compare(c.rank, d.rank)
}

// compareFirst compares what counts before the ends of jobs.
func (c *Cost) compareFirst(d *Cost) int {
	if n := cmp.Compare(min(c.victims, 1), min(d.victims, 1)); n != 0 {
		return n
	}
	if c.marks != d.marks || c.violations != d.violations || c.queue != d.queue {
		return cmp.Or(cmp.Compare(c.marks, d.marks), cmp.Compare(c.violations, d.violations), cmp.Compare(c.queue, d.queue))
	}
	if c.share != d.share {
		if n := d.share.Compare(c.share); n != 0 {
			return n
		}
	}
	return c.top.compare(d.top)
}

// Cost returns the cost of units that are evicted together from a node of this rank.
func (s *Selector) Cost(units []Unit, rank int) Cost {
	return s.CostOf(units, s.LastQueue(units), rank)
}

// CostOf is [Selector.Cost] for units whose last queue was found out at another point of the plan.
func (s *Selector) CostOf(units []Unit, last LastQueue, rank int) Cost {
	c := Cost{LastQueue: last, rank: rank}
	for i := range units {
		u := &units[i]
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
	if !s.rules.RanksJobs() {
		c.endedJobs = endedJobs(units)
	}
	return c
}

// LastQueue is the queue that is chosen last (rule Q8): the one with the highest priority and, among equals, least
// above its share at one point of a plan. By rule G8 it is the rank of the job.
type LastQueue struct {
	queue int64 // its priority
	share resources.Ratio
}

// LastQueue returns the last queue of units at this point of the plan.
func (s *Selector) LastQueue(units []Unit) (last LastQueue) {
	if !s.rules.Scope.CrossesQueues() {
		return last
	}
	for i := range units {
		q := units[i].Job.QuotaNode()
		priority, ratio := rankOf(s.rules, units[i].Job), s.rules.Queues.Standing(q).Ratio
		if i == 0 || priority > last.queue || priority == last.queue && ratio.Compare(last.share) < 0 {
			last = LastQueue{queue: priority, share: ratio}
		}
	}
	return last
}

// endedJobs counts the jobs that would end if the units were evicted together. In the model the units are on their
// nodes.
func endedJobs(units []Unit) int {
	if len(units) == 1 {
		return btoi(units[0].Job.Staying() <= len(units[0].Tasks))
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
		count += btoi(j.Staying() <= leaving[j])
	}
	return count
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
