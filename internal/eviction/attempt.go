package eviction

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/eviction/candidates"
	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// attempt is the search for a plan for one preemptor in one scope.
type attempt struct {
	search     *Search
	rules      *rules.Rules
	victims    *victims.Selector
	floors     *victims.Floors // nil if they do not hold for the preemptor
	candidates *candidates.Nodes
	guide      guide
	// brokeGuarantee is set if a draft failed because it would leave a queue below its guarantee. A job with more pods
	// may keep it.
	brokeGuarantee bool
	brokePromise   bool            // a draft failed because a plan in force could not be fulfilled with it
	evictsAll      bool            // all pods that may be evicted are, before any is placed
	everywhere     bool            // pods may be evicted outside the domain, since the preemptor's queue is at a limit
	displaces      bool            // plans of other jobs are withdrawn
	evictsNone     bool            // only room that is free or on its way counts
	finds          bool            // there may be victims
	resumes        bool            // the room that earlier victims left counts as if they had it, see [Search.resumes]
	unplaced       []*cluster.Task // one of each class for which the last draft had no node, if it failed for that
	// ofQueue is what would let the preemptor's queue hold a pod for which there is room that is free or on its way.
	ofQueue verdict.Help
}

// evictsFor reports whether pods may be evicted for a pod.
func (a *attempt) evictsFor(t *cluster.Task) bool { return !a.evictsNone && !t.NeverPreempts() }

func (f *Search) attempt(scope decision.Scope, j *cluster.Job) *attempt {
	r := f.rules.For(scope, j)
	selector := victims.New(r)
	floors := f.floorsFor(selector, scope)
	a := &attempt{search: f, rules: r, victims: selector, floors: floors}
	a.candidates = candidates.New(r, selector, floors, func(t *cluster.Task) bool { _, are := a.areNoneFirst(t); return are })
	return a
}

// draft is a plan that is being made. An open transaction holds its changes of the model.
type draft struct {
	units     []victims.Unit  // victims
	placed    []*cluster.Task // tasks of the preemptor with their nominated nodes, in the order in which they were placed
	displaced []*cluster.Plan // plans of other jobs that are cancelled when this one comes into force
}

func (d *draft) moved() []*cluster.Task { return append(victims.TasksOf(d.units), d.placed...) }

// planIn searches one domain after the other, and puts the first plan in force that it finds.
func (a *attempt) planIn(domains []*cluster.Domain, lower []*cluster.Plan, pods []*cluster.Task) bool {
	for _, domain := range domains {
		found := false
		a.search.session.Within(domain, func() { found = a.plan(lower, pods) })
		if found {
			return true
		}
	}
	return false
}

// plan searches the current domain: first with all plans in force kept, then with plans of lower priority displaced. It
// puts the first plan in force that it finds.
func (a *attempt) plan(lower []*cluster.Plan, pods []*cluster.Task) bool {
	s := a.search.session
	x := s.Begin()
	evictsNone := a.evictsNone
	defer func() { a.evictsNone = evictsNone }()
	// Where nothing may be taken, only room that is free or on its way counts.
	a.rules.TakesNothing, a.evictsNone = !a.finds && !a.resumes, evictsNone || !a.finds
	d := a.runByTiers(x, pods)
	if d == nil && len(lower) > 0 {
		a.displaces, a.rules.TakesNothing, a.evictsNone = true, false, evictsNone
		d = a.displaceAny(x, lower, pods)
	}
	if d != nil && plans.KeepPromises(s, d.moved(), nil) {
		a.finish(x, d)
		return true
	}
	a.brokePromise = a.brokePromise || d != nil
	x.Undo()
	return false
}

// runByTiers calls run with the votes of all tiers, or of one tier after the other, see [rules.Rules.ByTiers].
func (a *attempt) runByTiers(x framework.Transaction, pods []*cluster.Task) (d *draft) {
	a.rules.ByTiers(func() bool {
		d = a.run(x, pods)
		return d != nil
	}, a.mayAnyLeave)
	return d
}

// mayAnyLeave reports whether at least one pod may be evicted.
func (a *attempt) mayAnyLeave() bool {
	x := a.search.session.Begin()
	defer x.Undo()
	a.reset()
	return len(a.victims.Evict(x, a.around(a.rules.Preemptor.Tasks()), victims.Options{}).Units) > 0
}

type way uint8

const (
	nodeByNode           way = iota // evictions for one task on one node at a time
	allLeave                        // all pods that may be evicted are, and then given back
	allLeaveLargestFirst            // the same, with those evicted first that hold most of what is wanted
)

// run places the preemptor's pods, with evictions if necessary. It returns nil, and has changed nothing, if it fails.
func (a *attempt) run(x framework.Transaction, pods []*cluster.Task) *draft {
	orders := [][]*cluster.Task{pods}
	if len(cluster.OnePerClass(pods)) > 1 {
		// A small pod may take the last room that fits a large one. The opposite is rare.
		orders = append(orders, cluster.LargestFirst(pods, a.search.session.Cluster.Total))
	}
	for i := range orders {
		orders[i] = requestingFirst(orders[i])
	}
	y := a.search.session.Begin()
	if d := a.underCeiling(y, orders[0]); d != nil {
		return d
	}
	y.Undo()
	wasRefused := false
	for _, w := range []way{nodeByNode, allLeave, allLeaveLargestFirst} {
		if w != nodeByNode && a.rules.IsForDaemon() {
			break // each of the pods takes room on its own node only
		}
		if w == allLeaveLargestFirst && !wasRefused {
			break // all pods that may be evicted were, so that their order does not matter
		}
		if w == allLeave && len(orders) == 1 && !a.candidates.MayOpen(pods[0]) {
			break // the pods are alike, and no node is large enough
		}
		if w == allLeave {
			if _, are := a.areNoneFirst(pods...); are {
				break
			}
		}
		d, refused := a.inOrders(orders, w)
		if d != nil {
			return d
		}
		wasRefused = wasRefused || refused
		if a.evictsNone || slices.ContainsFunc(pods, (*cluster.Task).NeverPreempts) {
			break // a pod that never preempts gets no victims
		}
		if a.rules.Scope == decision.WithinJob {
			orders = [][]*cluster.Task{pods[:1]} // which pods may be evicted depends on the pod that preempts them
		}
	}
	if a.ofQueue == 0 || a.search.session.Domain() == nil || a.evictsNone || a.rules.IsForDaemon() {
		return nil
	}
	// The domain has room, and the queue may not hold the pods. Then the victims may be on any node.
	a.everywhere = true
	defer func() { a.everywhere = false }()
	d, _ := a.inOrders(orders, allLeave)
	return d
}

// inOrders is run in one way. A node-by-node draft is improved. wasRefused is as in try.
func (a *attempt) inOrders(orders [][]*cluster.Task, w way) (d *draft, wasRefused bool) {
	further := a.further(w, orders[0])
	for i := 0; i < len(orders); i++ {
		order := orders[i]
		y := a.search.session.Begin()
		d, refused := a.try(y, order, w)
		if d != nil && w == nodeByNode {
			return a.improve(y, order, d), false
		}
		if d != nil {
			return d, false
		}
		y.Undo()
		wasRefused = wasRefused || refused
		if i < len(orders)-1 || len(a.unplaced) == 0 {
			continue
		}
		next := requestingFirst(further.After(order, a.unplaced))
		if isTried := func(before []*cluster.Task) bool { return slices.Equal(before, next) }; len(next) > 0 && !slices.ContainsFunc(orders, isTried) {
			orders = append(slices.Clip(orders), next)
		}
	}
	if w == nodeByNode || a.rules.Scope == decision.WithinJob || !plans.DependOnOthers(a.search.session.Cluster, orders[0]) {
		return nil, wasRefused // no pod attracts others
	}
	y := a.search.session.Begin()
	if d = a.anchored(y, orders[0], w); d == nil {
		y.Undo()
	}
	return d, wasRefused
}

// maxFurtherOrders is how many orders are tried that begin with pods which found no node.
const maxFurtherOrders = 2

// further returns the orders to try after those of the pods of a job, one after the other, see [gang.Orders]. Inside a
// job the order says for which pod others may be evicted.
func (a *attempt) further(w way, pods []*cluster.Task) gang.Orders {
	orders := gang.Orders{HasPlace: func(t *cluster.Task) bool {
		a.reset()
		a.rules.SetPod(t)
		return a.search.session.Outlook.Best(t) != nil || a.candidates.MayOpen(t)
	}}
	// Once all pods that may leave have left, the order seldom matters but to pods that need others near them.
	isWorthwhile := w == nodeByNode || plans.DependOnOthers(a.search.session.Cluster, pods)
	if isWorthwhile && a.rules.Scope != decision.WithinJob && len(cluster.OnePerClass(pods)) > 1 {
		orders.Most = maxFurtherOrders
	}
	return orders
}

// try places the pods in one order and in one way. It returns nil if that fails, and leaves its changes for the caller
// to undo. wasRefused says that in another order other pods would have been evicted.
func (a *attempt) try(x framework.Transaction, pods []*cluster.Task, w way) (d *draft, wasRefused bool) {
	d, wasRefused, areNone := a.begin(x, pods, w)
	if areNone || !a.placeOn(x, d, pods, w != nodeByNode) {
		return nil, wasRefused
	}
	return d, wasRefused
}

// begin begins a draft. In every way but node by node, all pods that may be evicted are. areNone says that there are
// none. wasRefused is as in try.
func (a *attempt) begin(x framework.Transaction, pods []*cluster.Task, w way) (d *draft, wasRefused, areNone bool) {
	d, a.unplaced = &draft{}, nil
	a.reset()
	a.rules.SetPod(pods[0])
	if a.evictsAll = w != nodeByNode; a.evictsAll {
		evicted := a.victims.Evict(x, a.around(pods), victims.Options{LargestFirst: w == allLeaveLargestFirst})
		a.victims.PlanChanged()
		d.units, wasRefused = evicted.Units, evicted.WasRefused
		areNone = len(d.units) == 0 // none may be the first to leave, in any order
	}
	return d, wasRefused, areNone
}

// placeOn completes a draft, and reports whether it may become a plan. cleared is as in placeAll.
func (a *attempt) placeOn(x framework.Transaction, d *draft, pods []*cluster.Task, cleared bool) bool {
	if !a.placeAll(x, d, pods, cleared) {
		return false
	}
	a.giveBack(x, d)
	if !a.isComplete(x, d) {
		return false
	}
	a.placeFurther(d, pods)
	return true
}

// placeFurther promises to pods beyond the minimum room that is free or on its way. They ask for it by themselves once
// the job has its minimum (rule G9). A pod of another queue that gets the room before would be evicted for them.
func (a *attempt) placeFurther(d *draft, pods []*cluster.Task) {
	if g := a.rules.Guarantees; g == nil || g.Ask.IsSurplus {
		return
	}
	for _, t := range pods {
		if t.Status != cluster.Pending || t.BestEffort() {
			continue
		}
		a.rules.SetPod(t)
		n := a.free(t)
		if n == nil {
			continue
		}
		y := a.search.session.Begin()
		y.Pipeline(t, n)
		before := d.placed
		d.placed = append(slices.Clip(before), t)
		if a.victims.PlanChanged(); !a.isComplete(y, d) {
			y.Undo()
			d.placed = before
			a.victims.PlanChanged()
		}
	}
}

// anchored is try for pods of which one decides by its place where others may be, see [gang.AnchorOf]. The best node
// for it may be one that another pod needs, or too small for all. So once all pods that may be evicted are, it is tried
// in one topology domain after the other.
func (a *attempt) anchored(x framework.Transaction, pods []*cluster.Task, w way) *draft {
	s := a.search.session
	d, _, areNone := a.begin(x, pods, w)
	if areNone {
		return nil
	}
	first, domains := gang.AnchorOf(s, pods, a.rules.Preemptor.LacksPromises(), (*cluster.Node).Future)
	if first == nil || !a.rules.Preemptor.WantsPromise(first.Role) {
		return nil
	}
	a.rules.SetPod(first)
	var anchors []*cluster.Node
	for _, nodes := range domains {
		fits := func(n *cluster.Node) bool { return a.rules.Fits(first, n) && s.Outlook.Veto(first, n) == "" }
		if i := slices.IndexFunc(nodes, fits); i >= 0 && len(anchors) < gang.MaxAnchors {
			anchors = append(anchors, nodes[i])
		}
	}
	others := slices.DeleteFunc(slices.Clone(pods), func(t *cluster.Task) bool { return t == first })
	for i, n := range anchors {
		if i > 0 {
			x.Undo()
			d, _, _ = a.begin(x, pods, w)
		}
		a.rules.SetPod(first)
		x.Pipeline(first, n)
		d.placed = append(d.placed, first)
		a.victims.PlanChanged()
		if a.placeOn(x, d, others, true) {
			return d
		}
	}
	return nil
}

// isComplete reports whether a draft may become a plan: with it the preemptor has what it needs to start, whole, and
// the rules that are about all of a plan allow it. Every way to make a draft ends here.
func (a *attempt) isComplete(x framework.Transaction, d *draft) bool {
	if j := a.rules.Preemptor; len(d.placed) == 0 || j.LacksPromises() > 0 || !j.KeepsSubgroupsWhole() {
		return false
	}
	if !a.rules.AllowsPlan(victims.TasksOf(d.units), d.placed) {
		a.brokeGuarantee = true
		return false
	}
	if !a.rules.StaysWithinShare(x, a.victims.TakesByRight(d.units), d.placed) {
		return false
	}
	if t := a.misfit(x, d.placed); t != nil {
		a.unplaced = []*cluster.Task{t} // it had a place only next to a pod that leaves for another
		return false
	}
	return true
}

func (a *attempt) reset() {
	a.victims.Reset()
	a.candidates.Reset()
}

// around returns the tasks on the nodes from which pods may be evicted for some: of the domain, of all nodes if a limit
// of the queue is in the way, or of their own nodes if a DaemonSet controls them.
func (a *attempt) around(pods []*cluster.Task) []*cluster.Task {
	s := a.search.session
	if a.rules.IsForDaemon() {
		var all []*cluster.Task
		for _, name := range rules.OwnNodes(pods) {
			if n := s.Cluster.Node(name); n != nil {
				all = append(all, n.Tasks()...)
			}
		}
		return all
	}
	domain := s.Domain()
	if domain == nil || a.everywhere {
		return s.Cluster.TasksOnNodes()
	}
	var all []*cluster.Task
	for _, n := range s.Cluster.NodesIn(domain) {
		all = append(all, n.Tasks()...)
	}
	return all
}

// requestingFirst moves pods that request nothing to the end. For such a pod no pod may be evicted that requests
// something (rule P3).
func requestingFirst(pods []*cluster.Task) []*cluster.Task {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(t, u *cluster.Task) int { return btoi(t.BestEffort()) - btoi(u.BestEffort()) })
	return pods
}

// placeAll places as many pods as the job needs to start. While the job is starving still, it then places each further
// pod that fits. It reports whether the job has what it needs. cleared says that all pods that may be evicted are gone.
// Before the first pod that requests nothing is placed, it gives back victims that are not needed.
func (a *attempt) placeAll(x framework.Transaction, d *draft, pods []*cluster.Task, cleared bool) bool {
	j, s := a.rules.Preemptor, a.search.session
	failed := failures{kinds: map[rules.Kind]bool{}, pods: map[*cluster.Task]bool{}}
	giveBackFor := func(next *cluster.Task) {
		if cleared && next.BestEffort() {
			a.giveBack(x, d)
			cleared = false
		}
	}
	for _, t := range pods {
		if j.LacksPromises() == 0 {
			break
		}
		giveBackFor(t)
		if j.WantsPromise(t.Role) && !failed.covers(a.rules, t) {
			a.place(x, d, t, &failed)
		}
	}
	if j.LacksPromises() > 0 {
		failing := slices.DeleteFunc(slices.Clone(pods), func(t *cluster.Task) bool { return t.Status != cluster.Pending || !failed.covers(a.rules, t) })
		a.unplaced = cluster.OnePerClass(failing)
		return false
	}
	for _, t := range pods {
		if t.Status != cluster.Pending || failed.covers(a.rules, t) {
			continue
		}
		if a.rules.AsksOneByOne() {
			a.placeByItself(x, d, t, &failed)
			continue
		}
		if a.rules.Scope != decision.WithinJob && !s.IsStarving(j) {
			break
		}
		giveBackFor(t)
		a.place(x, d, t, &failed)
	}
	return true
}

// placeByItself is place for a pod that asks by itself: its failure, or a rule about all that the plan places, leaves
// the others as they are.
func (a *attempt) placeByItself(x framework.Transaction, d *draft, t *cluster.Task, failed *failures) {
	before := *d
	y := a.search.session.Begin()
	a.place(x, d, t, failed)
	if t.Status == cluster.Pending || a.rules.AllowsPlan(victims.TasksOf(d.units), d.placed) {
		return
	}
	y.Undo()
	*d = before
	a.victims.PlanChanged()
	failed.pods[t] = true
}

// failures are the pods that fit on no node: all pods of some kinds, and single pods for which plugins vetoed nodes.
type failures struct {
	kinds map[rules.Kind]bool
	pods  map[*cluster.Task]bool
}

// covers reports whether a pod fits on no node either.
func (f *failures) covers(r *rules.Rules, t *cluster.Task) bool {
	return f.kinds[r.KindOf(t)] || f.pods[t]
}

// free returns a node that has room for a pod, or will have, nil if there is none. If the queue may not hold the pod
// there is none, and what would let it is noted.
func (a *attempt) free(t *cluster.Task) *cluster.Node {
	s := a.search.session
	refused := a.rules.WhyNotPlace(t)
	if refused == nil {
		return cmp.Or(s.Placer.Best(t), s.Outlook.Best(t))
	}
	if refused.Help&^a.ofQueue != 0 && s.Outlook.Best(t) != nil {
		a.ofQueue |= refused.Help
	}
	return nil
}

// place nominates a node for a pod: one on which it fits at this point of the plan, otherwise the cheapest that
// evictions open. If there is none, it notes the failure.
func (a *attempt) place(x framework.Transaction, d *draft, t *cluster.Task, failed *failures) {
	a.candidates.Renew()
	a.rules.SetPod(t)
	cheapest := a.openGuided(x, d, t)
	if cheapest.Node == nil {
		// Free nodes come first. If allocate placed the job on a free node later, the evictions would have been in
		// vain.
		if n := a.free(t); n != nil {
			x.Pipeline(t, n)
			d.placed = append(d.placed, t)
			a.victims.PlanChanged()
			return
		}
	}
	if cheapest.Node == nil && a.evictsFor(t) {
		cheapest = a.candidates.OpenCheapest(x, t, a.guide.avoid)
	}
	switch n := cheapest.Node; {
	case n != nil:
		x.Pipeline(t, n)
		d.units, d.placed = append(d.units, cheapest.Units...), append(d.placed, t)
		a.victims.PlanChanged()
	case cheapest.WasVetoed, a.candidates.FitsWithoutVetoes(t):
		failed.pods[t] = true // the plugin may agree to another pod of the kind
	default:
		failed.kinds[a.rules.KindOf(t)] = true
	}
}

// giveBack gives back victims that are not needed, now that the preemptor's pods have nodes (rule K4).
func (a *attempt) giveBack(x framework.Transaction, d *draft) {
	a.victims.SortAfresh(d.units)
	for range maxRounds {
		before := len(d.units)
		d.units = a.victims.GiveBack(x, d.units, nil, func(u *victims.Unit) bool { return a.stillFit(x, d.placed, u) })
		if len(d.units) == before {
			return
		}
	}
}

// maxRounds limits the rounds in which victims are given back. One is enough if pods do not attract or repel each other
// and no disruption budget is violated, because then a victim that comes back only takes room. Each further round costs
// as much as the first. Long chains, in which each victim that comes back lets one more come back, are not worth it.
const maxRounds = 8

// stillFit reports whether the preemptor's pods still fit with the victims of a unit back on their nodes.
func (a *attempt) stillFit(x framework.Transaction, placed []*cluster.Task, u *victims.Unit) bool {
	for _, t := range u.Tasks {
		for i := range t.Node.Promised {
			if d := resources.Dim(i); t.Node.Promised[i] > 0 && t.Request().At(d) > 0 && t.Node.Future(d) < 0 {
				return false
			}
		}
	}
	if plans.DependOnOthers(a.search.session.Cluster, placed) {
		return a.misfit(x, placed) == nil
	}
	first := cluster.OnePerClass(placed)
	for _, t := range placed {
		isNear := slices.ContainsFunc(u.Tasks, func(v *cluster.Task) bool { return v.Node == t.Node })
		if !isNear && !slices.Contains(first, t) {
			continue
		}
		n := t.Node
		x.Unpipeline(t)
		ok := a.rules.Fits(t, n)
		x.Pipeline(t, n)
		if !ok {
			return false
		}
	}
	return true
}

// misfit returns the first of the preemptor's pods that does not fit on its node after those that were placed before
// it, nil if all fit. With affinity or spread one may not: the pod that attracts it may have been evicted for the next.
func (a *attempt) misfit(x framework.Transaction, placed []*cluster.Task) *cluster.Task {
	s := a.search.session
	if !plans.DependOnOthers(s.Cluster, placed) {
		return nil
	}
	y := s.Begin()
	for _, p := range plans.Withdraw(x, placed) {
		if !a.rules.Fits(p.Task, p.Node) {
			y.Undo()
			return p.Task
		}
		x.Pipeline(p.Task, p.Node)
	}
	return nil
}
