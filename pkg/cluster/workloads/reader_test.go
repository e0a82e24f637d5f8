package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
)

const setup = `
kind: ResourceFlavor
metadata: {name: default}
---
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]
  preemption: {withinClusterQueue: LowerPriority}
---
kind: LocalQueue
metadata: {name: lq}
spec: {clusterQueue: all}`

// checkedSetup is setup with a check, and budget that check.
var checkedSetup = strings.ReplaceAll(setup, "namespaceSelector", "admissionChecks: [budget]\n  namespaceSelector")

const budget = "kind: AdmissionCheck\nmetadata: {name: budget}\nspec: {controllerName: x}\nstatus: {conditions: [{type: Active, status: \"True\"}]}"

// pending is a Workload of so many pods with a CPU each.
func pending(name string, pods, priority int) string {
	return fmt.Sprintf(`
kind: Workload
metadata: {name: %s}
spec:
  queueName: lq
  priority: %d
  podSets: [{name: main, count: %d, template: {spec: {containers: [{name: c, image: %s, resources: {requests: {cpu: 1}}}]}}}]`, name, priority, pods, name)
}

func finish(o *v1beta2.Workload) { conditions.Finish(o, v1beta2.ReasonSucceeded, "", begin) }

func TestQuotaGoesToTheFirstAndThenToTheNext(t *testing.T) {
	w := newKueue(t, setup, pending("a", 3, 0), pending("b", 2, 0))
	if writes := w.run(); writes != 2 {
		t.Errorf("%d writes for one that is admitted and one that waits", writes)
	}
	w.expect("a", "admitted in all")
	w.expect("b", "WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed")
	given := w.workload("a").Status.Admission.PodSetAssignments[0]
	if diff := cmp.Diff([]string{"default"}, []string{given.Flavors["cpu"]}); diff != "" || *given.Count != 3 || given.TopologyAssignment == nil {
		t.Errorf("a has %+v", given)
	}
	if writes := w.run(); writes != 0 {
		t.Errorf("%d writes although nothing has changed", writes)
	}
	w.delete(w.workload("a"))
	w.run()
	w.expect("b", "admitted in all")
	var reasons []string
	for _, e := range w.events {
		reasons = append(reasons, e.Regarding.Name+" "+e.Reason+": "+e.Message)
	}
	reserved, admitted := " QuotaReserved: Quota reserved in ClusterQueue all, wait time since queued was ", " Admitted: Admitted by ClusterQueue all, wait time since reservation was 0s"
	want := []string{"a" + reserved + "1s", "a" + admitted,
		"b WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed", "b" + reserved + "4s", "b" + admitted}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

func TestEqualWorkloadsAreAskedOnceAndToldAll(t *testing.T) {
	w := newKueue(t, setup, pending("a", 4, 0))
	w.run()
	for i := range 20 {
		w.apply(pending(fmt.Sprint("b", i), 2, 0))
	}
	w.run()
	for i := range 20 {
		if text := w.says(fmt.Sprint("b", i)); !strings.HasSuffix(text, "2 more needed") {
			t.Errorf("b%d says %q", i, text)
		}
	}
	w.apply(pending("late", 2, 0))
	if writes := w.run(); writes != 1 {
		t.Errorf("%d writes for one more that is equal", writes)
	}
}

func TestAWorkloadThatCannotWaitSaysWhy(t *testing.T) {
	queue := strings.Split(setup, "\n---\n")[1]
	for name, test := range map[string]struct {
		change, want string
	}{
		"no LocalQueue":   {strings.ReplaceAll(pending("a", 1, 0), "queueName: lq", "queueName: none"), "Misconfigured: LocalQueue none doesn't exist"},
		"no ClusterQueue": {"kind: LocalQueue\nmetadata: {name: lq}\nspec: {clusterQueue: none}", "Misconfigured: ClusterQueue none not found"},
		"stopped":         {queue + "\n  stopPolicy: Hold", "Suspended: ClusterQueue all is stopped"},
		"local stopped":   {"kind: LocalQueue\nmetadata: {name: lq}\nspec: {clusterQueue: all, stopPolicy: Hold}", "Suspended: LocalQueue lq is stopped"},
		"no flavor":       {strings.ReplaceAll(queue, "name: default", "name: none"), "Suspended: ClusterQueue all is inactive"},
		"no check":        {queue + "\n  admissionChecks: [budget]", "Suspended: ClusterQueue all is inactive"},
		"not served":      {queue + "\n  admissionScope: {admissionMode: X}", "Suspended: ClusterQueue all is inactive"},
		"circle": {queue + "\n  cohortName: one\n---\nkind: Cohort\nmetadata: {name: one}\nspec: {parentName: two}\n---\nkind: Cohort\nmetadata: {name: two}\nspec: {parentName: one}",
			"Suspended: ClusterQueue all is inactive"},
		"namespace": {strings.ReplaceAll(queue, "namespaceSelector: {}", "namespaceSelector: {matchLabels: {team: b}}"),
			"Misconfigured: workload namespace doesn't match ClusterQueue selector"},
		"too much": {strings.ReplaceAll(pending("a", 1, 0), "cpu: 1", "cpu: 5"),
			"ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)"},
		"unknown resource": {strings.ReplaceAll(pending("a", 1, 0), "cpu: 1", "memory: 1Gi"),
			"NoMatchingFlavor: couldn't assign flavors to pod set main: resource memory unavailable in ClusterQueue"},
		"gated":    {"kind: Workload\nmetadata: {name: a, annotations: {kueue.x-k8s.io/admission-gated-by: x}}\nspec: {queueName: lq}", ""},
		"inactive": {"kind: Workload\nmetadata: {name: a}\nspec: {queueName: lq, active: false}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newKueue(t, setup, pending("full", 4, 1))
			w.run()
			w.apply(pending("a", 1, 0) + "\n---\n" + test.change)
			w.run()
			w.expect("a", test.want)
			w.edit("full", finish)
			w.apply(setup + "\n---\n" + pending("a", 1, 0))
			if w.run(); !slices.Contains([]string{"gated"}, name) {
				w.expect("a", "admitted in all")
			}
		})
	}
}

func TestAWorkloadThatNoControllerWouldStartIsNotAdmitted(t *testing.T) {
	of := func(version, kind string) string {
		return strings.ReplaceAll(pending("a", 1, 0), "metadata: {name: a}", "metadata: {name: a, ownerReferences: [{apiVersion: "+version+", kind: "+kind+", name: o, uid: '1', controller: true}]}")
	}
	for owner, isStarted := range map[[2]string]bool{
		{"batch/v1", "Job"}: true, {"batch.volcano.sh/v1alpha1", "Job"}: true, {"v1", "Pod"}: true,
		{"jobset.x-k8s.io/v1alpha2", "JobSet"}: false, {"example.com/v1", "Run"}: false,
	} {
		w := newKueue(t, setup, of(owner[0], owner[1]))
		w.run()
		if isStarted {
			w.expect("a", "admitted in all")
			continue
		}
		w.expect("a", "Misconfigured: the kind "+owner[1]+" of "+owner[0]+" is not served by Hekla, and not one of integrations.externalFrameworks: no controller would start o")
		options := workloads.Defaults()
		options.External = []schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Run"}, {Group: "jobset.x-k8s.io", Version: "v1", Kind: "JobSet"}}
		w.reader.Use(options)
		w.run()
		if isRun := owner[1] == "Run"; strings.HasPrefix(w.says("a"), "admitted") != isRun {
			t.Errorf("a %s says %q", owner[1], w.says("a"))
		}
	}
}

func TestWhatExistsLaterIsWaitedFor(t *testing.T) {
	w := newKueue(t, pending("a", 1, 0))
	w.run()
	w.expect("a", "Misconfigured: LocalQueue lq doesn't exist")
	documents := strings.Split(setup, "\n---\n")
	slices.Reverse(documents)
	for _, document := range documents {
		w.apply(document)
		w.run()
	}
	w.expect("a", "admitted in all")
}

func TestVictimsLeaveAfterThePlanIsRecorded(t *testing.T) {
	w := newKueue(t, setup, pending("low", 3, 0))
	w.run()
	w.apply(pending("high", 2, 10))
	d := w.decide()
	if len(d.WorkloadPlans) != 1 || slices.ContainsFunc(d.Workloads, func(s decision.WorkloadStatus) bool { return s.Evict != nil }) {
		t.Errorf("decided is %+v", d)
	}
	w.write(d)
	w.run()
	w.expect("low", "evicted: Preempted")
	w.expect("high", "WaitingForPreemptedWorkloads: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed. Pending the preemption of 1 workload(s)")
	message := conditions.Of(w.workload("low"), v1beta2.Preempted).Message
	want := fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: UNKNOWN) due to prioritization in the ClusterQueue; preemptor path: /all; preemptee path: /all", w.workload("high").UID)
	if message != want {
		t.Errorf("low says %q,\nwant      %q", message, want)
	}

	// A process that starts now takes up the plan, and so would one that has decided nothing.
	if e := w.again().Find(types.NamespacedName{Namespace: "team", Name: "high"}); e.Held == nil || e.Phase != workload.PhasePlanned || e.Charge == nil {
		t.Errorf("after a restart high holds %+v", e.Held)
	}
	w.leave("low")
	w.run()
	w.expect("high", "admitted in all")
	w.expect("low", "WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed")
	if text := w.workload("high").Annotations[v1beta2.PlanAnnotation]; text != "" {
		t.Errorf("the plan is over, and its record stays: %s", text)
	}
}

func TestAVictimThatIsAdmittedAgainIsNotWaitedForTwice(t *testing.T) {
	two := strings.Replace(setup, "{name: cpu, nominalQuota: 4}]}]", "{name: cpu, nominalQuota: 4}]}, {name: other, resources: [{name: cpu, nominalQuota: 1}]}]", 1) +
		"\n---\nkind: ResourceFlavor\nmetadata: {name: other}"
	w := newKueue(t, two, pending("taken", 1, 20))
	w.run()
	w.apply(pending("small", 1, 0))
	w.apply(pending("large", 2, 0))
	w.run()
	if given := w.workload("taken").Status.Admission.PodSetAssignments[0].Flavors["cpu"]; given != "default" {
		t.Fatalf("the first has flavor %s", given)
	}
	w.apply(pending("high", 3, 10))
	w.run()
	w.expect("small", "evicted: Preempted")
	w.expect("large", "evicted: Preempted")
	w.leave("small")
	w.run()
	w.expect("small", "admitted in all") // with the other flavor
	w.expect("high", "WaitingForPreemptedWorkloads: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor other, previously considered podsets requests (0) + current podset request (3) > maximum capacity (1), insufficient unused quota for cpu in flavor default, 3 more needed. Pending the preemption of 2 workload(s)")
	w.leave("large")
	w.run()
	w.expect("high", "admitted in all")
}

func TestAPlanEndsWhenVictimsDoNotLeave(t *testing.T) {
	w := newKueue(t, setup, pending("low", 3, 0))
	w.run()
	w.apply(pending("high", 2, 10))
	w.run()
	due := w.reader.NextDue(w.now)
	if wait := due.Sub(w.now); wait < 80*time.Second || wait > 90*time.Second {
		t.Errorf("it is due in %s", wait)
	}
	w.now = due
	d := w.decide()
	if e := w.reader.Find(types.NamespacedName{Namespace: "team", Name: "high"}); e.Phase == workload.PhasePlanned && len(d.WorkloadPlans) == 0 {
		t.Error("the old plan stands")
	}
}

func TestAVictimThatWasNotToldStays(t *testing.T) {
	key := types.NamespacedName{Namespace: "team", Name: "high"}
	for name, end := range map[string]func(w *kueue){
		"the record of the plan is refused": func(w *kueue) {
			w.reader.Failed(key, w.workload("high").UID, 0, w.now.Add(time.Hour))
		},
		"the preemptor is deleted": func(w *kueue) { w.delete(w.workload("high")) },
		"the preemptor ends":       func(w *kueue) { w.edit("high", finish) },
		"it has a higher priority": func(w *kueue) { w.edit("low", func(o *v1beta2.Workload) { o.Spec.Priority = new(int32(20)) }) },
		"the preemptor has a lower one": func(w *kueue) {
			w.edit("high", func(o *v1beta2.Workload) { o.Spec.Priority = new(int32(-1)) })
		},
		"another client admits the preemptor": func(w *kueue) {
			w.edit("high", func(o *v1beta2.Workload) {
				o.Status.Admission = w.workload("low").Status.Admission.DeepCopy()
				conditions.Reserve(o, "all", w.now)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newKueue(t, setup, pending("low", 3, 0))
			w.run()
			w.apply(pending("high", 2, 10))
			low := w.reader.Find(types.NamespacedName{Namespace: "team", Name: "low"})
			w.reader.Move(low, [][]settings.NodeCount{{{Node: "other", Count: 3}}})
			if d := w.decide(); low.Phase != workload.PhaseEvicting || len(d.WorkloadPlans) != 1 || len(d.Workloads) != 1 {
				t.Fatalf("it is %v, and is written are %v and %v", low.Phase, d.WorkloadPlans, d.Workloads)
			}
			w.reader.TakeMoved()
			end(w)
			w.write(w.decide())
			if !slices.Contains(w.reader.TakeMoved(), low) {
				t.Error("the nodes that it holds are not checked")
			}
			w.expect("low", "admitted in all")
			if nodes, _ := settings.Nodes(w.workload("low").Status.Admission.PodSetAssignments[0].TopologyAssignment); len(nodes) != 1 || nodes[0].Node != "other" {
				t.Errorf("its admission names %v", nodes)
			}
		})
	}
}

func TestWhoLeavesForAPlanFromBeforeQuotasChangedDoesNotEvictInTurn(t *testing.T) {
	w := newKueue(t, setup, pending("low", 3, 0))
	w.run()
	w.apply(pending("high", 2, 10))
	w.write(w.decide()) // the record of the plan
	w.apply(strings.Split(strings.Replace(setup, "nominalQuota: 4", "nominalQuota: 3", 1), "\n---\n")[1])
	w.run()
	w.expect("low", "evicted: Preempted")
	find := func(name string) *workload.Workload {
		return &w.reader.Find(types.NamespacedName{Namespace: "team", Name: name}).Workload
	}
	if !find("low").Spares()[find("high")] {
		t.Error("it may evict the one for which it leaves")
	}
}

func TestARecordAloneHasNoEffect(t *testing.T) {
	w := newKueue(t, setup, pending("low", 3, 0))
	w.run()
	w.apply(pending("high", 2, 0)) // of no higher priority
	w.run()
	w.edit("high", func(o *v1beta2.Workload) {
		o.Annotations = map[string]string{v1beta2.PlanAnnotation: fmt.Sprintf(`{"id": "x", "until": "2099-01-01T00:00:00Z",
"admission": {"clusterQueue": "all", "podSetAssignments": [{"name": "main", "count": 2, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "2"}}]},
"waitsFor": [{"namespace": "team", "name": "low", "uid": %q}]}`, w.workload("low").UID)}
		conditions.Pend(o, v1beta2.ReasonWaitingForPreemptedWorkloads, "", w.now)
	})
	w.reader = w.again()
	w.run()
	w.expect("low", "admitted in all")
	if e := w.reader.Find(types.NamespacedName{Namespace: "team", Name: "high"}); e.Held != nil {
		t.Errorf("high holds %+v", e.Held)
	}
}

func TestChecksHoldWhatIsReserved(t *testing.T) {
	w := newKueue(t, checkedSetup, budget, pending("a", 3, 0), pending("b", 3, 0))
	w.run()
	w.expect("a", "reserved in all")
	w.expect("b", "WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 2 more needed")
	w.edit("a", func(o *v1beta2.Workload) {
		o.Status.AdmissionChecks = []v1beta2.AdmissionCheckState{{Name: "budget", State: v1beta2.CheckReady}}
	})
	w.run()
	w.expect("a", "admitted in all")
}

func TestPodsThatHaveEndedFreeTheirQuota(t *testing.T) {
	w := newKueue(t, setup, pending("a", 3, 0), pending("b", 2, 0))
	w.run()
	w.edit("a", func(o *v1beta2.Workload) {
		o.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "main", Count: 1}}
	})
	w.run()
	w.expect("b", "admitted in all")
}

func TestAWorkloadComesBackWhenItsTimeHasCome(t *testing.T) {
	w := newKueue(t, setup, pending("a", 3, 0))
	at := metav1.NewTime(begin.Add(time.Hour))
	w.edit("a", func(o *v1beta2.Workload) { o.Status.RequeueState = &v1beta2.RequeueState{RequeueAt: &at} })
	w.run()
	w.expect("a", "")
	if due := w.reader.NextDue(w.now); !due.Equal(at.Time) {
		t.Errorf("it is due at %s", due)
	}
	w.now = at.Time
	w.run()
	w.expect("a", "admitted in all")
}

func TestWhatCannotBeWrittenIsTriedAgainLater(t *testing.T) {
	w := newKueue(t, setup, pending("a", 3, 0))
	for attempt := range 4 {
		d := w.decide()
		if len(d.Workloads) != 1 || d.Workloads[0].Reserve == nil {
			t.Fatalf("attempt %d: decided is %+v", attempt, d)
		}
		w.reader.Failed(d.Workloads[0].Workload, d.Workloads[0].UID, d.Workloads[0].Number, w.now)
		if attempt > 0 {
			if d := w.decide(); !d.IsEmpty() {
				t.Errorf("attempt %d: it is tried again at once", attempt)
			}
		}
		w.now = w.now.Add(1 << attempt * time.Second)
	}
	w.run()
	w.expect("a", "admitted in all")
}

func TestAnAnswerToAnEarlierDecisionSaysNothingOfTheLast(t *testing.T) {
	for name, answer := range map[string]func(w *kueue, s *decision.WorkloadStatus){
		"it was written": func(w *kueue, s *decision.WorkloadStatus) {
			o := w.workload("waits").DeepCopy()
			if !s.Apply(o) {
				t.Fatal("the message does not hold")
			}
			w.set(o)
			w.reader.Written(s.Workload, s.UID, s.Number, o.ResourceVersion)
		},
		"it was refused": func(w *kueue, s *decision.WorkloadStatus) { w.reader.Failed(s.Workload, s.UID, s.Number, w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newKueue(t, setup, pending("holds", 4, 0))
			w.run()
			w.apply(pending("waits", 2, 0))
			first := w.decide()
			if len(first.Workloads) != 1 || first.Workloads[0].Pend == nil {
				t.Fatalf("decided is %+v", first)
			}
			w.edit("holds", finish)
			second := w.decide() // while the message is on its way
			if len(second.Workloads) != 1 || second.Workloads[0].Reserve == nil {
				t.Fatalf("decided is %+v", second)
			}
			answer(w, &first.Workloads[0])
			if third := w.decide(); !third.IsEmpty() {
				t.Errorf("what it was told makes it decide %+v", third)
			}
			w.write(second)
			w.run()
			w.expect("waits", "admitted in all")
		})
	}
}

func TestNothingOfAClusterQueueThatIsGoneIsAdmitted(t *testing.T) {
	w := newKueue(t, checkedSetup, budget, pending("a", 1, 0))
	w.run()
	w.expect("a", "reserved in all")
	w.delete(w.objects["v1beta2.ClusterQueue /all"])
	w.run()
	w.expect("a", "reserved in all")
	w.edit("a", func(o *v1beta2.Workload) {
		o.Status.AdmissionChecks = []v1beta2.AdmissionCheckState{{Name: "budget", State: v1beta2.CheckReady}}
	})
	w.run()
	w.expect("a", "reserved in all")
}

func TestAWorkloadIsAdmittedWhenItsLastCheckIsTakenAway(t *testing.T) {
	w := newKueue(t, checkedSetup, budget, pending("a", 1, 0))
	w.run()
	w.expect("a", "reserved in all")
	q := w.objects["v1beta2.ClusterQueue /all"].(*v1beta2.ClusterQueue).DeepCopy()
	q.Spec.AdmissionChecks, q.Spec.AdmissionChecksStrategy = nil, nil
	w.set(q)
	w.run()
	w.expect("a", "admitted in all")
}

func TestMessagesThatOnlyDriftAreWrittenSlowly(t *testing.T) {
	w := newKueue(t, setup, pending("a", 1, 1), pending("b", 1, 1), pending("c", 1, 1), pending("waits", 4, 0))
	w.run()
	for _, name := range []string{"a", "b"} {
		w.edit(name, finish)
		if writes := w.run(); writes != 0 {
			t.Errorf("%d writes of a message whose number has changed", writes)
		}
	}
	w.now = w.now.Add(10 * time.Second)
	if writes := w.run(); writes != 1 {
		t.Errorf("%d writes after ten seconds", writes)
	}
	w.expect("waits", "WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed")
}

func TestAMessageThatIsRefusedIsWrittenLater(t *testing.T) {
	w := newKueue(t, setup, pending("a", 5, 0))
	var at []time.Duration
	for range 16 {
		d := w.decide()
		for i := range d.Workloads {
			at = append(at, w.now.Sub(begin))
			w.reader.Failed(d.Workloads[i].Workload, d.Workloads[i].UID, d.Workloads[i].Number, w.now)
		}
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}, at); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	w.now = w.now.Add(time.Minute)
	w.run()
	w.expect("a", "ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)")
}

// twoCohorts are Cohorts, one with the queues a and b, and other with the queue c. Each queue has one CPU.
func twoCohorts() (text string) {
	text = "{kind: ResourceFlavor, metadata: {name: default}}"
	for _, name := range []string{"one", "other"} {
		text += "\n---\n" + inCohort("Cohort", name, "", 0)
	}
	for _, name := range []string{"a", "b", "c"} {
		of := map[string]string{"a": "one", "b": "one", "c": "other"}[name]
		text += "\n---\n" + inCohort("ClusterQueue", name, of, 1) + fmt.Sprintf("\n---\n{kind: LocalQueue, metadata: {name: %s}, spec: {clusterQueue: %[1]s}}", name)
	}
	return text
}

// inCohort is a ClusterQueue in a Cohort, or a Cohort below another one, with some CPUs.
func inCohort(kind, name, of string, cpus int) string {
	groups := fmt.Sprintf("resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: %d}]}]}]", cpus)
	if kind == "Cohort" {
		return fmt.Sprintf("{kind: Cohort, metadata: {name: %s}, spec: {parentName: %q, %s}}", name, of, groups)
	}
	return fmt.Sprintf("{kind: ClusterQueue, metadata: {name: %s}, spec: {cohortName: %s, namespaceSelector: {}, %s}}", name, of, groups)
}

func TestAnEditHasOnlyThoseTriedAgainThatItCouldHelp(t *testing.T) {
	for name, c := range map[string]struct {
		edit string // or the object to delete
		want string
	}{
		"of a queue":                    {inCohort("ClusterQueue", "b", "one", 2), "a b"},
		"of a queue, to less":           {inCohort("ClusterQueue", "b", "one", 0), "a b"},
		"of a Cohort":                   {inCohort("Cohort", "other", "", 1), "c"},
		"that moves a queue":            {inCohort("ClusterQueue", "b", "other", 1), "a b c"},
		"that puts a Cohort below":      {inCohort("Cohort", "other", "one", 0), "a b c"},
		"that takes a queue out":        {inCohort("ClusterQueue", "a", "", 1), "a b"},
		"that makes a queue":            {inCohort("ClusterQueue", "d", "other", 1), "c"},
		"that makes a queue by itself":  {inCohort("ClusterQueue", "d", "", 1), ""},
		"that makes another tree":       {inCohort("Cohort", "third", "", 5), ""},
		"that makes a circle":           {inCohort("Cohort", "other", "other", 0), ""}, // c is inactive
		"that deletes a Cohort":         {"v1beta2.Cohort /one", "a b"},
		"that deletes a queue":          {"v1beta2.ClusterQueue /b", "a"},
		"of a flavor":                   {"{kind: ResourceFlavor, metadata: {name: default}, spec: {nodeLabels: {a: b}}}", "a b c"},
		"of a flavor that no queue has": {"{kind: ResourceFlavor, metadata: {name: other}}", ""},
		"of nothing":                    {inCohort("ClusterQueue", "b", "one", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newKueue(t, twoCohorts())
			for _, queue := range []string{"a", "b", "c"} {
				w.apply(strings.Replace(pending("holds-"+queue, 1, 0), "lq", queue, 1))
				w.run()
			}
			for _, queue := range []string{"a", "b", "c"} {
				w.apply(strings.Replace(pending(queue, 3, 0), "lq", queue, 1))
			}
			w.run()
			if o := w.objects[c.edit]; o != nil {
				w.delete(o)
			} else {
				w.apply(c.edit)
			}
			w.reader.Settle(w.now)
			var tried []string
			for _, queue := range []string{"a", "b", "c"} {
				e := w.reader.Find(types.NamespacedName{Namespace: "team", Name: queue})
				if e.IsWaiting() && !e.IsRefused() {
					tried = append(tried, queue)
				}
			}
			if have := strings.Join(tried, " "); have != c.want {
				t.Errorf("tried again are %q, want %q", have, c.want)
			}
			w.run()
		})
	}
}

func TestAttemptsAreCountedByLocalQueue(t *testing.T) {
	w := newKueue(t, two("{}"), pendingIn("a", "first", 1, 0), pendingIn("b", "large", 5, 0), pendingIn("b", "small", 1, -1))
	w.decide()
	a, b := types.NamespacedName{Namespace: "team", Name: "a"}, types.NamespacedName{Namespace: "team", Name: "b"}
	if diff := cmp.Diff(map[types.NamespacedName]bool{a: true, b: true}, w.reader.Tally.Take().LocalQueues); diff != "" {
		t.Errorf("who got quota (-want +got):\n%s", diff)
	}
	w.apply(pendingIn("b", "huge", 6, 5))
	w.decide()
	if diff := cmp.Diff(map[types.NamespacedName]bool{b: false}, w.reader.Tally.Take().LocalQueues); diff != "" {
		t.Errorf("who got quota (-want +got):\n%s", diff)
	}
	for range 2 {
		w.delete(w.objects["v1beta2.LocalQueue team/b"])
		w.apply("kind: LocalQueue\nmetadata: {name: b}\nspec: {clusterQueue: b}")
	}
	if diff := cmp.Diff([]types.NamespacedName{b}, w.reader.Tally.Take().Gone); diff != "" {
		t.Errorf("who is gone (-want +got):\n%s", diff)
	}
}
