package cohorts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// withGrid gives a model the nodes of its case.
func (m *model) withGrid(c *theCase) *grid {
	g := newGrid(m, c)
	m.cycle.Use(g)
	return g
}

// audit works out every total afresh from the holders, and says which one is wrong.
func (m *model) audit(c *theCase) string {
	fresh := &model{index: m.index, byName: map[string]*workload.Queue{}, nodes: map[string]*cohort.Node{}, flavors: map[string]*workload.Flavor{}}
	fresh.queues = workload.New(m.index)
	fresh.grow(nil, c)
	for _, q := range m.queues.All() {
		for _, w := range q.Holders() {
			fresh.byName[q.Name].Charge(w.Charge)
		}
	}
	if got, want := m.state(), fresh.state(); got != want {
		return fmt.Sprintf("the ledger is\n%s\nworked out afresh it is\n%s", got, want)
	}
	return ""
}

// auditNodes says which holder has not as many pods on nodes as it is charged for, and which node holds more than it
// has. Room that a Workload is promised may still be held by its victims.
func (m *model) auditNodes(g *grid) string {
	held := map[*gridNode]resources.Vector{}
	for _, q := range m.queues.All() {
		for _, w := range q.Holders() {
			charged, placed := int64(0), int64(0)
			for _, a := range w.Charge {
				charged += a.Value
			}
			for _, p := range g.pods[w] {
				placed += size(p.requests)
				if w.Phase != workload.PhaseEvicting {
					v := held[p.node]
					v.Add(p.requests)
					held[p.node] = v
				}
			}
			if charged != placed {
				return fmt.Sprintf("%s is charged for %d and its pods on nodes request %d", w.Name, charged, placed)
			}
		}
	}
	for _, n := range g.nodes {
		if !held[n].LessEqual(n.all) {
			return fmt.Sprintf("node %s holds %v of %v", n.name, held[n], n.all)
		}
	}
	return ""
}

func TestRandomClustersComeToRest(t *testing.T) {
	evictions := 0
	for seed := range worlds(t, 400) {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		c := random(t, r, seed%2 == 0)
		m := build(t, c)
		var g *grid
		if seed%2 == 0 {
			g = m.withGrid(c)
		}
		if wrong := m.rest(c, g); wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, c.Note)
		}
		evictions += m.evictions
	}
	if evictions == 0 {
		t.Error("nobody was evicted in any of the clusters")
	}
}

// rest runs cycles until two in a row decide nothing, checks the invariants at each decision, and says what is wrong.
func (m *model) rest(c *theCase, g *grid) (wrong string) {
	n := len(m.workloads) + 1
	m.check = func() {
		if wrong == "" {
			wrong = m.audit(c)
		}
		if wrong == "" && g != nil {
			wrong = m.auditNodes(g)
		}
	}
	quiet := 0
	for i := 0; i < 10*n*n && quiet < 2 && wrong == ""; i++ {
		if quiet++; m.stepOn(g, after(2000+i)) {
			quiet = 0
		}
		if m.evictions > n*n {
			return fmt.Sprintf("%d evictions with %d workloads", m.evictions, n-1)
		}
	}
	if wrong == "" && quiet < 2 {
		return "it does not come to rest"
	}
	for i := 0; i < 5 && wrong == ""; i++ {
		if m.stepOn(g, after(9000+i)) {
			return "something changed after it had come to rest"
		}
	}
	return wrong
}

func TestVictimSetsAreAllowed(t *testing.T) {
	found := map[workload.Why]int{}
	for seed := range worlds(t, 1000) {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		c := random(t, r, false)
		m := build(t, c)
		m.fill(r)
		for _, w := range m.sorted() {
			if w.Charge != nil {
				continue
			}
			claim := m.claimOf(r, w)
			before := m.state()
			victims := m.rules.Victims(claim, nil)
			if after := m.state(); after != before {
				t.Fatalf("seed %d: the ledger is\n%s\nwant\n%s", seed, after, before)
			}
			if wrong := m.forbidden(claim, victims); wrong != "" {
				t.Fatalf("seed %d: %s takes %s: %s\n%s", seed, w.Name, names(victims), wrong, c.Note)
			}
			for _, v := range victims {
				found[v.Why]++
			}
		}
	}
	for _, why := range []workload.Why{workload.InClusterQueue, workload.InCohortReclamation, workload.InCohortFairSharing, workload.InCohortReclaimWhileBorrowing} {
		if found[why] == 0 {
			t.Errorf("nobody was evicted for the reason %s", why)
		}
	}
}

func names(victims []workload.Victim) string {
	var all []string
	for _, v := range victims {
		all = append(all, v.Name+" ("+string(v.Why)+")")
	}
	return strings.Join(all, ", ")
}

func (m *model) sorted() []*workload.Workload {
	var all []*workload.Workload
	for _, w := range m.workloads {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *workload.Workload) int { return strings.Compare(a.UID, b.UID) })
	return all
}

// fill charges some Workloads, as far as the quota goes.
func (m *model) fill(r *rand.Rand) {
	for i, w := range m.sorted() {
		claim := m.claimOf(r, w)
		if w.Queue.Fits(claim.Usage) && r.IntN(8) > 0 {
			m.queues.Remove(w)
			w.Reserved, w.Phase = after(i%3), phaseOf(r.IntN(10) == 0)
			m.queues.Charge(w, claim.Usage)
		}
	}
}

// claimOf asks for all of a Workload in a flavor by chance.
func (m *model) claimOf(r *rand.Rand, w *workload.Workload) *workload.Claim {
	flavor := w.Queue.Groups[0].Flavors[r.IntN(len(w.Queue.Groups[0].Flavors))]
	value := int64(0)
	for i := range w.PodSets {
		value += int64(w.PodSets[i].Count) * w.PodSets[i].Requests[0].Value
	}
	return &workload.Claim{Workload: w, Usage: []cohort.Amount{{FR: flavor.FRs[0], Value: value}}, Needs: flavor.FRs[:1]}
}

// forbidden takes victims in order, and says which of them must not be taken, or that the claim does not fit
// afterwards.
func (m *model) forbidden(claim *workload.Claim, victims []workload.Victim) string {
	if len(victims) == 0 {
		return ""
	}
	q := claim.Workload.Queue
	mark := q.Tree().Mark()
	defer q.Tree().Undo(mark)
	for _, v := range victims {
		if wrong := m.forbiddenTake(claim, v); wrong != "" {
			return v.Name + ": " + wrong
		}
		v.Queue.Release(v.Charge)
	}
	if !q.Fits(claim.Usage) {
		return "the claim does not fit afterwards"
	}
	return ""
}

func (m *model) forbiddenTake(claim *workload.Claim, v workload.Victim) string {
	w, q, frs := claim.Workload, claim.Workload.Queue, claim.Needs
	if v.Queue == q {
		if v.Why != workload.InClusterQueue || !q.Preemption.WithinClusterQueue.Allows(w, v.Workload) {
			return "the queue's policy does not allow it"
		}
		return ""
	}
	if !q.Preemption.ReclaimWithinCohort.Allows(w, v.Workload) {
		return "the Cohort's policy does not allow it"
	}
	common := cohort.CommonAncestor(&q.Node, &v.Queue.Node)
	for n := &v.Queue.Node; n != common; n = n.Parent() {
		if borrows := n.IsOver(frs) || m.rules.FairSharing && n.IsBorrowing(); !borrows {
			return n.Name + " does not borrow any more"
		}
	}
	switch v.Why {
	case workload.InCohortReclaimWhileBorrowing:
		if !q.Preemption.BorrowWithinCohort || v.Priority >= w.Priority || m.rules.FairSharing {
			return "it may not be taken while borrowing"
		}
	case workload.InCohortFairSharing:
		return m.unfair(claim, v, common)
	case workload.InCohortReclamation:
		if m.rules.FairSharing && q.Borrows(claim.Usage[0].FR, claim.Usage[0].Value) {
			return "the preemptor is not within its nominal quota"
		}
	}
	return ""
}

func (m *model) unfair(claim *workload.Claim, v workload.Victim, common *cohort.Node) string {
	q := claim.Workload.Queue
	q.Charge(claim.Usage)
	defer q.Release(claim.Usage)
	mine, theirs := common.ChildTowards(&q.Node), common.ChildTowards(&v.Queue.Node)
	share, initial := mine.Share(), theirs.Share()
	v.Queue.Release(v.Charge)
	final := theirs.Share()
	v.Queue.Charge(v.Charge)
	for _, s := range m.rules.Strategies {
		if s == workload.LessThanInitialShare && share.Compare(initial) < 0 || s == workload.LessThanOrEqualToFinalShare && share.Compare(final) <= 0 {
			return ""
		}
	}
	return fmt.Sprintf("the preemptor's share is %d, the victim's %d, and %d without it", share.Weighted(), initial.Weighted(), final.Weighted())
}

func TestDecisionsDoNotDependOnTheOrderOfInput(t *testing.T) {
	for seed := range worlds(t, 200) {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		c := random(t, r, seed%2 == 0)
		want := transcript(t, c, seed%2 == 0)
		shuffled := *c
		shuffled.Cohorts, shuffled.ClusterQueues = slices.Clone(c.Cohorts), slices.Clone(c.ClusterQueues)
		shuffled.Pending, shuffled.Nodes = slices.Clone(c.Pending), slices.Clone(c.Nodes)
		r.Shuffle(len(c.Cohorts), func(i, j int) { shuffled.Cohorts[i], shuffled.Cohorts[j] = shuffled.Cohorts[j], shuffled.Cohorts[i] })
		r.Shuffle(len(c.ClusterQueues), func(i, j int) {
			shuffled.ClusterQueues[i], shuffled.ClusterQueues[j] = shuffled.ClusterQueues[j], shuffled.ClusterQueues[i]
		})
		r.Shuffle(len(c.Pending), func(i, j int) { shuffled.Pending[i], shuffled.Pending[j] = shuffled.Pending[j], shuffled.Pending[i] })
		if got := transcript(t, &shuffled, seed%2 == 0); got != want {
			t.Fatalf("seed %d: decided is\n%s\nin another order\n%s\n%s", seed, want, got, c.Note)
		}
	}
}

// transcript tells all decisions of ten cycles.
func transcript(t *testing.T, c *theCase, withNodes bool) string {
	m := build(t, c)
	var g *grid
	if withNodes {
		g = m.withGrid(c)
	}
	var said []string
	m.note = func(n *workload.Nomination) {
		said = append(said, fmt.Sprintf("%s %s %v %s", n.Name, n.Outcome, m.flavorsOf(n.Assignment), names(n.Victims)))
	}
	for i := range 10 {
		m.stepOn(g, after(2000+i))
		said = append(said, "")
	}
	return strings.Join(said, "\n")
}
