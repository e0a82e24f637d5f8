package simulator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

const contested = `
apiVersion: v1
kind: Node
metadata: {name: n1, creationTimestamp: "2026-03-02T07:00:00Z"}
status: {allocatable: {cpu: '2', pods: '9'}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: preemptor, namespace: work, uid: t}
spec: {minMember: 1, queue: default}
---
apiVersion: v1
kind: Pod
metadata: {name: x, namespace: work, uid: x, annotations: {scheduling.k8s.io/group-name: preemptor}}
spec: {schedulerName: volcano, schedulingGates: [{name: wait}], containers: [{name: main, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guard, namespace: work}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
`

// parse reads manifests.
func parse(text string) (*manifests.Input, error) {
	return manifests.Read([]string{"-"}, strings.NewReader(text))
}

func victim(name, more string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: work, uid: " + name + more + "}\n" +
		"spec: {schedulerName: volcano, nodeName: n1, terminationGracePeriodSeconds: 3, containers: [{name: main, resources: {requests: {cpu: '1'}}}]}\n" +
		"status: {phase: Running}\n---\n"
}

const (
	owned = ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]"
	web   = ", labels: {app: web}" + owned
)

// started puts a simulation before its first cycle.
func started(t *testing.T, manifests string, options Options) *simulation {
	t.Helper()
	in, err := parse(manifests)
	if err != nil {
		t.Fatal(err)
	}
	registry := scheduler.NewRegistry()
	policy, err := registry.Build(conf.Default(registry.Catalogue()))
	if err != nil {
		t.Fatal(err)
	}
	options.SchedulerNames = []string{"volcano"}
	s, err := newSimulation(in, policy, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var preemptor = cluster.JobID{Namespace: "work", Name: "preemptor"}

func work(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "work", Name: name}
}

func evictionOf(name string) decision.Eviction {
	return decision.Eviction{Pod: work(name), UID: types.UID(name), Node: "n1", For: preemptor, Action: "preempt", Rule: "J1", Message: "for the better"}
}

func planOf(names ...string) *decision.Decisions {
	p := decision.PlanStart{ID: "p", Job: preemptor, UID: "t", Group: decision.GroupStatus{Job: preemptor, UID: "t"},
		Nominations: []decision.Nomination{{Pod: work("x"), UID: "x", Node: "n1", Job: preemptor}}}
	p.Group.Status.Phase = "Inqueue"
	for _, name := range names {
		p.Evictions = append(p.Evictions, evictionOf(name))
	}
	return &decision.Decisions{Plans: []decision.PlanStart{p}}
}

// pass lets a second pass without a cycle of the scheduler.
func (s *simulation) pass() {
	s.now = s.now.Add(time.Second)
	s.clearAway()
	s.count()
}

// do carries out decisions and has controllers count.
func (s *simulation) do(d *decision.Decisions) {
	s.carryOut(d)
	s.count()
}

func (s *simulation) pod(name string) *corev1.Pod { return s.pods[work(name)] }

func condition(pod *corev1.Pod) (corev1.ConditionStatus, string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			return c.Status, c.Reason
		}
	}
	return "", ""
}

func TestAPlanIsRecordedThenNominatesThenEvicts(t *testing.T) {
	s := started(t, contested+victim("a", owned), Options{})
	s.do(planOf("a"))
	if phase := s.groups[preemptor].Status.Phase; phase != "Inqueue" {
		t.Errorf("the record is not written: the phase is %q", phase)
	}
	if node := s.pod("x").Status.NominatedNodeName; node != "n1" {
		t.Errorf("the nominated node is %q", node)
	}
	if status, reason := condition(s.pod("a")); status != corev1.ConditionTrue || reason != "PreemptionByScheduler" {
		t.Errorf("DisruptionTarget is %s %s", status, reason)
	}
	want := &Report{
		Nominations: []Nomination{{Pod: "work/x", Node: "n1"}},
		Evictions:   []Eviction{{Pod: "work/a", Node: "n1", Action: "preempt", Rule: "J1", For: "work/preemptor", Message: "for the better"}},
	}
	if diff := cmp.Diff(want.Evictions, s.report.Evictions); diff != "" {
		t.Errorf("the evictions differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Nominations, s.report.Nominations); diff != "" {
		t.Errorf("the nominations differ (-want +got):\n%s", diff)
	}
	kinds := []string{}
	for _, e := range s.events[len(s.events)-3:] {
		if set, ok := e.(cache.Set); ok {
			kinds = append(kinds, fmt.Sprintf("%T", set.Object))
		}
	}
	if diff := cmp.Diff([]string{"*v1beta1.PodGroup", "*v1.Pod", "*v1.Pod"}, kinds); diff != "" {
		t.Errorf("the order of what is written differs (-want +got):\n%s", diff)
	}
}

func TestAnEvictedPodWithAControllerComesBackWithANewUID(t *testing.T) {
	s := started(t, contested+victim("a", owned)+victim("b", ""), Options{})
	s.do(planOf("a", "b"))
	s.pass()
	a := s.pod("a")
	if a == nil || a.UID != "Pod work/a, made again 1" || a.Spec.NodeName != "" || a.Status.Phase != corev1.PodPending ||
		!a.CreationTimestamp.Time.Equal(s.now) || len(a.Status.Conditions) > 0 || a.DeletionTimestamp != nil {
		t.Errorf("the pod that came back is %+v", a)
	}
	if group := a.Annotations["scheduling.k8s.io/group-name"]; group != "podgroup-r1" {
		t.Errorf("its PodGroup is %q", group)
	}
	if s.pod("b") != nil {
		t.Error("a pod without a controller came back")
	}
	if _, ok := s.groups[cluster.JobID{Namespace: "work", Name: "podgroup-b"}]; ok {
		t.Error("the PodGroup of a pod alone outlives it")
	}
}

func TestWithGraceAnEvictedPodLivesOutItsGracePeriod(t *testing.T) {
	for grace, want := range map[bool]int{false: 1, true: 3} {
		given := map[bool]time.Duration{false: 0, true: 3 * time.Second}[grace]
		s := started(t, contested+victim("a", ""), Options{Grace: grace})
		s.do(planOf("a"))
		if left := s.pod("a").DeletionTimestamp.Sub(s.now); left != given {
			t.Errorf("with grace %t it has %s", grace, left)
		}
		seconds := 0
		for ; s.pod("a") != nil && seconds < 10; seconds++ {
			s.pass()
		}
		if seconds != want {
			t.Errorf("with grace %t it is gone after %d seconds", grace, seconds)
		}
	}
}

func TestABudgetForbidsTheSecondEvictionUnlessItIsPast(t *testing.T) {
	s := started(t, contested+victim("a", web)+victim("b", web), Options{})
	s.do(planOf("a", "b"))
	if s.pod("a").DeletionTimestamp == nil || s.pod("b").DeletionTimestamp != nil {
		t.Error("not only the first is evicted")
	}
	const reason = "a disruption budget forbids it: guard"
	failed := cache.PlanFailed{Job: preemptor, Plan: "p", At: s.now, Reason: reason, Sent: 1,
		Refused: []cache.Refused{{Pod: keyOf(s.pod("b")), UID: s.pod("b").UID, Reason: reason, ByBudget: true}}}
	var got cache.PlanFailed
	for _, e := range s.events {
		if f, ok := e.(cache.PlanFailed); ok {
			got = f
		}
	}
	if diff := cmp.Diff(failed, got); diff != "" {
		t.Errorf("what the scheduler hears (-want +got):\n%s", diff)
	}
	if len(s.report.Evictions) != 1 {
		t.Errorf("the evictions are %+v", s.report.Evictions)
	}
	past := planOf("b")
	past.Plans[0].Evictions[0].PastBudget = true
	s.do(past)
	if s.pod("b").DeletionTimestamp == nil {
		t.Error("an eviction past the budget is not carried out")
	}
}

func TestBudgetsCountWhatRunsAndDoesNotLeave(t *testing.T) {
	s := started(t, contested+victim("a", web)+victim("b", web)+victim("c", web), Options{})
	allowed := func() int32 { return s.budgets[0].Object.Status.DisruptionsAllowed }
	if status := s.budgets[0].Object.Status; allowed() != 2 || status.CurrentHealthy != 3 || status.ExpectedPods != 3 || status.DesiredHealthy != 1 {
		t.Errorf("the status is %+v", status)
	}
	s.do(planOf("a"))
	if allowed() != 1 {
		t.Errorf("with one leaving it allows %d", allowed())
	}
	s.pass()
	if status := s.budgets[0].Object.Status; allowed() != 1 || status.ExpectedPods != 3 {
		t.Errorf("with one that came back and waits it is %+v", status)
	}
	s.do(&decision.Decisions{Binds: []decision.Bind{{Pod: work("a"), UID: s.pod("a").UID, Node: "n1"}}})
	if allowed() != 2 {
		t.Errorf("with that running again it allows %d", allowed())
	}
}

func TestBudgetsInPercentRoundUp(t *testing.T) {
	for number, want := range map[string]int32{"minAvailable: 34%": 2, "maxUnavailable: 34%": 1, "maxUnavailable: 1": 2, "minAvailable: 0": 0} {
		in, err := parse(strings.Replace(contested, "minAvailable: 1", number, 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := in.Budgets[0].Desired(3); got != want {
			t.Errorf("%s of 3 wants %d, want %d", number, got, want)
		}
	}
	for number, want := range map[string]string{"minAvailable: many": "spec.minAvailable", "minAvailable: 1, maxUnavailable: 1": "exclude"} {
		if _, err := parse(strings.Replace(contested, "minAvailable: 1", number, 1)); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "PodDisruptionBudget work/guard") {
			t.Errorf("%s is read with %v", number, err)
		}
	}
}

func TestAnEvictionCanBeRefusedOrTakeTooLong(t *testing.T) {
	fates := map[string]Fate{"a": {Overdue: Never}, "b": {Overdue: 2 * time.Second}, "c": {Refused: "no", Late: true}}
	s := started(t, contested+victim("a", "")+victim("b", "")+victim("c", "")+victim("d", ""), Options{
		Fate: func(e decision.Eviction) Fate { return fates[e.Pod.Name] }})
	s.do(planOf("a", "b", "c", "d"))
	if s.pod("c").DeletionTimestamp != nil || s.pod("d").DeletionTimestamp != nil {
		t.Error("what is refused, and what comes after it, is evicted")
	}
	s.pass()
	if s.pod("b") == nil {
		t.Error("the one that takes too long is gone in time")
	}
	s.pass()
	for range 100 {
		s.pass()
	}
	if s.pod("a") == nil || s.pod("b") != nil {
		t.Error("the one that never goes is gone, or the other is not")
	}
	if !s.leaving() {
		t.Error("nothing is leaving")
	}
}

func TestAPlanThatEndsTakesBackWhatWasWritten(t *testing.T) {
	s := started(t, contested+victim("a", ""), Options{Fate: func(decision.Eviction) Fate { return Fate{Refused: "no"} }})
	s.do(planOf("a"))
	s.do(&decision.Decisions{Ended: []decision.PlanEnd{{ID: "p", Job: preemptor, Why: "no",
		Nominations: []decision.Nomination{{Pod: work("x"), UID: "x", Job: preemptor}}, Spared: []decision.Spared{{Pod: work("a"), UID: "a"}}}}})
	if node := s.pod("x").Status.NominatedNodeName; node != "" {
		t.Errorf("the nominated node is %q", node)
	}
	if status, reason := condition(s.pod("a")); status != corev1.ConditionFalse || reason != "PreemptionCancelled" {
		t.Errorf("DisruptionTarget is %s %s", status, reason)
	}
	if len(s.report.Nominations) != 1 {
		t.Errorf("losing a nomination is told as one: %+v", s.report.Nominations)
	}
}

func TestEvictionsAreToldToAPerson(t *testing.T) {
	s := started(t, contested+victim("a", ""), Options{})
	s.report.Cycles = 1
	s.do(planOf("a"))
	var b strings.Builder
	if err := s.report.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Cycle 1\n", "work/a", "from n1", "for work/preemptor by preempt (J1): for the better\n", "nominate", "to n1"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	noPreemptor := Eviction{Action: "shuffle"}
	if got := noPreemptor.Authority(); got != "by shuffle" {
		t.Errorf("an eviction for no preemptor is %q", got)
	}
}

func TestQuotasFollowThePodsFromWhatIsGiven(t *testing.T) {
	quota := func(status string) string {
		return "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: limit, namespace: work}\n" +
			"spec: {hard: {requests.cpu: '4', pods: '9', services: '3'}}\n" + status + "---\n"
	}
	for status, want := range map[string][2]string{
		"": {"2 2 <nil>", "1 1 <nil>"},
		"status: {hard: {requests.cpu: '4'}, used: {requests.cpu: '3', pods: '5', services: '2'}}\n": {"3 5 2", "2 4 2"},
	} {
		s := started(t, contested+victim("a", "")+quota(status), Options{})
		says := func() string {
			used := s.quotas[0].object.Status.Used
			text := ""
			for _, name := range []corev1.ResourceName{"requests.cpu", "pods", "services"} {
				amount, ok := used[name]
				if text += " "; ok {
					text += amount.String()
				} else {
					text += "<nil>"
				}
			}
			return text[1:]
		}
		if got := says(); got != want[0] {
			t.Errorf("with %q it says %q, want %q", status, got, want[0])
		}
		s.do(planOf("a"))
		s.pass()
		if got := says(); got != want[1] {
			t.Errorf("with %q and one pod gone it says %q, want %q", status, got, want[1])
		}
	}
}

func TestAQuotaCountsThePodsOfItsScopes(t *testing.T) {
	for scopes, want := range map[string]string{
		"scopes: [NotTerminating, NotBestEffort]": "2",
		"scopes: [BestEffort]":                    "0",
		"scopes: [Terminating]":                   "0",
		"scopes: [PriorityClass]":                 "0",
		"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}":          "2",
		"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}":    "0",
		"scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [high]}]}": "2",
		"scopeSelector: {matchExpressions: [{scopeName: NotBestEffort, operator: Exists}]}":                "2",
	} {
		s := started(t, contested+victim("a", "")+"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: limit, namespace: work}\n"+
			"spec: {hard: {cpu: '4'}, "+scopes+"}\n", Options{})
		used := s.quotas[0].object.Status.Used[corev1.ResourceCPU]
		if used.String() != want {
			t.Errorf("with %s it counts %s, want %s", scopes, used.String(), want)
		}
	}
}

func TestABoundPodSaysWhichQueueIsChargedForIt(t *testing.T) {
	free := strings.Replace(contested, "schedulingGates: [{name: wait}], ", "", 1) + `
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: other}
spec: {weight: 1}
`
	s := started(t, free, Options{})
	for range 5 {
		if _, err := s.cycle(); err != nil {
			t.Fatal(err)
		}
	}
	if pod := s.pod("x"); pod.Spec.NodeName != "n1" || pod.Annotations[decision.AccountAnnotation] != "default/preemptor" {
		t.Fatalf("it is on %q, charged to %q", pod.Spec.NodeName, pod.Annotations[decision.AccountAnnotation])
	}
	// So the queue that was charged stays charged, whatever the PodGroup says later.
	group := s.groups[preemptor].DeepCopy()
	group.Spec.Queue = "other"
	s.groups[preemptor] = group
	s.set(group)
	if _, err := s.cycle(); err != nil {
		t.Fatal(err)
	}
	if j := s.scheduler.Cache().Job(preemptor); j == nil || j.QueueName != "default" {
		t.Errorf("the job is now %v", j)
	}
}
