package cohorts

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/trees"
	"hekla.sh/hekla/test/cohorts/world"
)

func TestWhoIsEvicted(t *testing.T) {
	cases(t, "preemption.json", func(t *testing.T, c *theCase) {
		var incoming struct {
			Name, ClusterQueue string
			Priority           int32
			CreatedSeconds     int
			Usage              []amountSpec
			NeedsPreemption    []struct{ Flavor, Resource string }
		}
		decode(t, c.Incoming, &incoming)
		var expect struct{ Preempted map[string]workload.Why }
		decode(t, c.Expect, &expect)
		m := build(t, c)
		w := &workload.Workload{UID: incoming.Name, Name: incoming.Name, Queue: m.byName[incoming.ClusterQueue], Priority: incoming.Priority,
			Timestamp: after(incoming.CreatedSeconds)}
		claim := &workload.Claim{Workload: w, Usage: m.amounts(incoming.Usage)}
		for _, n := range incoming.NeedsPreemption {
			claim.Needs = append(claim.Needs, m.fr(n.Flavor, n.Resource))
		}
		before := m.state()
		got := map[string]workload.Why{}
		for _, v := range m.rules.Victims(claim, nil) {
			got[v.Name] = v.Why
		}
		if !maps.Equal(got, expect.Preempted) {
			t.Errorf("evicted are %v, want %v", got, expect.Preempted)
		}
		if after := m.state(); after != before {
			t.Errorf("afterwards the ledger is\n%s\nwant\n%s", after, before)
		}
	})
}

// given is an oracle whose answers are given.
type given struct {
	*model
	answers []oracleSpec
}

func (g given) Ask(_ *workload.Workload, fr resources.FR, _ int64) (workload.Mode, int) {
	modes := map[string]workload.Mode{"NoCandidates": workload.NoCandidates, "Preempt": workload.Preempt, "Reclaim": workload.Reclaim}
	for _, a := range g.answers {
		if g.fr(a.Flavor, a.Resource) == fr {
			return modes[a.Mode], a.BorrowLevel
		}
	}
	return workload.Preempt, 0
}

func TestWhichFlavors(t *testing.T) {
	cases(t, "assignment.json", func(t *testing.T, c *theCase) {
		var expect struct {
			Mode          string
			BorrowLevel   int
			PodSetFlavors []map[string]string
		}
		decode(t, c.Expect, &expect)
		m := build(t, c)
		assigner := &flavors.Assigner{Index: m.index, Oracle: given{m, c.Oracle}, Nodes: trees.Room{}, FairSharing: c.FairSharing}
		w := m.workloads[c.Pending[0].Name]
		a := assigner.Assign(w, flavors.Counts(w), nil)
		mode, got := modeName(a.Mode), []map[string]string{}
		if a.Mode != workload.NoFit {
			got = m.flavorsOf(a)
		}
		if mode != expect.Mode || a.Level != expect.BorrowLevel {
			t.Errorf("the mode is %s at level %d, want %s at level %d", mode, a.Level, expect.Mode, expect.BorrowLevel)
		}
		if !reflect.DeepEqual(got, expect.PodSetFlavors) {
			t.Errorf("flavors are %v, want %v", got, expect.PodSetFlavors)
		}
	})
}

func modeName(m workload.Mode) string {
	switch m {
	case workload.NoFit:
		return "NoFit"
	case workload.Fit:
		return "Fit"
	}
	return "Preempt"
}

func (m *model) flavorsOf(a *workload.Assignment) []map[string]string {
	all := []map[string]string{}
	for i := range a.PodSets {
		chosen := map[string]string{}
		for _, f := range a.PodSets[i].Flavors {
			chosen[string(m.index.Name(f.Resource))] = f.Flavor.Name
		}
		all = append(all, chosen)
	}
	return all
}

// decided is what a case of one cycle expects.
type decided struct {
	Workloads map[string]struct {
		Outcome workload.Outcome
		PodSets []struct {
			Flavors map[string]string
			Count   *int32
		}
		Flavor string
		Counts []int32
	}
	Preempted map[string]workload.Why
}

func TestOneRound(t *testing.T) {
	cases(t, "cycle.json", func(t *testing.T, c *theCase) {
		var expect decided
		decode(t, c.Expect, &expect)
		m := build(t, c)
		got, preempted := map[string]*workload.Nomination{}, map[string]workload.Why{}
		m.cycle.Decided = func(n *workload.Nomination) {
			got[n.Name] = n
			countEvicted(preempted, n)
		}
		m.cycle.MaxRounds = 1 // a round of one head of each queue, as the cases have it
		m.cycle.Round()
		if len(got) != len(expect.Workloads) {
			t.Errorf("%d workloads were decided, want %d", len(got), len(expect.Workloads))
		}
		for name, want := range expect.Workloads {
			n := got[name]
			if n == nil || n.Outcome != want.Outcome {
				t.Errorf("workload %s: %s, want %s", name, outcome(n), want.Outcome)
				continue
			}
			for i, p := range want.PodSets {
				if chosen := m.flavorsOf(n.Assignment)[i]; !maps.Equal(chosen, p.Flavors) {
					t.Errorf("workload %s: pod set %d gets %v, want %v", name, i, chosen, p.Flavors)
				}
				if count := n.Assignment.PodSets[i].Count; p.Count != nil && count != *p.Count {
					t.Errorf("workload %s: pod set %d gets %d pods, want %d", name, i, count, *p.Count)
				}
			}
		}
		if !maps.Equal(preempted, expect.Preempted) {
			t.Errorf("evicted are %v, want %v", preempted, expect.Preempted)
		}
	})
}

func outcome(n *workload.Nomination) string {
	if n == nil {
		return "not decided"
	}
	return fmt.Sprint(n.Outcome)
}

func TestItComesToRest(t *testing.T) {
	cases(t, "termination.json", func(t *testing.T, c *theCase) {
		m := build(t, c)
		quiet := 0
		for i := range 200 {
			if m.step(after(2000 + i)) {
				quiet = 0
			} else if quiet++; quiet == 2 {
				break
			}
		}
		if quiet < 2 {
			t.Fatal("it has not come to rest after 200 cycles")
		}
		for i := range 20 {
			if m.step(after(3000 + i)) {
				t.Fatal("something changed after it had come to rest")
			}
		}
	})
}

// countEvicted adds who is evicted for a nomination. The victims of one that was skipped stay.
func countEvicted(evicted map[string]workload.Why, n *workload.Nomination) {
	if n.Outcome != workload.Preempting {
		return
	}
	for _, v := range n.Victims {
		evicted[v.Name] = v.Why
	}
}

func TestVictimsOfASkippedNominationAreNotEvicted(t *testing.T) {
	for outcome, want := range map[workload.Outcome]int{workload.Preempting: 1, workload.Skipped: 0} {
		evicted := map[string]workload.Why{}
		countEvicted(evicted, &workload.Nomination{Outcome: outcome, Victims: []workload.Victim{{Workload: &workload.Workload{Name: "low"}}}})
		if len(evicted) != want {
			t.Errorf("with the outcome %s %d are evicted, want %d", outcome, len(evicted), want)
		}
	}
}

func TestAJobThatCanShrinkWaitsForQuotaAndNotForEver(t *testing.T) {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=9").Apply(`{kind: ResourceFlavor, metadata: {name: default}}`).Apply(`
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}`)
	w.Apply(workloadOf("first", "q", 0, 1, "4")).Rest(20)
	w.Apply(strings.Replace(workloadOf("second", "q", 0, 8, "1"), "count: 8", "count: 8, minCount: 2", 1)).Rest(20)
	if said := w.Says("second"); !strings.HasPrefix(said, "WaitingForQuota") {
		t.Errorf("it says %q", said)
	}
	w.Edit("first", finishAt(w.Now))
	w.Rest(20).Expect("second", "admitted")
}

func TestAnAmountThatOverflowsIsNotUnlimited(t *testing.T) {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=9").Apply(`{kind: ResourceFlavor, metadata: {name: default}}`).Apply(`
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}`)
	w.Apply(workloadOf("huge", "q", 0, 20, "1E")).Rest(20)
	if said := w.Says("huge"); !strings.HasPrefix(said, "ExceedsMaxQuota") || strings.Contains(said, "unlimited") {
		t.Errorf("it says %q", said)
	}
}
