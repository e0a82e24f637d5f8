package cohorts

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/cohorts/world"
)

// The defects that must not occur, by their numbers in the design.

func TestAVictimDoesNotGetTheRoomBackThatItMade(t *testing.T) { // 2
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4")
	w.Grace = 3
	w.Apply(one(4, "LowerPriority")).Apply(workloadOf("a", "q", 0, 1, "2")).Apply(workloadOf("b", "q", 0, 1, "2")).Rest(20)
	w.Apply(workloadOf("high", "q", 5, 1, "4"))
	for range 20 {
		w.Step()
		for _, said := range w.Said {
			if (said == "admit a" || said == "admit b") && w.Says("high") != "admitted" {
				t.Fatalf("%s while high says %q", said, w.Says("high"))
			}
		}
	}
	if w.Expect("high", "admitted"); w.Evictions != 2 {
		t.Errorf("%d evictions", w.Evictions)
	}
}

func TestAGangThatNeverFitsPreemptsNoWorkload(t *testing.T) { // 3
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").AddNode("n2", "cpu=4")
	w.Apply(one(100, "LowerPriority")).Apply(workloadOf("low", "q", 0, 2, "4")).Rest(20)
	w.Apply(workloadOf("wide", "q", 5, 1, "5")).Apply(workloadOf("long", "q", 5, 3, "4")).Rest(20)
	w.Expect("low", "admitted")
	for _, name := range []string{"wide", "long"} {
		if s := w.Says(name); !strings.HasPrefix(s, "TopologyPlacementFailed: ") || w.Evictions > 0 {
			t.Errorf("%s says %q after %d evictions", name, s, w.Evictions)
		}
	}
}

// two are two queues without a cohort, each with quota for all of the nodes.
const two = `
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
---
{kind: ClusterQueue, metadata: {name: r}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: r}, spec: {clusterQueue: r}}`

func TestTwoHeadsDoNotGetTheSameRoom(t *testing.T) { // 4
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(two)
	w.Apply(workloadOf("a", "q", 0, 1, "4")).Apply(workloadOf("b", "r", 0, 1, "4")).Rest(20)
	if a, b := w.Says("a") == "admitted", w.Says("b") == "admitted"; a == b {
		t.Errorf("a says %q and b %q", w.Says("a"), w.Says("b"))
	}
}

func TestNodesAreHeldWhileChecksArePending(t *testing.T) { // 5
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(two)
	w.Apply(`{kind: AdmissionCheck, metadata: {name: check}, spec: {controllerName: example.com/c}, status: {conditions: [{type: Active, status: "True", reason: Active, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`)
	w.Apply(`{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: check}]}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}`)
	w.Apply(workloadOf("a", "q", 0, 1, "4")).Rest(20)
	w.Apply(workloadOf("b", "r", 9, 1, "4")).Rest(20)
	w.Expect("a", "reserved")
	if s := w.Says("b"); !strings.HasPrefix(s, "TopologyPlacementFailed: ") {
		t.Errorf("b says %q", s)
	}
}

func TestAWorkloadBehindManyThatAreTooLargeIsAdmitted(t *testing.T) { // 7
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(one(100, "Never"))
	for i := range 500 {
		w.Apply(workloadOf(fmt.Sprintf("large%d", i), "q", 0, 1, "5"))
	}
	w.Now = w.Now.Add(time.Second)
	w.Apply(workloadOf("small", "q", 0, 1, "1")).Step()
	w.Expect("small", "admitted")
}

func TestWorkloadsThatWaitAreNotWrittenAgain(t *testing.T) { // 11
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(one(1, "Never"))
	for i := range 300 {
		w.Apply(workloadOf(fmt.Sprintf("w%d", i), "q", int(i%3), 1, fmt.Sprint(2+i%4)))
	}
	w.Step()
	w.Step()
	for range 50 {
		if d := w.Cycle(); !d.IsEmpty() {
			t.Fatalf("decided %+v", d)
		}
	}
}

func TestAPodThatDoesNotEndBlocksNoQueue(t *testing.T) { // 12
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").AddNode("n2", "cpu=1")
	w.Apply(one(4, "LowerPriority")).Apply(workloadOf("low", "q", 0, 1, "4")).Rest(20)
	w.Grace = 1000
	w.Apply(workloadOf("high", "q", 5, 1, "4"))
	for range 5 {
		w.Step()
	}
	if len(w.Plans().InOrder()) != 1 {
		t.Fatalf("%d plans", len(w.Plans().InOrder()))
	}
	w.Now = w.Now.Add(3 * time.Minute)
	w.Step()
	if n := len(w.Plans().InOrder()); n != 0 {
		t.Errorf("%d plans three minutes later", n)
	}
	w.Apply(`{kind: ClusterQueue, metadata: {name: r}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: r}, spec: {clusterQueue: r}}`).Apply(workloadOf("other", "r", 0, 1, "1"))
	for range 5 {
		w.Step()
	}
	w.Expect("other", "admitted")
}

func TestABrokenQueueStopsNoOther(t *testing.T) { // 13
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(two)
	w.Apply(`{kind: ClusterQueue, metadata: {name: lost}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: missing, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: lost}, spec: {clusterQueue: lost}}
---
{kind: Cohort, metadata: {name: up}, spec: {parentName: down}}
---
{kind: Cohort, metadata: {name: down}, spec: {parentName: up}}
---
{kind: ClusterQueue, metadata: {name: round}, spec: {cohortName: up, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: round}, spec: {clusterQueue: round}}`)
	for _, q := range []string{"lost", "round", "nowhere", "r"} {
		w.Apply(workloadOf("in-"+q, q, 0, 1, "1"))
	}
	w.Rest(20)
	w.Expect("in-r", "admitted")
	for _, q := range []string{"lost", "round", "nowhere"} {
		if s := w.Says("in-" + q); s == "" || s == "admitted" {
			t.Errorf("in-%s says %q", q, s)
		}
	}
}

func TestPreemptionsComeToAnEnd(t *testing.T) { // 1
	for name, configuration := range map[string]string{"classic": "", "fair": "{fairSharing: true}"} {
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Configuration(configuration)).AddNode("n1", "cpu=12").Apply("{kind: ResourceFlavor, metadata: {name: default}}")
			w.Apply("{kind: Cohort, metadata: {name: all}}")
			for _, q := range []string{"q", "r", "s"} {
				w.Apply(fmt.Sprintf(`{kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, cohortName: all,
  preemption: {withinClusterQueue: LowerOrNewerEqualPriority, reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: %s}, spec: {clusterQueue: %s}}`, q, q, q))
			}
			for i, q := range []string{"q", "r", "s", "q", "r", "s"} {
				w.Apply(workloadOf(fmt.Sprintf("w%d", i), q, i%3, 1, fmt.Sprint(5+i%3))).Step()
			}
			if w.Rest(200); w.Evictions > 7*7 {
				t.Errorf("%d evictions of 6 workloads", w.Evictions)
			}
		})
	}
}

func TestNoQuotaStaysChargedForWorkloadsThatAreGone(t *testing.T) { // 6
	for writes := range 12 {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(one(4, "LowerPriority"))
		w.CrashAfter(writes)
		w.Apply(workloadOf("a", "q", 0, 1, "2")).Apply(workloadOf("b", "q", 0, 1, "2")).Rest(30)
		w.Apply(workloadOf("high", "q", 5, 1, "4")).Step()
		for _, name := range []string{"a", "high"} {
			w.Mark(name)
			w.Step()
		}
		w.Rest(60).Expect("b", "admitted")
		if w.Workload("a") != nil || w.Workload("high") != nil {
			t.Fatalf("after a crash at write %d what was deleted is still there", writes)
		}
		w.Apply(workloadOf("c", "q", 0, 1, "2")).Rest(30).Expect("c", "admitted")
		if t.Failed() {
			t.Fatalf("after a crash at write %d", writes)
		}
	}
}

// A borrower that came before it does not get it again when another borrower has ended.
func TestABlockedHeadGetsItsQuotaBeforeTheNextBorrower(t *testing.T) { // 8
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=6").Apply(`
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, cohortName: both, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 3}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
---
{kind: ClusterQueue, metadata: {name: r}, spec: {namespaceSelector: {}, cohortName: both, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 3}]}]}]}}
---
{kind: LocalQueue, metadata: {name: r}, spec: {clusterQueue: r}}`)
	w.Apply(workloadOf("borrows", "r", 0, 1, "4")).Rest(20).Expect("borrows", "admitted")
	w.Apply(workloadOf("next", "r", 9, 1, "4")).Rest(20)
	w.Apply(workloadOf("blocked", "q", 0, 1, "3")).Rest(20)
	w.Edit("borrows", finishAt(w.Now))
	w.Rest(20).Expect("blocked", "admitted")
	if w.Says("next") == "admitted" {
		t.Error("the next borrower is admitted too")
	}
}

// both are two queues in a cohort, with three CPUs each. The first one has more in its spec.
func both(spec string) string {
	return fmt.Sprintf(`
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {%s namespaceSelector: {}, cohortName: both, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 3}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
---
{kind: ClusterQueue, metadata: {name: r}, spec: {namespaceSelector: {}, cohortName: both, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 3}]}]}]}}
---
{kind: LocalQueue, metadata: {name: r}, spec: {clusterQueue: r}}`, spec)
}

// Small borrowers that come one after another would keep the quota of the head for ever.
func TestTheQuotaOfABlockedStrictHeadIsNotLent(t *testing.T) { // 8
	begin := func(t *testing.T) *world.World {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=6").Apply(both("queueingStrategy: StrictFIFO,"))
		w.Apply(workloadOf("borrows", "r", 0, 1, "4")).Rest(20).Expect("borrows", "admitted")
		w.Apply(workloadOf("blocked", "q", 0, 1, "3")).Rest(20)
		w.Apply(workloadOf("next", "r", 9, 1, "1")).Rest(20)
		return w.Expect("next", "WaitingForQuota: Workload no longer fits after processing another workload")
	}
	t.Run("until it is admitted", func(t *testing.T) {
		w := begin(t)
		for i := range 5 { // whatever else comes and goes
			name := fmt.Sprintf("small%d", i)
			if w.Apply(workloadOf(name, "r", i, 1, "1")).Rest(20); w.Says(name) == "admitted" {
				t.Fatalf("%s is admitted", name)
			}
			w.Mark(name)
			w.Rest(20)
		}
		w.Edit("borrows", finishAt(w.Now))
		w.Rest(20).Expect("blocked", "admitted").Expect("next", "admitted")
	})
	t.Run("until it goes away", func(t *testing.T) {
		w := begin(t)
		w.Mark("blocked")
		w.Rest(20).Expect("next", "admitted")
	})
	t.Run("until another is the head", func(t *testing.T) {
		w := begin(t)
		w.Apply(workloadOf("first", "q", 1, 1, "2")).Rest(20).Expect("first", "admitted")
		w.Edit("first", finishAt(w.Now))
		w.Rest(20)
		if w.Says("next") == "admitted" {
			t.Error("the head is blocked again, and the next borrower is admitted")
		}
	})
	t.Run("until its queue is stopped", func(t *testing.T) {
		w := begin(t)
		w.Apply(both("queueingStrategy: StrictFIFO, stopPolicy: Hold,")).Rest(20).Expect("next", "admitted")
	})
	t.Run("also by another process", func(t *testing.T) {
		w := begin(t).Restart(nil).Rest(20)
		if w.Says("next") == "admitted" {
			t.Error("the next borrower is admitted after a restart")
		}
		w.Edit("borrows", finishAt(w.Now))
		w.Rest(20).Expect("blocked", "admitted").Expect("next", "admitted")
	})
}

// Each withholds from the other what it may borrow: the first one in the order of heads must get it.
func TestTwoBlockedStrictHeadsDoNotWaitForEachOther(t *testing.T) {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=9").Apply("{kind: ResourceFlavor, metadata: {name: default}}")
	for _, q := range []string{"q", "r", "s"} {
		w.Apply(fmt.Sprintf(`{kind: ClusterQueue, metadata: {name: %s}, spec: {queueingStrategy: StrictFIFO, namespaceSelector: {}, cohortName: all,
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 3}]}]}]}}
---
{kind: LocalQueue, metadata: {name: %s}, spec: {clusterQueue: %s}}`, q, q, q))
	}
	w.Apply(workloadOf("runs", "s", 0, 1, "6")).Rest(20).Expect("runs", "admitted")
	w.Apply(workloadOf("a", "q", 1, 1, "7")).Apply(workloadOf("b", "r", 0, 1, "7")).Rest(20)
	w.Edit("runs", finishAt(w.Now))
	w.Rest(20).Expect("a", "admitted")
	w.Edit("a", finishAt(w.Now))
	w.Rest(20).Expect("b", "admitted")
}

// The own Workload is taken first, since the own queue has the highest share, and frees no node that helps. When the
// node of another queue is free it is not needed any more. But with it back the share would be too high to take the
// other: both leave.
func TestVictimsAllLeaveIfGivingBackWouldBreakARule(t *testing.T) { // 9
	w := world.New(t, world.Configuration("{fairSharing: true}")).AddNode("n1", "cpu=5").AddNode("n2", "cpu=4", "zone", "b").AddNode("n3", "cpu=4")
	w.Apply(`{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: Cohort, metadata: {name: all}, spec: {resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 13}]}]}]}}`)
	for _, q := range []string{"q", "r"} {
		w.Apply(fmt.Sprintf(`{kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, cohortName: all, preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 0}]}]}]}}
---
{kind: LocalQueue, metadata: {name: %s}, spec: {clusterQueue: %s}}`, q, q, q))
	}
	inZone := func(text string) string {
		return strings.Replace(text, "{spec: {containers", "{spec: {nodeSelector: {zone: b}, containers", 1)
	}
	w.Apply(workloadOf("own", "q", 0, 1, "5")).Apply(inZone(workloadOf("there", "r", 0, 1, "4"))).Apply(workloadOf("other", "r", 0, 1, "4")).Rest(20)
	w.Expect("own", "admitted").Expect("there", "admitted").Expect("other", "admitted")
	w.Apply(inZone(workloadOf("taker", "q", 5, 1, "4")))
	evicted := map[string]string{}
	for range 20 {
		w.Step()
		for _, said := range w.Said {
			if words := strings.Fields(said); words[0] == "evict" {
				evicted[words[1]] = words[2]
			}
		}
	}
	if w.Expect("taker", "admitted"); len(evicted) != 2 || evicted["own"] != "InClusterQueue" || evicted["there"] != "InCohortFairSharing" {
		t.Errorf("evicted are %v", evicted)
	}
}

func TestSchedulersDecideTheSameWhateverTheOrderOfInput(t *testing.T) { // 10
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := range uint64(20) {
		var want string
		for procs := 1; procs <= 8; procs *= 2 {
			runtime.GOMAXPROCS(procs)
			r := rand.New(rand.NewPCG(seed, 9))
			c := random(t, r, true)
			w := world.New(t, world.Configuration(argumentsOf(c)))
			apply(t, w, c)
			w.Restart(rand.New(rand.NewPCG(uint64(procs), 9))) // it sees all objects at once, in another order
			said := ""
			for range 25 {
				w.Step()
				said += strings.Join(w.Said, "; ") + "\n"
			}
			if want == "" {
				want = said
			} else if said != want {
				t.Fatalf("seed %d: with %d processors and another order decided is\n%s\nnot\n%s\n%s", seed, procs, said, want, c.Note)
			}
		}
	}
}
