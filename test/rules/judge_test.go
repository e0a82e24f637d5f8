package rules

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/decision"
)

// judge walks through what a scheduler decides.
type judge struct {
	setting  setting
	objects  *objects
	memory   *memory
	watch    func(*planCheck) // is told of each plan, unless it is nil
	breaches []string

	// fleeting says that a plan of this cycle was overruled in it. Its promises, which others could not take, are not
	// known.
	fleeting bool
	// displaced are the plans of earlier cycles that another job's plan ended in this one. When in the cycle is not
	// known.
	displaced map[string]displaced
	hasTerms  bool // pods have terms about each other, of which the judge knows nothing

	binds, plans, evictions, cancelled, continued int
	promises                                      int // plans without victims, though all the room is free
	rewrites                                      int // cycles at rest that wrote something
}

// displaced is a plan, and why it ended, which names the job that took its room.
type displaced struct {
	plan *plan
	why  string
}

func (j *judge) breach(rule, format string, arguments ...any) {
	j.breaches = append(j.breaches, rule+": "+fmt.Sprintf(format, arguments...))
}

// cycle judges the decisions of a cycle in the order in which they were made: plans of earlier cycles end or are
// fulfilled first, then the actions have their turns.
func (j *judge) cycle(d *decision.Decisions, at *picture) {
	var divided []*share
	if len(d.Plans) > 0 {
		divided = append(divided, at.shares())
	}
	j.fleeting = slices.ContainsFunc(d.Ended, func(e decision.PlanEnd) bool { return j.memory.plans[e.ID] == nil })
	j.overruled(d, at)
	for _, e := range d.Ended {
		j.end(e)
	}
	if len(d.Plans) > 0 && len(d.Ended) > 0 {
		divided = append(divided, j.look(at).shares())
	}
	for _, p := range j.memory.plans {
		for _, b := range d.Binds {
			if p.action == "" && p.nominated[b.UID] != b.Node {
				delete(p.nominated, b.UID) // what a scheduler before has promised came true elsewhere
			}
		}
	}
	earlier := maps.Clone(j.memory.plans)
	binds, plans := d.Binds, d.Plans
	plans = j.goOn(plans, at, divided)
	serve := func(count int) {
		for _, b := range binds[:count] {
			j.bind(b, d, at)
		}
		binds = binds[count:]
	}
	kept := slices.IndexFunc(binds, func(b decision.Bind) bool { return !promises(earlier, b.UID) })
	if kept < 0 {
		kept = len(binds)
	}
	serve(kept)
	j.forsake(d)
	for _, action := range j.setting.actions {
		switch action {
		case "allocate":
			serve(j.allocates(binds, at))
		case "backfill":
			serve(len(binds))
		case "preempt", "reclaim", "shuffle":
			for len(plans) > 0 && (len(plans[0].Evictions) == 0 || plans[0].Evictions[0].Action == action) {
				serve(j.before(plans[0], d, binds, at, divided))
				j.plan(plans[0], at, divided)
				plans = plans[1:]
			}
		}
	}
	for _, left := range plans {
		j.breach("A1", "plan %s is of no action of the pipeline", left.ID)
	}
	serve(len(binds))
	j.gangs(d.Binds, at)
	j.parts(d.Binds, at)
	j.open(at)
}

// open checks that a plan ends when a node that it promises does not take the pod any more: its evictions would be in
// vain (rule S1).
func (j *judge) open(at *picture) {
	for _, id := range slices.Sorted(maps.Keys(j.memory.plans)) {
		for uid, name := range j.memory.plans[id].nominated {
			node := at.nodes[name]
			for _, t := range at.pods {
				if node != nil && t.uid() == uid && t.object.Spec.NodeName == "" && !admits(node, t.object) {
					j.breach("S1", "plan %s goes on, and node %s does not take pod %s any more", id, name, t.name)
					return
				}
			}
		}
	}
}

// forsake checks that a scheduler either continues what an earlier one has recorded, or removes it. No other program
// will.
func (j *judge) forsake(d *decision.Decisions) {
	for id, p := range j.memory.plans {
		if p.action != "" {
			continue
		}
		delete(j.memory.plans, id)
		for uid, node := range p.nominated {
			taken := slices.ContainsFunc(d.Ended, func(e decision.PlanEnd) bool {
				return slices.ContainsFunc(e.Nominations, func(n decision.Nomination) bool { return n.UID == uid })
			})
			if !taken && !promises(j.memory.plans, uid) && !isBound(d.Binds, uid) && j.exists(uid) {
				j.breach("K5", "%s was promised %s by a scheduler before, which is neither kept nor taken back", uid, node)
			}
		}
	}
}

// isBound reports whether a pod is bound in a cycle.
func isBound(binds []decision.Bind, uid types.UID) bool {
	return slices.ContainsFunc(binds, func(b decision.Bind) bool { return b.UID == uid })
}

// exists reports whether a pod is still there.
func (j *judge) exists(uid types.UID) bool {
	for _, pod := range j.objects.pods {
		if pod.UID == uid {
			return true
		}
	}
	return false
}

// promises reports whether any of some plans promises a pod a node.
func promises(plans map[string]*plan, uid types.UID) bool {
	for _, p := range plans {
		if p.nominated[uid] != "" {
			return true
		}
	}
	return false
}

// before returns how many of some binds were made before a plan. The lists of decisions do not say, since actions that
// make plans may find that there is room; so as few as the rules need, none if no number is enough.
func (j *judge) before(d decision.PlanStart, all *decision.Decisions, binds []decision.Bind, at *picture, divided []*share) int {
	for count := range len(binds) + 1 {
		trial := &judge{setting: j.setting, objects: j.objects, hasTerms: j.hasTerms,
			memory: &memory{bound: maps.Clone(j.memory.bound), plans: maps.Clone(j.memory.plans)}}
		for _, b := range binds[:count] {
			trial.bind(b, all, at)
		}
		trial.hear(d, at, divided, false, nil)
		if len(trial.breaches) == 0 {
			return count
		}
	}
	return 0
}

// look draws the picture as it is after what was judged so far.
func (j *judge) look(at *picture) *picture { return take(j.setting, j.objects, j.memory, at.now) }

// with draws the picture as it would be with a plan instead of another of its ID.
func (j *judge) with(p *plan, at *picture) *picture {
	m := &memory{bound: j.memory.bound, plans: maps.Clone(j.memory.plans)}
	m.plans[p.id] = p
	return take(j.setting, j.objects, m, at.now)
}

// allocates returns how many of some binds, the first ones, are of allocate. These are the binds up to the last that
// backfill cannot have made, since the pod requests something. Further binds without which their job could not start
// are added. Binds for which their queue has room only after evictions are not.
func (j *judge) allocates(binds []decision.Bind, at *picture) int {
	last := 0
	for i, b := range binds {
		if t := at.pods[b.Pod.Name]; t == nil || !t.bestEffort() {
			last = i + 1
		}
	}
	bound := maps.Clone(j.memory.bound)
	for i, b := range binds {
		then := take(j.setting, j.objects, &memory{bound: bound, plans: j.memory.plans}, at.now)
		if g := then.jobs[b.Job.Name]; i >= last && (g == nil || g.enough(g.ready)) {
			return i
		}
		bound[b.UID] = b.Node
		after := take(j.setting, j.objects, &memory{bound: bound, plans: j.memory.plans}, at.now)
		if t := after.pods[b.Pod.Name]; t != nil && t.job != nil && t.job.queue != nil && exceeds(t.job.queue, t.wants) != "" {
			return i
		}
	}
	return len(binds)
}

func (j *judge) end(e decision.PlanEnd) {
	j.cancelled++
	if e.Why == "" {
		j.breach("S4", "plan %s ends for no reason", e.ID)
	}
	delete(j.memory.plans, e.ID)
	for _, p := range j.memory.plans {
		if p.action == "" { // written by a scheduler before this one
			for _, n := range e.Nominations {
				delete(p.nominated, n.UID)
			}
		}
	}
}

// bind judges that a pod gets its node: S5, K5.
func (j *judge) bind(b decision.Bind, d *decision.Decisions, at *picture) {
	j.binds++
	before := j.look(at)
	t := before.pods[b.Pod.Name]
	if t == nil || t.uid() != b.UID || t.job == nil || t.state != waiting && t.state != promised {
		j.breach("S5", "pod %s is bound and does not wait: %+v", b.Pod.Name, t)
		return
	}
	if t.state == promised && t.node != b.Node {
		j.elsewhere(t, b, d)
	}
	if !admits(before.nodes[b.Node], t.object) {
		j.breach("K1", "pod %s is bound to %s, which does not take it", t.name, b.Node)
	}
	j.memory.bound[b.UID] = b.Node
	j.settled(t, before)
	for id, p := range j.memory.plans {
		if p.nominated[b.UID] != "" {
			j.fulfil(id, p, b.UID)
		}
	}
	after := j.look(at)
	if why := after.tooFull(b.Node, now); why != "" {
		j.breach("S5", "pod %s is bound: %s", t.name, why)
	} else if why := after.tooFull(b.Node, later); why != "" {
		j.breach("K5", "pod %s is bound into room that is promised: %s", t.name, why)
	}
}

// settled judges that a queue, and all above it, hold no more than they ever may though evictions that are not sent yet
// should be refused (Q4).
func (j *judge) settled(t *pod, before *picture) {
	if j.setting.sharer == "" || t.job.queue == nil {
		return
	}
	for _, q := range t.job.queue.upwards() {
		holds := q.sum(func(s state) bool { return s == binding || s == placed })
		for _, p := range before.pods {
			if p.job != nil && p.job.queue != nil && p.state == leaving && p.object.DeletionTimestamp == nil &&
				slices.Contains(p.job.queue.upwards(), q) {
				holds.add(p.wants, 1)
			}
		}
		holds.add(t.wants, 1)
		for name, capability := range q.capability {
			if t.wants[name] > 0 && holds[name] > capability {
				j.breach("Q4", "pod %s is bound while queue %s may come to hold %s, its capability is %s", t.name, q.name, holds, q.capability)
			}
		}
	}
}

// elsewhere judges that a pod gets another node than it was promised: then all that its plan promises is bound in the
// cycle, since room has become free sooner (K5).
func (j *judge) elsewhere(t *pod, b decision.Bind, d *decision.Decisions) {
	for id, p := range j.memory.plans {
		if p.nominated[t.uid()] == "" {
			continue
		}
		delete(j.memory.plans, id)
		for uid := range p.nominated {
			if !slices.ContainsFunc(d.Binds, func(other decision.Bind) bool { return other.UID == uid }) {
				j.breach("K5", "pod %s is bound to %s and was promised %s, and others of plan %s wait", t.name, b.Node, t.node, p.id)
				return
			}
		}
	}
}

// fulfil takes a pod that got what it was promised off its plan. A pod that is gone is promised nothing any more.
func (j *judge) fulfil(id string, p *plan, uid types.UID) {
	rest := *p
	rest.nominated = maps.Clone(p.nominated)
	maps.DeleteFunc(rest.nominated, func(other types.UID, _ string) bool { return other == uid || !j.exists(other) })
	j.memory.plans[id] = &rest
	if len(rest.nominated) > 0 {
		return
	}
	delete(j.memory.plans, id)
	for uid, name := range rest.victims {
		if object := j.objects.pods[name]; object != nil && object.UID == uid && object.DeletionTimestamp == nil &&
			object.Status.Phase != corev1.PodSucceeded && object.Status.Phase != corev1.PodFailed {
			j.breach("S1", "plan %s has what it wanted, and pod %s is to leave for it still", id, name)
		}
	}
}

// gangs judges that no part of a gang starts: S5.
func (j *judge) gangs(binds []decision.Bind, at *picture) {
	if len(binds) == 0 {
		return
	}
	after := j.look(at)
	for _, b := range binds {
		if g := after.jobs[b.Job.Name]; j.setting.gang && g != nil && !g.enough(g.ready) {
			j.breach("S5", "job %s has %d pods that start, its minimum is %d %v", g.name, g.ready(""), g.object.Spec.MinMember,
				g.object.Spec.MinTaskMember)
		}
	}
}

// inherited returns the plan of a scheduler before this one that a plan goes on with: one that promises the same pods.
func (j *judge) inherited(d decision.PlanStart) (*plan, bool) {
	for _, p := range j.memory.plans {
		if p.action == "" && slices.ContainsFunc(d.Nominations, func(n decision.Nomination) bool { return p.nominated[n.UID] != "" }) {
			return p, true
		}
	}
	return nil, false
}

// planOf reads a plan.
func planOf(d decision.PlanStart) *plan {
	p := &plan{id: d.ID, preemptor: d.Job.Name, victims: map[types.UID]string{}, nominated: map[types.UID]string{}}
	for _, e := range d.Evictions {
		p.victims[e.UID], p.action = e.Pod.Name, e.Action
	}
	for _, n := range d.Nominations {
		p.nominated[n.UID] = n.Node
	}
	if p.action == "" {
		p.action = "none"
	}
	return p
}

// goOn judges the plans that go on with those of a scheduler before this one, and returns the others. They hold
// together.
func (j *judge) goOn(all []decision.PlanStart, at *picture, divided []*share) []decision.PlanStart {
	var replacements, others []decision.PlanStart
	for _, d := range all {
		if last, ok := j.inherited(d); ok {
			j.continued++
			for _, n := range d.Nominations {
				delete(last.nominated, n.UID)
			}
			replacements = append(replacements, d)
		} else {
			others = append(others, d)
		}
	}
	for _, d := range replacements {
		j.memory.plans[d.ID] = planOf(d)
	}
	for i, d := range replacements {
		delete(j.memory.plans, d.ID)
		j.hear(d, at, divided, true, replacements[i+1:])
	}
	return others
}

// plan judges one plan, and remembers it.
func (j *judge) plan(d decision.PlanStart, at *picture, divided []*share) {
	j.plans++
	j.evictions += len(d.Evictions)
	j.hear(d, at, divided, false, nil)
}

// hear judges a plan. isRecovered says that it was decided before, and goes on; later are the plans that were decided
// after it, and go on too.
func (j *judge) hear(d decision.PlanStart, at *picture, divided []*share, isRecovered bool, later []decision.PlanStart) {
	c := &planCheck{judge: j, decision: d, plan: planOf(d), before: j.look(at), divided: divided, isRecovered: isRecovered}
	c.after = j.with(c.plan, at)
	c.decided = c.after
	if len(later) > 0 {
		m := &memory{bound: j.memory.bound, plans: maps.Clone(j.memory.plans)}
		for _, l := range later {
			delete(m.plans, l.ID)
		}
		m.plans[d.ID] = c.plan
		c.decided = take(j.setting, j.objects, m, at.now)
	}
	c.check()
	if j.watch != nil {
		j.watch(c)
	}
	j.memory.plans[d.ID] = c.plan
}

// remember takes the outcome of writes off what is only remembered.
func (m *memory) remember(o *objects) {
	known := map[types.UID]bool{}
	for _, p := range o.pods {
		if p.Spec.NodeName == "" {
			known[p.UID] = true
		}
	}
	maps.DeleteFunc(m.bound, func(uid types.UID, _ string) bool { return !known[uid] })
}
