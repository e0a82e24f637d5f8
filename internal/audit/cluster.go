package audit

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// takePod takes in what a request did to a pod.
func (a *Auditor) takePod(c *change) {
	p := a.names[c.key]
	if c.uid != "" && (p == nil || p.uid != c.uid) {
		p = a.pods[c.uid]
	}
	switch c.what {
	case observed:
		a.observePod(p, c)
	case bound:
		if len(a.options.Schedulers) == 0 {
			a.schedulers[c.user] = true
		}
		a.report.Bindings++
		if p == nil {
			a.unknown("a pod was bound of which the log does not tell")
			return
		}
		p.bindings++
		for _, r := range a.rules {
			r.binding(a, p, c)
		}
		if p.node == "" {
			p.node = c.node
		}
		a.count(p, c)
	case evicted:
		a.evict(p, c)
	case deleted:
		if p != nil {
			if !p.counts { // it waited
				a.givesUp(p, c)
			}
			a.free(p, c)
			a.forget(p)
		}
	}
}

// evict takes in that a pod was asked to leave. It is gone at once if it has ended, or has no time to end in.
func (a *Auditor) evict(p *pod, c *change) {
	if p == nil {
		return
	}
	if a.schedulers[c.user] && p.eviction == nil && !p.isLeaving && !p.hasEnded && p.counts {
		a.report.Evictions++
		p.eviction = &eviction{at: c.at, user: c.user, node: p.node, job: p.job()}
		for _, r := range a.rules {
			r.evicted(a, p, c)
		}
	}
	if c.uid == "" && !p.isFinalized && (p.node == "" || p.hasEnded || c.grace != nil && *c.grace == 0 || c.grace == nil && p.isAbrupt) {
		a.take(&change{at: c.at, user: c.user, what: deleted, kind: aPod, key: p.key, uid: p.uid})
	}
}

// observePod takes in a pod as an answer shows it. before is what was known of it, nil if nothing.
func (a *Auditor) observePod(before *pod, c *change) {
	p := c.object.(*pod)
	p.readyIn = p.version
	if before != nil && before.uid == p.uid && (a.schedulers[c.user] || !isNewer(p.version, before.readyIn)) {
		p.isReady, p.readyIn = before.isReady, before.readyIn
	}
	if before == nil || before.uid != p.uid {
		if before != nil {
			a.free(before, c)
			a.forget(before)
		}
		a.pods[p.uid], a.names[p.key], p.nominatedAt, p.nominatedBy = p, p, c.at, c.user
		if p.node == "" && !p.hasEnded {
			a.lines[p.shape] = append(a.lines[p.shape], p)
		}
		a.join(p)
	} else if !isNewer(p.version, before.version) {
		before.isReady, before.readyIn = p.isReady, p.readyIn
		return
	} else {
		if before.counts && !maps.Equal(before.request, p.request) { // it was resized
			a.recount(before, p.request)
		}
		a.leave(before)
		was := *before
		*before = *p
		before.bindings, before.boundAt, before.boundBy, before.counts, before.charged, before.eviction = was.bindings, was.boundAt, was.boundBy, was.counts, was.charged, was.eviction
		before.wait, before.shape, before.created = was.wait, was.shape, was.created // it stays where it is in its line
		if before.node == "" {
			before.node = was.node
		}
		if before.nominatedAt, before.nominatedBy = c.at, c.user; was.nominated == before.nominated {
			before.nominatedAt, before.nominatedBy = was.nominatedAt, was.nominatedBy
		}
		p = before
		a.join(p)
	}
	if p.node != "" && !p.hasEnded {
		a.count(p, c)
	} else if p.hasEnded {
		a.free(p, c)
	}
}

// count has a pod hold room on its node, in its gang and in its queue.
func (a *Auditor) count(p *pod, c *change) {
	if p.counts || p.hasEnded {
		return
	}
	p.counts, p.boundAt, p.boundBy = true, c.at, c.user
	a.waitsNoMore(p)
	n := a.nodes[p.node]
	if n == nil {
		n = &node{name: p.node, used: amounts{}, pods: map[types.UID]*pod{}}
		a.nodes[p.node] = n
	}
	n.used.add(p.request, 1)
	n.pods[p.uid] = p
	if g := a.gangs[p.gang]; g != nil && g.isKnown && g.queue != "" {
		p.charged = g.queue
		a.charge(p.charged, p.request, 1)
	}
	for _, r := range a.rules {
		r.bound(a, p, n, c)
	}
}

// free has a pod hold no room any more.
func (a *Auditor) free(p *pod, c *change) {
	if !p.counts {
		return
	}
	p.counts = false
	n := a.nodes[p.node]
	n.used.add(p.request, -1)
	delete(n.pods, p.uid)
	if p.charged != "" {
		a.charge(p.charged, p.request, -1)
		p.charged = ""
	}
	if p.eviction == nil {
		a.givesUp(p, c)
	}
	for _, r := range a.rules {
		r.freed(a, p, n, c)
	}
	if len(n.pods) == 0 && !n.isKnown {
		delete(a.nodes, n.name)
	}
}

// givesUp notes that a pod leaves room, or does not wait for any more, and no scheduler has asked it to. When its
// Workload is preempted, that is the room of which its preemptor was to have a part.
func (a *Auditor) givesUp(p *pod, c *change) {
	a.elsewhere = c.at
	if w := a.workloadOf(p); w == nil || w.preemptor == "" {
		a.otherRoom = c.at
	}
}

// workloadOf is the Workload that a pod runs for, nil if it is not known.
func (a *Auditor) workloadOf(p *pod) *workload {
	if p.workload != "" {
		return a.workloads[key{p.namespace, p.workload}]
	}
	for _, uid := range [...]types.UID{p.owner, p.uid} {
		if w := a.workloads[a.owned[uid]]; w != nil {
			return w
		}
	}
	return nil
}

// recount has a pod hold another amount.
func (a *Auditor) recount(p *pod, request amounts) {
	a.nodes[p.node].used.add(p.request, -1)
	a.nodes[p.node].used.add(request, 1)
	if p.charged != "" {
		a.charge(p.charged, p.request, -1)
		a.charge(p.charged, request, 1)
	}
}

// charge adds an amount to a queue and those above it.
func (a *Auditor) charge(name string, request amounts, sign int64) {
	for depth := 0; name != "" && depth < 32; depth++ {
		q := a.queues[name]
		if q == nil {
			q = &queue{name: name, used: amounts{}}
			a.queues[name] = q
		}
		q.used.add(request, sign)
		name = q.parent
	}
}

func (a *Auditor) forget(p *pod) {
	a.leave(p)
	delete(a.pods, p.uid)
	if a.names[p.key] == p {
		delete(a.names, p.key)
	}
}

// join makes a pod a member of its gang, and one that waits for room on its node.
func (a *Auditor) join(p *pod) {
	if p.nominated != "" && p.node == "" {
		if a.waitingFor[p.nominated] == nil {
			a.waitingFor[p.nominated] = map[types.UID]*pod{}
		}
		a.waitingFor[p.nominated][p.uid] = p
	}
	if p.gang.name == "" {
		return
	}
	g := a.gangs[p.gang]
	if g == nil {
		g = &gang{key: p.gang, members: map[types.UID]*pod{}}
		a.gangs[p.gang] = g
	}
	g.members[p.uid] = p
}

func (a *Auditor) leave(p *pod) {
	a.waitsNoMore(p)
	g := a.gangs[p.gang]
	if g == nil {
		return
	}
	delete(g.members, p.uid)
	if len(g.members) == 0 && !g.isKnown {
		delete(a.gangs, g.key)
	}
}

func (a *Auditor) waitsNoMore(p *pod) {
	if a.waitingFor[p.nominated][p.uid] != nil {
		a.waited = append(a.waited, deadline[pod]{a.now.Add(unseen), *p})
	}
	if delete(a.waitingFor[p.nominated], p.uid); len(a.waitingFor[p.nominated]) == 0 {
		delete(a.waitingFor, p.nominated)
	}
}

// observe takes in an object of another kind.
func (a *Auditor) observe(c *change) {
	switch o := c.object.(type) {
	case *node:
		a.observeNode(o, c)
	case *gang:
		a.observeGang(o)
	case *queue:
		a.observeQueue(o, c)
	case *budget:
		if before := a.budgets[o.key]; before == nil || isNewer(o.version, before.version) {
			if o.since = c.at; before != nil && before.allowed == o.allowed {
				o.since = before.since
			}
			a.budgets[o.key] = o
		}
	case *quotas:
		all := a.cqs
		if c.kind == aCohort {
			all = a.cohorts
		}
		if before := all[o.name]; before == nil || isNewer(o.version, before.version) {
			o.keep(before, c.at)
			a.otherQuota = c.at
			all[o.name] = o
		}
	case *workload:
		a.observeWorkload(o, c)
	case setting:
		if before, isKnown := a.settings[o.uid]; !isKnown || isNewer(o.version, before.version) && o.isOther(before) {
			a.otherQuota = c.at
		}
		a.settings[o.uid] = o
	}
}

func (a *Auditor) observeNode(o *node, c *change) {
	n := a.nodes[o.name]
	if n == nil {
		n = &node{name: o.name, used: amounts{}, pods: map[types.UID]*pod{}}
		a.nodes[o.name] = n
	}
	if !isNewer(o.version, n.version) {
		return
	}
	if n.isKnown {
		n.before, n.until = n.offers(c.at), c.at.Add(unseen)
	} else {
		n.isWhole = n.isWhole || !o.created.Before(a.begin.Truncate(time.Second))
	}
	n.isKnown, n.version, n.created, n.allocatable = true, o.version, o.created, o.allocatable
	if !maps.Equal(n.before, n.allocatable) {
		a.elsewhere, a.otherRoom = c.at, c.at
	}
}

func (a *Auditor) observeGang(o *gang) {
	g := a.gangs[o.key]
	if g == nil {
		o.members = map[types.UID]*pod{}
		a.gangs[o.key] = o
		return
	}
	if !isNewer(o.version, g.version) {
		return
	}
	o.wait, o.members, o.partialSince, o.because, o.wasWhole = g.wait, g.members, g.partialSince, g.because, g.wasWhole && (g.uid == "" || g.uid == o.uid)
	if g.uid != "" && g.uid != o.uid {
		o.partialSince = time.Time{}
	}
	*g = *o
}

func (a *Auditor) observeQueue(o *queue, c *change) {
	q := a.queues[o.name]
	if q == nil {
		o.used = amounts{}
		a.queues[o.name] = o
		return
	}
	if !isNewer(o.version, q.version) {
		return
	}
	if q.parent != o.parent { // what it holds counts below another queue
		used := amounts{}
		used.add(q.used, 1)
		a.charge(q.parent, used, -1)
		a.charge(o.parent, used, 1)
	}
	o.used = q.used
	if q.isKnown {
		o.before, o.until = q.capability, c.at.Add(unseen)
		if c.at.Before(q.until) {
			o.before = q.capability.laxer(q.before)
		}
	}
	a.otherQuota = c.at // it may bound ClusterQueues
	*q = *o
}

func (a *Auditor) observeWorkload(o *workload, c *change) {
	before := a.workloads[o.key]
	if before != nil && before.uid == o.uid && !isNewer(o.version, before.version) {
		return
	}
	a.disown(before)
	a.workloads[o.key] = o
	for _, uid := range o.owners {
		a.owned[uid] = o.key
	}
	if o.hasEnded && (before == nil || !before.hasEnded) || before != nil && o.isOther(before) {
		a.otherQuota = c.at
	}
	if o.queue != "" && (before == nil || before.queue != o.queue || isMore(o.usage, before.usage)) {
		for _, r := range a.rules {
			r.admitted(a, o, c)
		}
	}
	// One write may say both, if the first had not been written yet when the Workload was preempted.
	if o.preemptor != "" && before != nil && before.uid == o.uid && before.preemptor != o.preemptor {
		for _, r := range a.rules {
			r.preempted(a, o, c)
		}
	}
}

// disown forgets of what a Workload is, which may be nil.
func (a *Auditor) disown(w *workload) {
	if w == nil {
		return
	}
	for _, uid := range w.owners {
		if a.owned[uid] == w.key {
			delete(a.owned, uid)
		}
	}
}

func isMore(usage, before map[flavored]int64) bool {
	for of, amount := range usage {
		if amount > before[of] {
			return true
		}
	}
	return false
}

// remove takes in that an object is gone.
func (a *Auditor) remove(c *change) {
	switch c.kind {
	case aNode:
		if n := a.nodes[c.key.name]; n != nil {
			n.isKnown, n.isWhole, n.version = false, len(n.pods) == 0, ""
			if len(n.pods) == 0 {
				delete(a.nodes, n.name)
			}
			a.elsewhere, a.otherRoom = c.at, c.at
		}
	case aPodGroup:
		if g := a.gangs[c.key]; g != nil {
			g.isKnown, g.version, g.min = false, "", 0
			if len(g.members) == 0 {
				delete(a.gangs, c.key)
			}
		}
	case aQueue:
		if q := a.queues[c.key.name]; q != nil {
			q.isKnown, q.version, q.capability = false, "", nil
			a.otherQuota = c.at
		}
	case aBudget:
		delete(a.budgets, c.key)
	case aClusterQueue:
		delete(a.cqs, c.key.name)
		a.otherQuota = c.at
	case aCohort:
		delete(a.cohorts, c.key.name)
		a.otherQuota = c.at
	case aSetting:
		delete(a.settings, c.uid)
		a.otherQuota = c.at
	case aWorkload:
		if w := a.workloads[c.key]; w != nil && (c.uid == "" || c.uid == w.uid) {
			a.disown(w)
			delete(a.workloads, c.key)
			a.otherQuota = c.at
		}
	}
}
