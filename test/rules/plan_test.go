package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// level is on whose authority a pod leaves (A1).
type level string

const (
	betweenQueues level = "between queues"
	betweenJobs   level = "between jobs"
	withinJob     level = "within a job"
	anywhere      level = "for a lone pod"
)

// levelOf returns the level at which a plan of an action evicts a pod, "" if there is none.
func levelOf(action string, preemptor *job, victim *pod) level {
	switch {
	case action == "reclaim" && victim.job.queue != preemptor.queue:
		return betweenQueues
	case action != "preempt":
		return ""
	case victim.job == preemptor:
		return withinJob
	case victim.job.queue == preemptor.queue:
		return betweenJobs
	case preemptor.lone:
		return anywhere
	}
	return ""
}

// planCheck judges one plan.
type planCheck struct {
	*judge
	decision      decision.PlanStart
	plan          *plan
	before, after *picture
	decided       *picture // after, without the plans that were decided later
	divided       []*share // as the cluster was divided when the cycle began; any of them will do

	preemptor   *job
	victims     []*pod // in the order decided, as they were before
	isRecovered bool   // the plan was decided by a scheduler before
	comers      []*pod // that are promised a node, by name, as they were before
}

func (h *planCheck) check() {
	if h.plan.action == "shuffle" {
		h.cuts()
		return
	}
	h.preemptor = h.before.jobs[h.plan.preemptor]
	if h.preemptor == nil || h.preemptor.queue == nil {
		h.breach("J3", "plan %s is of job %q, which cannot start", h.plan.id, h.plan.preemptor)
		return
	}
	if !h.parties() {
		return
	}
	h.taking()
	for i, v := range h.victims {
		h.victim(v, h.decision.Evictions[i])
	}
	h.judgeVictims()
	h.fit()
	h.queues()
	if len(h.victims) == 0 && !slices.ContainsFunc(h.comers, func(t *pod) bool {
		return h.after.tooFull(h.plan.nominated[t.uid()], func(s state) bool { return s.holds() || s == promised }) != ""
	}) {
		h.promises++
	}
	if len(h.breaches) == 0 && !h.hasTerms && !h.setting.subtrees { // what cannot come true need not be minimal
		h.minimal()
	}
}

// parties finds out who the plan is about.
func (h *planCheck) parties() bool {
	for _, e := range h.decision.Evictions {
		v := h.before.pods[e.Pod.Name]
		switch {
		case v == nil || v.uid() != e.UID:
			h.breach("P4", "plan %s evicts %s, which is not there", h.plan.id, e.Pod.Name)
			return false
		case v.job == nil:
			h.breach("P2", "plan %s evicts %s, which is somebody else's", h.plan.id, v.name)
			return false
		case v.job.queue == nil:
			h.breach("Q1", "plan %s evicts %s, which is in no queue", h.plan.id, v.name)
			return false
		case e.Rule == "" || e.Message == "" || e.Node != v.node || e.VictimJob.Name != v.job.name || e.For.Name != h.plan.preemptor:
			h.breach("S4", "plan %s says of %s: %+v", h.plan.id, v.name, e)
		}
		h.victims = append(h.victims, v)
	}
	for _, n := range h.decision.Nominations {
		t := h.before.pods[n.Pod.Name]
		if t == nil || t.uid() != n.UID || t.job != h.preemptor || t.state != waiting {
			h.breach("J3", "plan %s promises a node to %s, which does not wait for one: %+v", h.plan.id, n.Pod.Name, t)
			return false
		}
		h.comers = append(h.comers, t)
	}
	slices.SortFunc(h.comers, func(a, b *pod) int { return cmp.Compare(a.name, b.name) })
	return true
}

// taking judges whether the preemptor may take at all: Q5, P6, J3, K6.
func (h *planCheck) taking() {
	for _, other := range h.before.plans {
		if other.preemptor == h.plan.preemptor && other.id != h.plan.id && other.action != "" {
			h.breach("K6", "plan %s is made while plan %s of %s is under way", h.plan.id, other.id, other.preemptor)
		}
	}
	if !h.preemptor.queue.open() {
		h.breach("Q5", "plan %s takes for queue %s, which is not open", h.plan.id, h.preemptor.queue.name)
	}
	if h.preemptor.never && len(h.victims) > 0 {
		h.breach("P6", "plan %s evicts for %s, which never preempts", h.plan.id, h.preemptor.name)
	}
	after := h.after.jobs[h.preemptor.name]
	with := func(role string) int {
		return after.ready(role) + after.count(role, func(t *pod) bool { return t.state == promised })
	}
	if h.setting.gang && !after.enough(with) || len(h.comers) == 0 {
		h.breach("J3", "plan %s gives %s %d pods of at least %d %v", h.plan.id, h.preemptor.name, with(""),
			after.object.Spec.MinMember, after.object.Spec.MinTaskMember)
	}
}

// mark reads whether a pod may be a victim.
func mark(t *pod) string {
	const key = schedulingv1beta1.PreemptableKey
	for _, where := range []map[string]string{t.object.Annotations, t.object.Labels, t.job.object.Annotations, t.job.object.Labels} {
		if value, ok := where[key]; ok {
			return value
		}
	}
	return ""
}

// protects says which rule, of those that look at objects alone, protects a pod from a preemptor; "" if none does.
func (p *picture) protects(action string, preemptor *job, v *pod) (rule, why string) {
	l := levelOf(action, preemptor, v)
	switch {
	case l == "":
		return "A1", "action " + action + " does not act between their jobs"
	case v.state != placed:
		return "P4", "it is " + string(v.state)
	case l == anywhere && p.isGuaranteed(preemptor.queue, v.job.queue):
		return "A3", "a lone pod takes from other queues what its own is guaranteed, by reclaim"
	case l == betweenQueues && p.isGuaranteed(preemptor.queue, v.job.queue):
		return p.spares(preemptor, v)
	case mark(v) != "true":
		return "P2", "it is marked " + mark(v)
	case p.isCritical(v):
		return "P5", "it is critical"
	case (l == betweenJobs || l == anywhere) && v.job.priority >= preemptor.priority:
		return "J1", "the priority of its job is not lower"
	case !p.setting.subtrees && v.job.queue.object.Spec.Priority > preemptor.queue.object.Spec.Priority: // a subtree stands where its top stands
		return "A2", "the priority of its queue is higher"
	case v.job.queue != preemptor.queue && !v.job.queue.reclaimable():
		return "Q3", "its queue is not reclaimable"
	}
	return "", ""
}

// isCritical reports whether the plugin conformance protects a pod.
func (p *picture) isCritical(v *pod) bool {
	class := v.object.Spec.PriorityClassName
	return p.setting.conformance && (class == "system-node-critical" || class == "system-cluster-critical")
}

func (h *planCheck) victim(v *pod, e decision.Eviction) {
	if rule, why := h.before.protects(h.plan.action, h.preemptor, v); rule != "" {
		h.breach(rule, "plan %s of %s evicts %s: %s", h.plan.id, h.preemptor.name, v.name, why)
	}
}

// kept reports whether a job is left whole by a plan, or gone as a whole (J2).
func (p *picture) kept(name string, mayGo bool) bool {
	g := p.jobs[name]
	if g.enough(g.ready) {
		return true
	}
	return mayGo && g.count("", func(t *pod) bool { return t.state == binding || t.state == placed }) == 0
}

// judgeVictims judges J2 and the budgets.
func (h *planCheck) judgeVictims() {
	for _, g := range h.giving() {
		mayGo := h.setting.whole && g != h.preemptor
		if !h.after.kept(g.name, mayGo) {
			h.breach("J2", "plan %s leaves %s with %d pods of at least %d %v, not all gone", h.plan.id, g.name,
				h.after.jobs[g.name].ready(""), g.object.Spec.MinMember, g.object.Spec.MinTaskMember)
		}
	}
	for name, object := range h.before.budgets {
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		if err != nil {
			h.breach("K3", "budget %s cannot be read: %s", name, err)
			continue
		}
		asked, all, left := 0, 0, int(object.Status.DisruptionsAllowed)
		for _, t := range h.before.pods {
			if t.state == leaving && t.object.DeletionTimestamp == nil && selector.Matches(labels.Set(t.object.Labels)) {
				left--
			}
		}
		for i, v := range h.victims {
			if selector.Matches(labels.Set(v.object.Labels)) {
				all++
				if !h.decision.Evictions[i].PastBudget {
					asked++
				}
			}
		}
		if asked > max(left, 0) && !h.isRecovered { // those for other replacements were decided later
			h.breach("K3", "plan %s asks for %d evictions under budget %s, which allows %d", h.plan.id, asked, name, left)
		}
		if h.setting.pdb && all > max(left, 0) {
			h.breach("T1", "plan %s evicts %d pods under budget %s, which allows %d, and pdb votes", h.plan.id, all, name, left)
		}
	}
}

// giving are the jobs that give, in the order decided.
func (h *planCheck) giving() []*job {
	var jobs []*job
	for _, v := range h.victims {
		if !slices.Contains(jobs, v.job) {
			jobs = append(jobs, v.job)
		}
	}
	return jobs
}

// fit judges that every pod that is promised a node will fit there: S1, K1, K5.
func (h *planCheck) fit() {
	for _, t := range h.comers {
		node := h.plan.nominated[t.uid()]
		if !admits(h.before.nodes[node], t.object) {
			h.breach("K1", "plan %s promises %s to %s, which it does not take", h.plan.id, node, t.name)
		}
		if why := h.after.tooFull(node, later); why != "" {
			h.breach("S1", "plan %s promises %s to %s: %s", h.plan.id, node, t.name, why)
		}
	}
}

// asked is what the pods want that are promised a node.
func (h *planCheck) asked() amounts {
	sum := amounts{}
	for _, t := range h.comers {
		sum.add(t.wants, 1)
	}
	return sum
}

// queues judges Q1, Q2 and Q4.
func (h *planCheck) queues() {
	if why := exceeds(h.queueAfter(), h.asked()); why != "" && h.setting.sharer != "" {
		h.breach("Q4", "plan %s: %s", h.plan.id, why)
	}
	h.floors()
	if len(h.comers) > 0 && !slices.ContainsFunc(h.comers, func(t *pod) bool { return !t.bestEffort() }) &&
		slices.ContainsFunc(h.victims, func(v *pod) bool { return !v.bestEffort() }) {
		h.breach("P3", "plan %s evicts what has requests for pods that have none: %s", h.plan.id, h.describe())
	}
	h.shares()
}

// floors judges Q2.
func (h *planCheck) floors() {
	held := map[string]amounts{}
	for _, v := range h.victims {
		for _, q := range v.job.queue.upwards() {
			if held[q.name] == nil {
				held[q.name] = amounts{}
			}
			held[q.name].add(v.wants, 1)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		had, has, floor := h.before.queues[name].allocated(), h.after.queues[name].allocated(), h.before.queues[name].guarantee
		for resource, amount := range held[name] {
			if amount > 0 && has[resource] < floor[resource] && has[resource] < had[resource] {
				h.breach("Q2", "plan %s leaves queue %s with %s, of %s guaranteed", h.plan.id, name, has, floor)
			}
		}
	}
}

// shares judges Q1, and Q4 as far as it is about shares.
func (h *planCheck) shares() {
	if h.setting.guarantees() {
		h.entitled()
		return
	}
	if h.setting.subtrees {
		return
	}
	if !h.takesFromEquals() {
		return
	}
	// A later plan may promise the queue more than its share of room that is free, or becomes free without it.
	q := h.decided.queues[h.preemptor.queue.name]
	if !slices.ContainsFunc(h.divided, func(s *share) bool { return s.on(h.decided).stays(q, h.asked()) }) {
		h.breach("Q4", "plan %s takes from queues of equal priority beyond the share of %s: it would hold %s of %s", h.plan.id,
			h.preemptor.queue.name, q.allocated(), amounts(deservedOf(h.divided[0].on(h.before).deserved[h.preemptor.queue])))
	}
	if h.plan.action == "reclaim" && !slices.ContainsFunc(h.divided, func(s *share) bool { return h.allowedInAnOrder(s, h.lumps(), nil) }) {
		h.breach("Q1", "plan %s takes what queues of equal priority do not hold above their shares: %s", h.plan.id, h.describe())
	}
}

func (h *planCheck) queueAfter() *queue { return h.after.queues[h.preemptor.queue.name] }

// takesFromEquals reports whether any victim is of another queue of the preemptor's priority.
func (h *planCheck) takesFromEquals() bool {
	return slices.ContainsFunc(h.victims, func(v *pod) bool {
		return v.job.queue != h.preemptor.queue && v.job.queue.object.Spec.Priority == h.preemptor.queue.object.Spec.Priority
	})
}

// on is the same share, of the queues in another picture.
func (s *share) on(p *picture) *share {
	moved := &share{deserved: map[*queue]map[corev1.ResourceName]float64{}, ceiling: map[*queue]map[corev1.ResourceName]float64{}, divides: s.divides}
	for q, values := range s.deserved {
		moved.deserved[p.queues[q.name]] = values
	}
	for q, values := range s.ceiling {
		moved.ceiling[p.queues[q.name]] = values
	}
	return moved
}

func (h *planCheck) describe() map[string]string {
	said := map[string]string{}
	for _, g := range h.giving() {
		said[g.queue.name] = "holds " + g.queue.allocated().String() + " and keeps " + h.after.queues[g.queue.name].allocated().String()
	}
	for name := range said {
		said[name] += amounts(deservedOf(h.divided[0].on(h.before).deserved[h.before.queues[name]])).String()
	}
	return said
}

func deservedOf(values map[corev1.ResourceName]float64) amounts {
	a := amounts{}
	for name, value := range values {
		a[" deserves "+name] = int64(value)
	}
	return a
}

// lumps are the victims that go together: the pods of a job that does not keep its minimum, else each alone.
func (h *planCheck) lumps() [][]*pod {
	var lumps [][]*pod
	of := map[*job]int{}
	for _, v := range h.victims {
		at, known := of[v.job]
		g := h.after.jobs[v.job.name]
		if known && !g.enough(g.ready) {
			lumps[at] = append(lumps[at], v)
			continue
		}
		of[v.job] = len(lumps)
		lumps = append(lumps, []*pod{v})
	}
	return lumps
}

// allowedInAnOrder reports whether the victims can leave one after the other, in some order, such that each holds what
// is above the share of its queue at that moment (Q1, T2).
func (h *planCheck) allowedInAnOrder(s *share, left [][]*pod, gone []*pod) bool {
	if len(left) == 0 {
		return true
	}
	p := &plan{id: h.plan.id, preemptor: h.plan.preemptor, action: h.plan.action, nominated: h.plan.nominated, victims: map[types.UID]string{}}
	for _, v := range gone {
		p.victims[v.uid()] = v.name
	}
	then := h.with(p, h.before)
	for i, lump := range left {
		held, victim := amounts{}, then.queues[lump[0].job.queue.name]
		for _, v := range lump {
			held.add(v.wants, 1)
		}
		isLower := victim.object.Spec.Priority < h.preemptor.queue.object.Spec.Priority
		if !isLower && s.divides && !s.on(then).surplus(victim, held, h.asked()) {
			continue
		}
		if h.allowedInAnOrder(s, slices.Delete(slices.Clone(left), i, i+1), append(slices.Clone(gone), lump...)) {
			return true
		}
		if len(left) > 5 { // the order decided is among the first tried
			return false
		}
	}
	return false
}

// minimal checks that none of the victims could have stayed: K2, K4, P1, P3.
func (h *planCheck) minimal() {
	for _, g := range h.giving() {
		var own []*pod
		for _, v := range h.victims {
			if v.job == g {
				own = append(own, v)
			}
		}
		for set := 1; set < 1<<min(len(own), 5); set++ {
			var back []*pod
			for i, v := range own {
				if set&(1<<min(i, 4)) != 0 {
					back = append(back, v)
				}
			}
			if !h.isRecovered && !h.fleeting { // what was needed when it was decided may have become free since
				h.mayStay(g, back)
			}
		}
	}
}

// mayStay judges whether the plan stands without the eviction of some pods of a victim.
func (h *planCheck) mayStay(g *job, back []*pod) {
	rule, comers := "K2", h.comers
	if g == h.preemptor {
		// No pod of the job is evicted for pods that rank no higher.
		lowest := slices.MinFunc(back, func(a, b *pod) int { return cmp.Compare(a.rank, b.rank) }).rank
		higher := slices.DeleteFunc(slices.Clone(comers), func(t *pod) bool { return t.rank <= lowest })
		if len(higher) < len(comers) {
			rule, comers = "P1", higher
		}
	}
	p := &plan{id: h.plan.id, preemptor: h.plan.preemptor, action: h.plan.action, victims: maps.Clone(h.plan.victims), nominated: map[types.UID]string{}}
	for _, v := range back {
		delete(p.victims, v.uid())
	}
	for _, t := range comers {
		p.nominated[t.uid()] = h.plan.nominated[t.uid()]
	}
	then := h.with(p, h.before)
	if !then.kept(g.name, h.setting.whole && g != h.preemptor) {
		return
	}
	if h.stands(then, comers) && h.stands(h.besideDisplaced(p), comers) && !h.isNeededInAShare(then, comers) {
		h.breach(rule, "plan %s of %s need not evict %v of %s", h.plan.id, h.preemptor.name, namesOf(back), g.name)
	}
}

// isNeededInAShare reports whether there is a division of the cluster in which the plan stands as it was decided, and
// not without some of its evictions. What queues may hold is worked out when a cycle begins, and a plan that ends in it
// may change that.
func (h *planCheck) isNeededInAShare(then *picture, comers []*pod) bool {
	return len(h.divided) > 1 && slices.ContainsFunc(h.divided, func(s *share) bool {
		in := *h
		in.divided = []*share{s}
		return in.stands(h.after, h.comers) && !in.stands(then, comers)
	})
}

// besideDisplaced draws the picture with a plan, and with the plans that other jobs than its own displaced in this
// cycle: it may have been decided before they were.
func (h *planCheck) besideDisplaced(p *plan) *picture {
	m := &memory{bound: h.memory.bound, plans: maps.Clone(h.memory.plans)}
	for id, d := range h.displaced {
		if !strings.Contains(d.why, "/"+h.preemptor.name+" ") {
			m.plans[id] = d.plan
		}
	}
	m.plans[p.id] = p
	return take(h.setting, h.objects, m, h.before.now)
}

func (h *planCheck) stands(then *picture, comers []*pod) bool {
	asked := amounts{}
	for _, t := range comers {
		asked.add(t.wants, 1)
		if then.tooFull(h.plan.nominated[t.uid()], later) != "" {
			return false
		}
	}
	q := then.queues[h.preemptor.queue.name]
	if h.growsBeyondShare(q, asked) {
		return false
	}
	return exceeds(q, asked) == "" && slices.ContainsFunc(h.divided, func(s *share) bool { return s.on(then).within(q, asked) })
}

// growsBeyondShare reports whether the preemptor's queue would come to hold more than it did and more than the plugin
// that keeps queues within their shares lets it, in what is asked for. Only a queue that may take from a lower one may
// grow beyond.
func (h *planCheck) growsBeyondShare(q *queue, asked amounts) bool {
	if h.setting.sharer != "proportion" || h.mayTakeFromLower() {
		return false
	}
	if h.guaranteesTooMuch() {
		return true // what each deserves then is for the plugin to say: there is no share that holds all of them
	}
	had, has := h.before.queues[q.name].allocated(), q.allocated()
	return !slices.ContainsFunc(h.divided, func(s *share) bool {
		for name, value := range asked {
			deserved, ok := s.on(h.before).deserved[h.before.queues[q.name]][name]
			if value > 0 && ok && has[name] > had[name] && float64(has[name]) > deserved+rounding(name) {
				return false
			}
		}
		return true
	})
}

// guaranteesTooMuch reports whether more is guaranteed than the cluster has.
func (h *planCheck) guaranteesTooMuch() bool {
	left := amounts{}
	for _, n := range h.before.nodes {
		left.add(amountsOf(n.Status.Allocatable), 1)
	}
	for _, q := range h.before.queues {
		left.add(q.guarantee, -1)
	}
	for _, amount := range left {
		if amount < 0 {
			return true
		}
	}
	return false
}

// mayTakeFromLower reports whether the action looks at queues of lower priority, and there is one with jobs.
func (h *planCheck) mayTakeFromLower() bool {
	if h.plan.action != "reclaim" && !h.preemptor.lone {
		return false
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(h.before.jobs)), func(g *job) bool {
		return g.queue != nil && g.queue.object.Spec.Priority < h.preemptor.queue.object.Spec.Priority
	})
}

func namesOf(pods []*pod) []string {
	var names []string
	for _, t := range pods {
		names = append(names, t.name)
	}
	return names
}
