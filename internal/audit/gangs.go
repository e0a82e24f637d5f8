package audit

import (
	"fmt"
	"time"
)

// partialGang: no part of a gang holds nodes for long while the others have none. A gang that was whole once and lost
// pods is left to its controller, unless a scheduler evicted them.
type partialGang struct {
	silent
	deadlines []deadline[*gang] // in the order of time
}

// deadline is something that is looked at again at a time.
type deadline[T any] struct {
	at time.Time
	of T
}

// due takes the deadlines out that have come.
func due[T any](all *[]deadline[T], now time.Time) (come []T) {
	for len(*all) > 0 && !(*all)[0].at.After(now) {
		come = append(come, (*all)[0].of)
		(*all)[0] = deadline[T]{}
		*all = (*all)[1:]
	}
	return come
}

// standing is how many pods of a gang hold nodes or have succeeded, and whether they are enough.
func (g *gang) standing() (pods int, isWhole bool) {
	tasks := map[string]int{}
	for _, p := range g.members {
		if p.counts && !p.isLeaving && p.eviction == nil || p.hasEnded && p.node != "" {
			pods++
			tasks[p.task]++
		}
	}
	isWhole = pods >= g.min
	for task, least := range g.tasks {
		isWhole = isWhole && tasks[task] >= least
	}
	return pods, isWhole
}

func (r *partialGang) bound(a *Auditor, p *pod, _ *node, c *change) {
	r.look(a, p, c, "a part of it was bound")
}
func (r *partialGang) freed(a *Auditor, p *pod, _ *node, c *change) { r.look(a, p, c, "") }
func (r *partialGang) evicted(a *Auditor, p *pod, c *change) {
	r.look(a, p, c, "a part of it was evicted")
}

// look notes whether the gang of a pod is partial. because is what a scheduler did, "" if something else happened.
func (r *partialGang) look(a *Auditor, p *pod, c *change, because string) {
	g := a.gangs[p.gang]
	if g == nil || !g.isKnown {
		return
	}
	pods, isWhole := g.standing()
	switch {
	case isWhole || pods == 0:
		g.partialSince, g.wasWhole = time.Time{}, isWhole && pods > 0
	case because == "" || !g.partialSince.IsZero(), g.wasWhole && c.what == bound:
	default:
		g.partialSince, g.because = c.at, because
		r.deadlines = append(r.deadlines, deadline[*gang]{c.at.Add(a.options.GangTimeout), g})
	}
}

func (r *partialGang) tick(a *Auditor) {
	for _, g := range due(&r.deadlines, a.now) {
		pods, isWhole := g.standing()
		if g.partialSince.IsZero() || isWhole || pods == 0 || !g.isKnown || a.now.Before(g.partialSince.Add(a.options.GangTimeout)) {
			continue
		}
		said := fmt.Sprintf("%s, and for %v since %d pods hold nodes of a gang of at least %d", g.because, a.options.GangTimeout, pods, g.min)
		a.violate(RulePartialGang, g.partialSince, "", said, g)
		g.partialSince = time.Time{}
	}
}

// overtaken: of jobs with the same shape in one namespace and queue, not many later ones of no higher priority start
// before one that waits.
type overtaken struct{ silent }

// wait is how long a job has waited as a whole, and how many later ones have started meanwhile. Gangs have one, and
// pods without a gang.
type wait struct {
	hasStarted bool
	passed     int
}

// patience is how long a job has been whole before it counts as overtaken.
const patience = time.Minute

func (*overtaken) bound(a *Auditor, p *pod, _ *node, c *change) {
	if c.what != bound {
		return
	}
	starts := a.waitOf(p)
	if starts.hasStarted {
		return
	}
	starts.hasStarted = true
	_, created, _ := a.wholeSince(p)
	line, told := a.lines[p.shape], map[*wait]bool{}
	kept := line[:0]
	for i, other := range line {
		if a.pods[other.uid] != other || other.counts || other.hasEnded {
			continue // it waits no more
		}
		if !other.created.Add(unseen).Before(created) {
			kept = append(kept, line[i:]...) // the others came later
			break
		}
		kept = append(kept, other)
		waits := a.waitOf(other)
		if waits == starts || told[waits] || waits.hasStarted || other.isGated || other.isLeaving || other.priority < p.priority ||
			a.queueOf(other) != a.queueOf(p) || a.leastOf(other) != a.leastOf(p) {
			continue
		}
		object, since, isWhole := a.wholeSince(other)
		if !isWhole || c.at.Sub(since) < patience {
			continue
		}
		told[waits] = true
		if waits.passed++; waits.passed == a.options.Overtakes+1 {
			said := fmt.Sprintf("%d later jobs of the same shape and of no higher priority have started before it", waits.passed)
			a.violate(RuleOvertaken, c.at, c.user, said, object, p)
		}
	}
	clear(line[len(kept):])
	if a.lines[p.shape] = kept; len(kept) == 0 {
		delete(a.lines, p.shape)
	}
}

func (a *Auditor) waitOf(p *pod) *wait {
	if g := a.gangs[p.gang]; g != nil {
		return &g.wait
	}
	return &p.wait
}

func (a *Auditor) queueOf(p *pod) string {
	if g := a.gangs[p.gang]; g != nil {
		return g.queue
	}
	return ""
}

func (a *Auditor) leastOf(p *pod) int {
	if g := a.gangs[p.gang]; g != nil {
		return g.min
	}
	return 1
}

// wholeSince is the job of a pod, and since when all pods exist that it needs.
func (a *Auditor) wholeSince(p *pod) (job fmt.Stringer, since time.Time, isWhole bool) {
	g := a.gangs[p.gang]
	if g == nil {
		return p, p.created, true
	}
	exist := 0
	since = g.created
	for _, m := range g.members {
		if m.created.After(since) {
			since = m.created
		}
		if !m.isGated && !m.isLeaving {
			exist++
		}
	}
	return g, since, g.isKnown && exist >= g.min
}
