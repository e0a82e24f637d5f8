package rules

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

// The size of a cluster of which the oracle tries all there is.
const (
	maxNodes = 4
	maxPods  = 8 // that may leave
	maxTries = 200
)

// oracle tries every plan that the rules allow.
type oracle struct {
	judge *judge
	at    *picture
	// pods are those that every plan places, nil if it is the fewest that start their job.
	pods []*pod
}

// search is a level at which an action looks for victims.
type search struct {
	action string
	level  level
}

var searches = []search{{"preempt", betweenJobs}, {"preempt", anywhere}, {"preempt", withinJob}, {"reclaim", betweenQueues}}

// takes reports whether a job may look for victims at all.
func (o *oracle) takes(t *job) bool {
	isPending := t.object.Status.Phase == schedulingv1beta1.PodGroupPending || t.object.Status.Phase == ""
	if t.queue == nil || !t.queue.open() || t.never || isPending {
		return false
	}
	for _, p := range o.at.plans {
		if p.preemptor == t.name {
			return false
		}
	}
	return t.enough(func(role string) int {
		return t.count(role, func(p *pod) bool { return p.done || p.state.counts() || p.state == waiting })
	})
}

// plans tries all plans that a job could have in a search, until one is enough. Each is put before a judge; those that
// it objects to are passed over.
func (o *oracle) plans(t *job, s search, isEnough func(*planCheck) bool) {
	var candidates []*pod
	for _, name := range slices.Sorted(maps.Keys(o.at.pods)) {
		v := o.at.pods[name]
		if v.job == nil || v.job.queue == nil || s.level != anywhere && levelOf(s.action, t, v) != s.level {
			continue
		}
		if rule, _ := o.at.protects(s.action, t, v); rule == "" && (s.level != anywhere || v.job != t) {
			candidates = append(candidates, v)
		}
	}
	if len(candidates) == 0 || len(candidates) > maxPods {
		return
	}
	parties := o.parties(t, s.level)
	if len(o.pods) > 0 && (len(parties) == 0 || len(parties[0]) < len(o.pods)) {
		parties = [][]*pod{o.pods}
	}
	// Small sets first.
	sets := make([]int, 0, 1<<len(candidates))
	for set := 1; set < 1<<len(candidates); set++ {
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b int) int { return cmp.Compare(ones(a), ones(b)) })
	for _, set := range sets {
		var victims []*pod
		for i, v := range candidates {
			if set&(1<<i) != 0 {
				victims = append(victims, v)
			}
		}
		if o.breaks(t, victims) {
			continue
		}
		for _, comers := range parties {
			if h := o.allowed(t, s.action, victims, comers); h != nil && isEnough(h) {
				return
			}
		}
	}
}

func ones(set int) int {
	count := 0
	for ; set > 0; set &= set - 1 {
		count++
	}
	return count
}

// parties are the sets of pods of a job that need room together: the fewest that start it or, if it has started, any
// one.
func (o *oracle) parties(t *job, l level) [][]*pod {
	var waits []*pod
	for _, p := range t.pods {
		if p.state == waiting {
			waits = append(waits, p)
		}
	}
	if len(waits) > 5 {
		return nil
	}
	isStarving := t.ready("") < int(t.object.Spec.MinMember)
	asksForMore := l == betweenQueues && o.judge.setting.guarantees() // each further pod asks by itself (rule G9)
	if l != withinJob && o.judge.setting.onlyStarving && !isStarving && !asksForMore {
		return nil
	}
	var parties [][]*pod
	for set := 1; set < 1<<len(waits); set++ {
		var party []*pod
		for i, p := range waits {
			if set&(1<<i) != 0 {
				party = append(party, p)
			}
		}
		if len(parties) > 0 && len(party) > len(parties[0]) {
			continue
		}
		with := func(role string) int {
			return t.ready(role) + len(slices.DeleteFunc(slices.Clone(party), func(p *pod) bool { return role != "" && p.role() != role }))
		}
		if !t.enough(with) {
			continue
		}
		if len(parties) > 0 && len(party) < len(parties[0]) {
			parties = nil
		}
		parties = append(parties, party)
	}
	return parties
}

// breaks reports whether a victim would be broken, a question that needs no judge.
func (o *oracle) breaks(t *job, victims []*pod) bool {
	leaves := func(p *pod) bool { return slices.Contains(victims, p) }
	return slices.ContainsFunc(victims, func(v *pod) bool {
		g := v.job
		stays := func(role string) int {
			return g.count(role, func(p *pod) bool { return p.done || (p.state == binding || p.state == placed) && !leaves(p) })
		}
		left := g.count("", func(p *pod) bool { return (p.state == binding || p.state == placed) && !leaves(p) })
		return !g.enough(stays) && (left > 0 || !o.judge.setting.whole || g == t)
	})
}

// allowed returns a plan with these victims and these pods on some nodes to which no judge objects, nil if there is
// none.
func (o *oracle) allowed(t *job, action string, victims, comers []*pod) *planCheck {
	room := map[string]amounts{}
	for name, n := range o.at.nodes {
		room[name] = amountsOf(n.Status.Allocatable)
		room[name].add(o.at.on(name, later), -1)
	}
	for _, v := range victims {
		room[v.node].add(v.wants, 1)
	}
	var found *planCheck
	tries := 0
	nodes := slices.Sorted(maps.Keys(o.at.nodes))
	on := make([]string, len(comers))
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(comers) {
			tries++
			if h := o.hear(t, action, victims, comers, on); len(h.breaches) == 0 {
				found = h
			}
			return found != nil || tries >= maxTries
		}
		for _, n := range nodes {
			if !admits(o.at.nodes[n], comers[i].object) || !fits(room[n], comers[i].wants) {
				continue
			}
			room[n].add(comers[i].wants, -1)
			on[i] = n
			if place(i + 1) {
				return true
			}
			room[n].add(comers[i].wants, 1)
		}
		return false
	}
	place(0)
	return found
}

func fits(room, wants amounts) bool {
	for name, value := range wants {
		if value > room[name] {
			return false
		}
	}
	return true
}

// hear puts a plan before a judge.
func (o *oracle) hear(t *job, action string, victims, comers []*pod, on []string) *planCheck {
	d := decision.PlanStart{ID: "oracle", Job: decision.JobID{Namespace: fixture.Namespace, Name: t.name}}
	for _, v := range victims {
		d.Evictions = append(d.Evictions, decision.Eviction{Pod: fixture.Key(v.name), UID: v.uid(), Node: v.node, VictimJob: decision.JobID{Namespace: fixture.Namespace, Name: v.job.name},
			For: d.Job, Action: action, Rule: "any", Message: "tried", PastBudget: true})
	}
	for i, p := range comers {
		d.Nominations = append(d.Nominations, decision.Nomination{Pod: fixture.Key(p.name), UID: p.uid(), Node: on[i], Job: d.Job})
	}
	j := &judge{setting: o.judge.setting, objects: o.judge.objects, memory: o.judge.memory}
	h := &planCheck{judge: j, decision: d, plan: planOf(d), before: o.at, divided: []*share{o.at.shares()}}
	h.after = j.with(h.plan, o.at)
	h.decided = h.after
	h.check()
	if len(j.breaches) == 0 && !h.stands(h.after, h.comers) {
		j.breach("Q4", "the plugins keep what others are guaranteed free")
	}
	return h
}

// oracleSettings are those in which only the rules decide.
func oracleSettings() []setting {
	return slices.DeleteFunc(settings(), func(s setting) bool {
		return s.tree || s.pdb || s.drf || s.overcommit || s.sharer == "proportion"
	})
}

// smallCluster is one that the oracle can try all of.
func smallCluster(s setting, choose chooser) *testCluster {
	w := randomCluster(s, choose)
	w.calm, w.willing = true, true
	return w
}

// misses returns the jobs of a cluster at rest for which the rules allow a plan.
func (w *testCluster) misses() []*planCheck {
	o := &oracle{judge: w.judge, at: take(w.setting, &w.objects, w.judge.memory, w.now)}
	if len(o.at.nodes) > maxNodes {
		return nil
	}
	var missed []*planCheck
	for _, name := range slices.Sorted(maps.Keys(o.at.jobs)) {
		t := o.at.jobs[name]
		if !o.takes(t) {
			continue
		}
		for _, s := range searches {
			if !slices.Contains(w.setting.actions, s.action) || s.level == betweenJobs && t.lone || s.level == anywhere && !t.lone {
				continue
			}
			o.plans(t, s, func(h *planCheck) bool {
				missed = append(missed, h)
				return true
			})
		}
	}
	return missed
}

// If the rules allow a plan, one is made: at rest there is none left. For gangs, whose nodes are found one after the
// other, some may be; they are counted.
func TestAtRestNoAllowedPlanIsLeft(t *testing.T) {
	clusters, plans, gangs, all := 0, 0, 0, oracleSettings()
	number := oracleClusters
	if testing.Short() {
		number /= shortPart
	}
	check(t, number, func(choose chooser) outcome {
		w := smallCluster(all[choose(len(all))], choose)
		w.rest()
		clusters, plans = clusters+1, plans+w.judge.plans
		if len(w.judge.breaches) > 0 {
			return "" // for others to say
		}
		for _, h := range w.misses() {
			if len(h.comers) > 1 {
				gangs++
				continue
			}
			w.judge.breach("S2", "%s of %s could evict %v and be on %v", h.plan.action, h.preemptor.name, namesOf(h.victims),
				slices.Collect(maps.Values(h.plan.nominated)))
		}
		return w.outcome()
	})
	t.Logf("%d clusters, %d plans; %d plans of gangs were missed", clusters, plans, gangs)
}

// oracleClusters is of how many clusters the oracle tries all.
const oracleClusters = 1500

// cost is what a plan costs, in the order of K3: smaller is better, the first difference decides.
type cost []int64

func (c cost) compare(d cost) (int, int) {
	for i := range c {
		if c[i] != d[i] {
			return cmp.Compare(c[i], d[i]), i
		}
	}
	return 0, len(c)
}

var criteria = []string{"budget violations", "highest priority", "highest priority", "highest priority", "sum of priorities",
	"sum of priorities", "sum of priorities", "number of victims"}

// cost works out what a plan costs.
func (h *planCheck) cost() cost {
	const shift = int64(1) << 31
	importance := func(v *pod) [3]int64 {
		var p [3]int64
		if h.plan.action == "reclaim" {
			p[0] = int64(v.job.queue.object.Spec.Priority)
		}
		p[1] = int64(v.job.priority)
		if v.job == h.preemptor {
			p[2] = int64(v.rank)
		}
		return p
	}
	highest, sum := [3]int64{-shift, -shift, -shift}, [3]int64{}
	for _, v := range h.victims {
		p := importance(v)
		if slices.Compare(p[:], highest[:]) > 0 {
			highest = p
		}
		for i := range sum {
			sum[i] += p[i] + shift
		}
	}
	c := cost{0}
	if h.setting.preset != "kube-1.8" {
		c[0] = h.violations()
	}
	c = append(c, highest[:]...)
	c = append(c, sum[:]...)
	return append(c, int64(len(h.victims)))
}

// violations is how many of the victims a budget does not allow to leave.
func (h *planCheck) violations() int64 {
	violations := map[types.UID]bool{}
	for _, b := range h.before.budgets {
		left := b.Status.DisruptionsAllowed
		for _, v := range h.victims {
			if covers(b, v.object) {
				if left--; left < 0 {
					violations[v.uid()] = true
				}
			}
		}
	}
	return int64(len(violations))
}

// row counts plans, and those of them that are the best there is.
type row struct{ plans, best int }

// comparison counts by kind of preemptor how many plans are the best there is, by the list of K3 and K4.
type comparison struct {
	rows  map[string]*row
	worse map[string]map[string]int // by which criterion another plan is better
}

func newComparison() *comparison {
	return &comparison{rows: map[string]*row{"single pods": {}, "gangs": {}}, worse: map[string]map[string]int{"single pods": {}, "gangs": {}}}
}

// watch compares the cost of each plan of a cluster with that of the best plan there is.
func (c *comparison) watch(t *testing.T, seed int, w *testCluster) {
	w.judge.watch = func(h *planCheck) {
		if len(h.before.nodes) > maxNodes || len(h.victims) == 0 || len(h.comers) > 4 || len(h.breaches) > 0 {
			return
		}
		kind := "single pods"
		if len(h.comers) > 1 {
			kind = "gangs"
		}
		own, best := h.cost(), cost(nil)
		var better *planCheck
		o := &oracle{judge: h.judge, at: h.before, pods: h.comers}
		o.plans(h.preemptor, search{h.plan.action, levelOf(h.plan.action, h.preemptor, h.victims[0])}, func(other *planCheck) bool {
			if c := other.cost(); best == nil || first(c.compare(best)) < 0 {
				best, better = c, other
			}
			return false
		})
		if best == nil {
			return
		}
		c.rows[kind].plans++
		if sign, at := own.compare(best); sign > 0 {
			c.worse[kind][criteria[at]]++
			t.Logf("seed %d: %s evicts %v for %v, and could %v for %v (%s)", seed, h.preemptor.name, namesOf(h.victims), namesOf(h.comers), namesOf(better.victims), namesOf(better.comers), criteria[at])
			return
		}
		c.rows[kind].best++
	}
}

// check fails if more than one in so many plans of gangs is not the best there is, or there were too few plans.
func (c *comparison) check(t *testing.T, single, gangs, oneIn int) {
	t.Helper()
	for _, kind := range []string{"single pods", "gangs"} {
		t.Logf("%-12s %5d plans, %5d of them the best there is; a better one by: %v", kind, c.rows[kind].plans, c.rows[kind].best, c.worse[kind])
	}
	if c.rows["single pods"].plans < single || c.rows["gangs"].plans < gangs {
		t.Error("too few plans to say anything")
	}
	if row := c.rows["gangs"]; row.plans-row.best > 1+row.plans/oneIn {
		t.Errorf("of %d plans of gangs %d are not the best there is", row.plans, row.plans-row.best)
	}
}

// Of the plans that are made the costs are compared with those of the best there is.
func TestTheGapToTheBestPlan(t *testing.T) {
	c, all := newComparison(), oracleSettings()
	for seed := range oracleClusters {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		w := smallCluster(all[seed%len(all)], random.IntN)
		c.watch(t, seed, w)
		w.rest()
	}
	c.check(t, 100, 20, 200)
}

func first(sign, _ int) int { return sign }
