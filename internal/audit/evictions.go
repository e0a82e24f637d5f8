package audit

import (
	"fmt"
)

// forbidden: no scheduler evicts a pod that is spared, one of a queue from which others may not reclaim, or one for a
// pod of lower priority in its own queue.
type forbidden struct{ silent }

func (*forbidden) evicted(a *Auditor, p *pod, c *change) {
	g := a.gangs[p.gang]
	if p.isSpared || g != nil && g.isSpared {
		a.violate(RuleForbiddenEviction, c.at, c.user, fmt.Sprintf("%s says false", preemptable), p)
		return
	}
	nominees := a.nominees(p.node)
	if len(nominees) == 0 {
		a.unknown("a pod was evicted, and no pod was nominated for its node: for whom is not known")
		return
	}
	because := ""
	for _, for_ := range nominees {
		because = a.objection(p, for_)
		if because == "" {
			return
		}
	}
	for i := range a.waited { // the request may have been sent for one that waits no more
		if for_ := &a.waited[i].of; for_.nominated == p.node && a.objection(p, for_) == "" {
			return
		}
	}
	a.violate(RuleForbiddenEviction, c.at, c.user, because, p, nominees[0])
}

// objection is why a pod may not be evicted for another one, "" if it may.
func (a *Auditor) objection(p, for_ *pod) string {
	own, others := a.queueOf(p), a.queueOf(for_)
	switch q := a.queues[own]; {
	case own == others && for_.priority < p.priority:
		return fmt.Sprintf("the pod for which it leaves has the priority %d, and it has %d", for_.priority, p.priority)
	case own != others && q != nil && q.isKnown && !q.isReclaimable:
		return fmt.Sprintf("its queue %s is not reclaimable", own)
	}
	return ""
}

// inVain: the room of an evicted pod is used by another job. Something else may have happened since that lets the other
// job run elsewhere or not at all, and then nothing is proven.
type inVain struct {
	silent
	deadlines []deadline[*void]
	voids     map[string][]*void // by node
}

// void is the room of an evicted pod.
type void struct {
	pod      *pod
	eviction *eviction
	isUsed   bool
}

func (r *inVain) freed(a *Auditor, p *pod, n *node, c *change) {
	if p.eviction == nil {
		return
	}
	v := &void{pod: p, eviction: p.eviction}
	if r.voids == nil {
		r.voids = map[string][]*void{}
	}
	r.voids[n.name] = append(r.voids[n.name], v)
	r.deadlines = append(r.deadlines, deadline[*void]{c.at.Add(a.options.PlanTimeout), v})
	for _, other := range n.pods { // one may have been bound while it left
		v.isUsed = v.isUsed || other.boundAt.After(p.eviction.at) && (other.job() != p.eviction.job || other.created.Before(p.eviction.at))
	}
}

func (r *inVain) bound(a *Auditor, p *pod, n *node, c *change) {
	var regained *void // of those the first: one pod proves one eviction
	isFree := true
	for _, v := range r.voids[n.name] {
		switch {
		case v.isUsed:
		case p.job() != v.eviction.job, p.created.Before(v.eviction.at): // another job, or a pod of the same that waited then
			v.isUsed, isFree = true, false
		case regained == nil && isCalm(v.eviction.at, a.elsewhere):
			regained = v
		}
	}
	if regained != nil && isFree {
		regained.isUsed = true
		a.violate(RuleEvictionInVain, regained.eviction.at, regained.eviction.user, "its own job has its room again, and no other pod has come", regained.pod, n, p)
	}
}

func (r *inVain) tick(a *Auditor) {
	for _, v := range due(&r.deadlines, a.now) {
		if !v.isUsed && isCalm(v.eviction.at, a.elsewhere) {
			a.violate(RuleEvictionInVain, v.eviction.at, v.eviction.user, fmt.Sprintf("no pod has come in its place for %v", a.options.PlanTimeout), v.pod)
		}
		voids := r.voids[v.eviction.node][:0]
		for _, other := range r.voids[v.eviction.node] {
			if other != v {
				voids = append(voids, other)
			}
		}
		if r.voids[v.eviction.node] = voids; len(voids) == 0 {
			delete(r.voids, v.eviction.node)
		}
	}
}

// budgets: no scheduler deletes a pod that a PodDisruptionBudget protects. What is evicted by the eviction API the API
// server has judged itself.
type budgets struct{ silent }

func (*budgets) evicted(a *Auditor, p *pod, c *change) {
	if !c.direct || !p.isReady {
		return
	}
	for _, b := range a.budgets {
		if b.namespace == p.namespace && b.allowed == 0 && c.at.Sub(b.since) > unseen && b.selector != nil && b.selector.Matches(p.labels) {
			a.violate(RuleBudget, c.at, c.user, fmt.Sprintf("it is deleted while PodDisruptionBudget %s allows no disruption", b.key), p)
			return
		}
	}
}
