package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// The texts of §7 of the rules that no other test has.

func TestAPodThatNoFlavorIsForSaysWhy(t *testing.T) {
	const flavor = `
kind: ResourceFlavor
metadata: {name: default}
spec: {nodeLabels: {zone: a}, nodeTaints: [{key: kept, value: "yes", effect: NoSchedule}], tolerations: [%s]}`
	const tolerated = "{key: kept, operator: Exists}"
	const affinity = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [%s]}}}, "
	const elsewhere = "NoMatchingFlavor: couldn't assign flavors to pod set main: flavor default doesn't match node affinity"
	for name, test := range map[string]struct{ tolerations, spec, want string }{
		"a taint of the flavor":                {"", "", "NoMatchingFlavor: couldn't assign flavors to pod set main: untolerated taint {kept yes NoSchedule <nil>} in flavor default"},
		"a selector":                           {tolerated, "nodeSelector: {zone: b}, ", elsewhere},
		"a required affinity":                  {tolerated, fmt.Sprintf(affinity, "{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}"), elsewhere},
		"keys that the flavor does not define": {tolerated, "nodeSelector: {zone: a, disk: fast}, ", "admitted in all"},
		"a term without keys of the flavor": {tolerated, fmt.Sprintf(affinity,
			"{matchExpressions: [{key: zone, operator: In, values: [b]}]}, {matchExpressions: [{key: disk, operator: Exists}]}"), "admitted in all"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(pending("a", 1, 0), "spec: {containers", "spec: {"+test.spec+"containers", 1)
			w := newKueue(t, setup, fmt.Sprintf(flavor, test.tolerations), text)
			w.run()
			w.expect("a", test.want)
		})
	}
}

func TestWhatIsGivenBackSaysSo(t *testing.T) {
	w := newKueue(t, setup, pending("low", 3, 0))
	w.run()
	w.apply(pending("high", 2, 10))
	w.run()
	w.leave("low")
	w.run()
	for kind, want := range map[string]string{
		v1beta2.Admitted: "False NoReservation: The workload has no reservation",
		v1beta2.Evicted:  "True Preempted: " + conditions.Of(w.workload("low"), v1beta2.Preempted).Message,
	} {
		c := conditions.Of(w.workload("low"), kind)
		if have := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); have != want {
			t.Errorf("%s is %q, want %q", kind, have, want)
		}
	}
	preempted := conditions.Of(w.workload("low"), v1beta2.Preempted).Message
	w.edit("high", finish)
	w.run()
	w.expect("low", "admitted in all")
	for _, kind := range []string{v1beta2.Evicted, v1beta2.Preempted} {
		if c := conditions.Of(w.workload("low"), kind); c.Status != metav1.ConditionFalse || c.Message != "Previously: "+preempted {
			t.Errorf("admitted again, %s is %s: %q", kind, c.Status, c.Message)
		}
	}
}

// two are ClusterQueues a and b of a Cohort, with two CPUs each.
func two(preemption string) string {
	texts := []string{"kind: ResourceFlavor\nmetadata: {name: default}"}
	for _, name := range []string{"a", "b"} {
		texts = append(texts, fmt.Sprintf(`
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  cohortName: both
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]}]
  preemption: %[2]s
---
kind: LocalQueue
metadata: {name: %[1]s}
spec: {clusterQueue: %[1]s}`, name, preemption))
	}
	return strings.Join(texts, "\n---\n")
}

func pendingIn(queue, name string, pods, priority int) string {
	return strings.Replace(pending(name, pods, priority), "queueName: lq", "queueName: "+queue, 1)
}

func TestWhoBorrowsForAVictimSaysSo(t *testing.T) {
	w := newKueue(t, two("{reclaimWithinCohort: LowerPriority, borrowWithinCohort: {policy: LowerPriority}}"), pendingIn("b", "low", 4, 0))
	w.run()
	w.apply(pendingIn("a", "high", 3, 10))
	w.run()
	c := conditions.Of(w.workload("low"), v1beta2.Preempted)
	want := fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: UNKNOWN) due to reclamation within the cohort while borrowing; preemptor path: /both/a; preemptee path: /both/b",
		w.workload("high").UID)
	if c == nil || c.Reason != v1beta2.ReasonInCohortReclaimWhileBorrowing || c.Message != want {
		t.Errorf("low says %+v,\nwant %q", c, want)
	}
}

func TestWhoWaitsForTheVictimsOfAnotherSaysSo(t *testing.T) {
	w := newKueue(t, two("{reclaimWithinCohort: Any}"), "kind: ClusterQueue\nmetadata: {name: c}\nspec: {cohortName: both, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 0}]}]}]}",
		"kind: LocalQueue\nmetadata: {name: c}\nspec: {clusterQueue: c}", pendingIn("c", "victim", 4, 0))
	w.run()
	w.expect("victim", "admitted in c")
	w.apply(pendingIn("a", "first", 2, 0))
	w.now = w.now.Add(time.Second)
	w.apply(pendingIn("b", "second", 2, 0))
	w.run()
	w.expect("first", "WaitingForPreemptedWorkloads: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)")
	w.expect("second", "WaitingForPreemptedWorkloads: Workload has overlapping preemption targets with another workload, but will fit after these preemptions complete")
	w.leave("victim")
	w.run()
	w.expect("first", "admitted in a")
	w.expect("second", "admitted in b")
}

func TestAVictimThatCannotBeToldIsToldAgain(t *testing.T) {
	const short = "WaitingForPreemptedWorkloads: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed. "
	w := newKueue(t, setup, pending("low", 3, 0))
	w.run()
	w.apply(pending("high", 2, 10))
	w.write(w.decide()) // the record of the plan
	d := w.decide()
	at := slices.IndexFunc(d.Workloads, func(s decision.WorkloadStatus) bool { return s.Evict != nil })
	if at < 0 {
		t.Fatalf("no Workload is told to leave: %+v", d)
	}
	refused := d.Workloads[at]
	d.Workloads = slices.Delete(d.Workloads, at, at+1)
	w.write(d)
	w.reader.Failed(refused.Workload, refused.UID, refused.Number, w.now)
	var told decision.Decisions
	w.reader.TakeDecisions(w.now, &told)
	w.write(told)
	w.expect("low", "admitted in all")
	w.expect("high", short+"Preempting 1 workload(s) failed, will retry.")
	if due := w.reader.NextDue(w.now).Sub(w.now); due <= 0 || due > 2*time.Second {
		t.Errorf("it is tried again in %s", due)
	}
	w.now = w.reader.NextDue(w.now)
	w.run()
	w.expect("low", "evicted: Preempted")
	w.expect("high", short+"Pending the preemption of 1 workload(s)")
	w.leave("low")
	w.run()
	w.expect("high", "admitted in all")
}

func TestWhoHoldsQuotaAndAwaitsChecksSaysSo(t *testing.T) {
	w := newKueue(t, checkedSetup, budget, pending("a", 3, 0))
	w.run()
	mustSay := func(want string) {
		t.Helper()
		c := conditions.Of(w.workload("a"), v1beta2.Admitted)
		if have := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); have != want {
			t.Errorf("it is admitted: %s, want %s", have, want)
		}
	}
	answer := func(state v1beta2.CheckState) {
		w.edit("a", func(o *v1beta2.Workload) {
			o.Status.AdmissionChecks = []v1beta2.AdmissionCheckState{{Name: "budget", State: state}}
		})
		w.run()
	}
	const awaits = "False UnsatisfiedAdmissionChecks: The workload has not all checks ready"
	mustSay(awaits)
	answer(v1beta2.CheckPending)
	mustSay(awaits)
	answer(v1beta2.CheckReady)
	mustSay("True Admitted: The workload is admitted")
	w.edit("a", func(o *v1beta2.Workload) { conditions.Evict(o, "why", "", "", w.now) })
	w.leave("a")
	mustSay("False NoReservation: The workload has no reservation")
	w.run()
	mustSay(awaits) // it holds quota again
}

func TestWhoStandsBehindTheHeadOfAStrictQueueSaysSo(t *testing.T) {
	strict := strings.Replace(setup, "  namespaceSelector", "  queueingStrategy: StrictFIFO\n  namespaceSelector", 1)
	w := newKueue(t, strict, pending("a", 3, 2))
	w.run()
	w.apply(pending("b", 2, 0))
	w.apply(pending("c", 1, 0))
	behind := func(first string) string {
		return "HeldUp: ClusterQueue all serves its Workloads strictly in order, and " + first + " comes first, which waits: WaitingForQuota"
	}
	w.run()
	w.expect("b", "WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed")
	w.expect("c", behind("team/b"))
	w.apply(pending("d", 1, 0))
	if writes := w.run(); writes != 1 {
		t.Errorf("%d writes for one more behind the head", writes)
	}
	w.expect("d", behind("team/b"))

	w.apply(pending("first", 4, 1))
	if writes := w.run(); writes != 2 { // of the new and of the old one; what the others say is written again later
		t.Errorf("%d writes for another head", writes)
	}
	for range 12 {
		w.run()
	}
	w.expect("b", behind("team/first"))
	w.expect("d", behind("team/first"))
	w.delete(w.workload("first"))
	w.delete(w.workload("a"))
	w.run()
	w.expect("b", "admitted in all")
	w.expect("c", "admitted in all")
	w.expect("d", "admitted in all")
}
