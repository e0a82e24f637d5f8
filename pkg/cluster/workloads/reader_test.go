package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
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
		reasons = append(reasons, e.Regarding.Name+" "+e.Reason)
	}
	want := []string{"a QuotaReserved", "a Admitted", "b WaitingForQuota", "b QuotaReserved", "b Admitted"}
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
	if e := w.anew().Find(types.NamespacedName{Namespace: "team", Name: "high"}); e.Held == nil || !e.Planned || e.Charge == nil {
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
	if e := w.reader.Find(types.NamespacedName{Namespace: "team", Name: "high"}); e.Planned && len(d.WorkloadPlans) == 0 {
		t.Error("the old plan stands")
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
	w.reader = w.anew()
	w.run()
	w.expect("low", "admitted in all")
	if e := w.reader.Find(types.NamespacedName{Namespace: "team", Name: "high"}); e.Held != nil {
		t.Errorf("high holds %+v", e.Held)
	}
}

func TestChecksHoldWhatIsReserved(t *testing.T) {
	w := newKueue(t, strings.ReplaceAll(setup, "namespaceSelector", "admissionChecks: [budget]\n  namespaceSelector"),
		"kind: AdmissionCheck\nmetadata: {name: budget}\nspec: {controllerName: x}\nstatus: {conditions: [{type: Active, status: \"True\"}]}",
		pending("a", 3, 0), pending("b", 3, 0))
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
		w.reader.Failed(d.Workloads[0].Workload, d.Workloads[0].UID, w.now)
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
			w.reader.Failed(d.Workloads[i].Workload, d.Workloads[i].UID, w.now)
		}
	}
	if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}, at); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	w.now = w.now.Add(time.Minute)
	w.run()
	w.expect("a", "ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)")
}
