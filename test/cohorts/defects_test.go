package cohorts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/cohorts/world"
)

// The defects that must not occur, by their numbers in the design; the others are tested on the rules alone.

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
