package spared

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Counts are numbers of pods, by queue and by what keeps them from leaving. They tell how many pods each rule spares
// where no pod may be the first to leave: then nothing has to be tried. They hold for preemptors of all queues.
type Counts struct {
	jobs    map[*quota.Node][]*cluster.Job // with pods to evict
	byQueue map[countsKey]*queueCounts
}

// countsKey holds the properties of preemptors that decide which pods of a queue rules protect.
type countsKey struct {
	queue    *quota.Node
	scope    decision.Scope
	priority int32
}

// queueCounts are the counts of one queue.
type queueCounts struct {
	byJob     map[verdict.Protection]int // pods that are protected because of their job, by rule
	protected map[verdict.Protection]int // other protected pods, by rule
	units     map[string]*equalUnits
	loose     int  // pods that may leave neither alone nor with their gang
	waits     bool // as [victims.Selector.Waits]
	// isOpen is set if the end of a pod may let others leave that could not before. The pods of a gang may request
	// different resources, and then the rest may be above the share though the whole was not. A subgroup that is broken
	// has nothing to keep.
	isOpen bool
}

// equalUnits are pods that leave in units of one size.
type equalUnits struct {
	size resources.Vector
	pods int
}

// Planned takes note of a plan of the search itself. Only queues of its victims have other pods to evict than before.
func (c *Counts) Planned(p *cluster.Plan) {
	for _, v := range p.Victims {
		for key := range c.byQueue {
			if key.queue == v.Job.QuotaNode() {
				delete(c.byQueue, key)
			}
		}
	}
}

// Of counts the pods that may not be evicted for a preemptor by rule, if no pod may be the first to leave. Otherwise ok
// is false. areProtected reports whether rules protect all pods as long as objects do not change. It tells the selector
// if a gang waits for another plan. No plugin is asked. hasRight is false if the preemptor's queue has no right to all
// that the job needs: then it has none to any pod, though it may hold one more. It is not for the rules of guaranteed
// shares, nor for pods that request nothing.
func (c *Counts) Of(r *rules.Rules, selector *victims.Selector, hasRight bool) (spared []verdict.Spared, areProtected, ok bool) {
	isEntitled := entitledOnce(r)
	if !hasRight {
		isEntitled = func() bool { return false }
	}
	all := map[verdict.Protection]int{}
	areProtected = true
	for q := range c.queuesWithJobs(r) {
		counted := c.of(r, q)
		add(all, counted.byJob)
		if why := r.Queues.Forbids(q); why.Exists() {
			all[why] += counted.loose
			for _, pods := range counted.protected {
				all[why] += pods
			}
			for _, u := range counted.units {
				all[why] += u.pods
			}
			continue
		}
		if counted.waits {
			selector.Wait()
		}
		add(all, counted.protected)
		areProtected = areProtected && counted.loose == 0 && len(counted.units) == 0
		all[verdict.RuleAtItsMinimum.Protection()] += counted.loose
		for u, why := range counted.reasons(r, q, isEntitled) {
			if why.IsNone() {
				return nil, false, false
			}
			all[why] += u.pods
		}
	}
	return List(all), areProtected, true
}

// NoneFirst reports whether no pod may be the first to leave, whichever pods of the preemptor have nodes. It is about
// what the preemptor's current pod wants, and is not for the rules of guaranteed shares, nor for pods that request
// nothing. help is what may change that, 0 if more than pods and shares may.
func (c *Counts) NoneFirst(r *rules.Rules) (help verdict.Help, is bool) {
	help = verdict.HelpVictims | verdict.HelpShares
	isEntitled, isOpen := entitledOnce(r), false
	for q := range c.queuesWithJobs(r) {
		if r.Queues.Forbids(q).Exists() {
			continue
		}
		counted := c.of(r, q)
		isOpen = isOpen || counted.isOpen
		for _, why := range counted.reasons(r, q, isEntitled) {
			if !r.Queues.StaysProtected(q, why) {
				return 0, false
			}
			if why.Kind == verdict.RuleHasItsShare && help&verdict.HelpOwnQueue == 0 {
				help |= verdict.HelpOwnQueue
				isOpen = isOpen || !r.OnlySharesRefuse()
			}
		}
	}
	if isOpen {
		help = 0
	}
	return help, true
}

// queuesWithJobs yields the queues with pods to evict that the scope includes.
func (c *Counts) queuesWithJobs(r *rules.Rules) iter.Seq[*quota.Node] {
	if c.jobs == nil {
		c.jobs, c.byQueue = map[*quota.Node][]*cluster.Job{}, map[countsKey]*queueCounts{}
		r.Session.Cluster.EachJob(func(j *cluster.Job) {
			if q := j.QuotaNode(); q != nil && j.Yielding() > 0 {
				c.jobs[q] = append(c.jobs[q], j)
			}
		})
	}
	return func(yield func(*quota.Node) bool) {
		for q := range c.jobs {
			if isOwn := q == r.Preemptor.QuotaNode(); isOwn && r.Scope == decision.BetweenQueues || !isOwn && r.Scope == decision.BetweenJobs {
				continue
			}
			if !yield(q) {
				return
			}
		}
	}
}

// reasons yields the units of a queue, and why each may not be the first to leave, none if it may.
func (c *queueCounts) reasons(r *rules.Rules, q *quota.Node, isEntitled func() bool) iter.Seq2[*equalUnits, verdict.Protection] {
	return func(yield func(*equalUnits, verdict.Protection) bool) {
		for _, u := range c.units {
			if !yield(u, r.Queues.WhyProtected(q, u.size, r.Wanted(), isEntitled)) {
				return
			}
		}
	}
}

// entitledOnce asks once whether the preemptor has a right to more, which is the same as long as nothing is placed.
func entitledOnce(r *rules.Rules) func() bool {
	isKnown, is := false, false
	return func() bool {
		if !isKnown {
			isKnown, is = true, r.HasRight()
		}
		return is
	}
}

func add(sum, counts map[verdict.Protection]int) {
	for why, pods := range counts {
		sum[why] += pods
	}
}

// of returns the counts of one queue.
func (c *Counts) of(r *rules.Rules, q *quota.Node) *queueCounts {
	key := countsKey{queue: q, scope: r.Scope}
	if r.Scope != decision.BetweenQueues {
		key.priority = r.Preemptor.Priority
	}
	if known := c.byQueue[key]; known != nil {
		return known
	}
	counted := &queueCounts{byJob: map[verdict.Protection]int{}, protected: map[verdict.Protection]int{}, units: map[string]*equalUnits{}}
	selector := victims.New(r)
	for _, j := range c.jobs[q] {
		counted.count(r, selector, j)
	}
	counted.waits = selector.Waits()
	c.byQueue[key] = counted
	return counted
}

// count adds the pods of a job.
func (c *queueCounts) count(r *rules.Rules, selector *victims.Selector, j *cluster.Job) {
	ofJob := r.ProtectsJobFromAll(j)
	var unprotected []*cluster.Task
	for _, t := range j.Tasks() {
		if !t.Status.Yields() {
			continue
		}
		if ofJob.Exists() {
			c.byJob[ofJob]++
		} else if why := r.ProtectsPod(t); why.Exists() {
			c.protected[why]++
		} else {
			unprotected = append(unprotected, t)
		}
	}
	if len(unprotected) == 0 {
		return
	}
	c.isOpen = c.isOpen || len(j.Subgroups()) > 0
	gang, isGang := selector.WholeGang(j)
	if isGang {
		c.isOpen = c.isOpen || slices.ContainsFunc(gang.Tasks, func(t *cluster.Task) bool { return t.Request().Dimensions() != gang.Requested().Dimensions() })
		c.addUnit(gang.Requested(), len(unprotected))
	}
	for _, t := range unprotected {
		switch alone := !t.IsStandIn && j.KeepsMinimum(t, cluster.Leaving{}); {
		case alone && isGang:
			c.addUnit(t.Request(), 0) // its gang is tried after it, so that the reason of the gang counts
		case alone:
			c.addUnit(t.Request(), 1)
		case !isGang:
			c.loose++
		}
	}
}

func (c *queueCounts) addUnit(size resources.Vector, pods int) {
	key := make([]byte, 0, 8*len(size))
	for _, amount := range size {
		key = binary.LittleEndian.AppendUint64(key, uint64(amount))
	}
	u := c.units[string(key)]
	if u == nil {
		u = &equalUnits{size: size}
		c.units[string(key)] = u
	}
	u.pods += pods
}

// List lists protections with the number of pods that each spares, the most frequent first, in a total order. Nothing
// is worded for it.
func List(counts map[verdict.Protection]int) []verdict.Spared {
	spared := make([]verdict.Spared, 0, len(counts))
	for why, pods := range counts {
		if pods > 0 {
			spared = append(spared, verdict.Spared{Why: why, Pods: pods})
		}
	}
	slices.SortFunc(spared, func(s, t verdict.Spared) int {
		return cmp.Or(cmp.Compare(t.Pods, s.Pods), cmp.Compare(s.Why.Kind, t.Why.Kind), cmp.Compare(s.Why.Plugin, t.Why.Plugin), cmp.Compare(s.Why.Detail, t.Why.Detail))
	})
	return spared
}
