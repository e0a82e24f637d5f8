package edge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/plans"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/apitest"
)

// tap is between an outbox and the real API server. It keeps what was written, in the order of the answers, and can
// stop or lose what goes through.
type tap struct {
	next http.RoundTripper

	mutex  sync.Mutex
	writes []string // "evict pod", for example
	loses  map[string]bool
	gate   map[string]chan struct{} // a request of this kind waits here
	waits  chan string
}

// writeName says what a request is: "status a", "evict a", "delete a", or "" if it is none of these.
func writeName(r *http.Request) string {
	switch {
	case r.URL.Query().Get("dryRun") != "":
		return "ask " + path.Base(strings.TrimSuffix(r.URL.Path, "/eviction"))
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status"):
		return "status " + path.Base(path.Dir(r.URL.Path))
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/eviction"):
		return "evict " + path.Base(path.Dir(r.URL.Path))
	case r.Method == http.MethodDelete:
		return "delete " + path.Base(r.URL.Path)
	}
	return ""
}

func (w *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	name := writeName(r)
	w.mutex.Lock()
	gate := w.gate[name]
	w.mutex.Unlock()
	if gate != nil {
		w.waits <- name
		<-gate
	}
	response, err := w.next.RoundTrip(r)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if name == "" || err != nil {
		return response, err
	}
	w.writes = append(w.writes, fmt.Sprintf("%s %d", name, response.StatusCode))
	if w.loses[name] {
		delete(w.loses, name)
		_ = response.Body.Close()
		return nil, errors.New("the reply was lost")
	}
	return response, nil
}

func (w *tap) written() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.writes)
}

// planning is one test of plans against the real API server.
type planning struct {
	*tap
	t         *testing.T
	admin     *apiserver.Clients
	tapped    *apiserver.Clients
	namespace string
	outbox    *Outbox
	group     *schedulingv1beta1.PodGroup

	outcomes sync.Mutex
	failures []cache.PlanFailed
	results  map[plans.EvictionResult]int
}

func newPlanning(t *testing.T) *planning {
	t.Helper()
	admin, c := adminClients(t)
	s := &planning{t: t, admin: admin, namespace: space(t, admin), results: map[plans.EvictionResult]int{},
		tap: &tap{loses: map[string]bool{}, gate: map[string]chan struct{}{}, waits: make(chan string, 100)}}
	config := rest.CopyConfig(c.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		s.next = next
		return s.tap
	})
	var err error
	if s.tapped, err = apiserver.Connect(config, 2000, 2000); err != nil {
		t.Fatal(err)
	}
	s.group = createGroup(t, admin, s.namespace, "preemptor")
	s.outbox = s.startOutbox()
	return s
}

func (s *planning) startOutbox() *Outbox {
	s.t.Helper()
	o := s.newOutbox()
	s.start(o)
	return o
}

// newOutbox makes an outbox that keeps what it is given until it is started.
func (s *planning) newOutbox() *Outbox {
	return NewOutbox(s.tapped, OutboxOptions{
		Name: "volcano", Logger: logr.Discard(), Refuse: func(cache.BindFailed) {},
		Fail: func(e cache.PlanFailed) {
			s.outcomes.Lock()
			defer s.outcomes.Unlock()
			s.failures = append(s.failures, e)
		},
		ObserveEviction: func(result plans.EvictionResult) {
			s.outcomes.Lock()
			defer s.outcomes.Unlock()
			s.results[result]++
		},
	})
}

func (s *planning) start(o *Outbox) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(o.Wait)
	s.t.Cleanup(cancel)
	o.Start(ctx)
}

// running makes a pod that runs on a node that does not exist, so that no kubelet ends it.
func (s *planning) running(name string) *corev1.Pod {
	s.t.Helper()
	ctx, pods := apitest.Context(s.t), s.admin.Core.CoreV1().Pods(s.namespace)
	pod := createPod(s.t, s.admin, s.namespace, name)
	if err := pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Name: "node"}}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	patch := []byte(`{"metadata":{"labels":{"app":"victim"}},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	for _, part := range [][]string{nil, {"status"}} {
		if _, err := pods.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, part...); err != nil {
			s.t.Fatal(err)
		}
	}
	return pod
}

func (s *planning) plan(id string, preemptors, victims []*corev1.Pod) decision.PlanStart {
	job := cluster.JobID{Namespace: s.namespace, Name: "preemptor"}
	p := decision.PlanStart{ID: id, Job: job, UID: s.group.UID, Group: decision.GroupStatus{Job: job, UID: s.group.UID,
		Status: schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupInqueue, Conditions: []schedulingv1beta1.PodGroupCondition{{
			Type: schedulingv1beta1.PodGroupNominatedType, Status: corev1.ConditionTrue, TransitionID: id, LastTransitionTime: metav1.Now().Rfc3339Copy(),
		}}}}}
	for _, pod := range preemptors {
		p.Nominations = append(p.Nominations, decision.Nomination{Pod: nameOf(pod), UID: pod.UID, Node: "node", Job: job})
	}
	for _, pod := range victims {
		p.Evictions = append(p.Evictions, decision.Eviction{Pod: nameOf(pod), UID: pod.UID, Node: "node", For: job, Action: "preempt", Rule: "J1",
			Message: "by rule J1 (plan " + id + ")"})
	}
	return p
}

func (s *planning) endOf(id string, preemptors, spared []*corev1.Pod) decision.PlanEnd {
	p := decision.PlanEnd{ID: id, Job: cluster.JobID{Namespace: s.namespace, Name: "preemptor"}, Why: "the test says so"}
	for _, pod := range preemptors {
		p.Nominations = append(p.Nominations, decision.Nomination{Pod: nameOf(pod), UID: pod.UID, Job: p.Job})
	}
	for _, pod := range spared {
		p.Spared = append(p.Spared, decision.Spared{Pod: nameOf(pod), UID: pod.UID})
	}
	return p
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func (s *planning) begin(p decision.PlanStart) {
	s.outbox.Do(decision.Decisions{Plans: []decision.PlanStart{p}})
}

func (s *planning) end(p decision.PlanEnd) {
	s.outbox.Do(decision.Decisions{Ended: []decision.PlanEnd{p}})
}

// Settle waits until nothing is left to do.
func (s *planning) settle() {
	s.t.Helper()
	eventually(s.t, func(context.Context) string {
		if o := s.outbox.Stats(); o.Plans+o.StepsWaiting+o.StepsInFlight > 0 {
			return fmt.Sprintf("not over: %+v; written %q", o, s.written())
		}
		return ""
	})
}

func (s *planning) live(pod *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	live, err := s.admin.Core.CoreV1().Pods(s.namespace).Get(apitest.Context(s.t), pod.Name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return live
}

// marked says what a pod says about being evicted, and whether it is being deleted.
func (s *planning) marked(pod *corev1.Pod) string {
	s.t.Helper()
	live, says := s.live(pod), "not marked"
	for _, c := range live.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			says = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	if live.DeletionTimestamp != nil {
		says += ", leaves"
	}
	return says
}

func (s *planning) expectMarks(want string, pods ...*corev1.Pod) {
	s.t.Helper()
	for _, pod := range pods {
		if got := s.marked(pod); got != want {
			s.t.Errorf("pod %s: %s, want %s", pod.Name, got, want)
		}
	}
}

func (s *planning) expectResults(want map[plans.EvictionResult]int) {
	s.t.Helper()
	s.outcomes.Lock()
	defer s.outcomes.Unlock()
	if diff := cmp.Diff(want, s.results); diff != "" {
		s.t.Errorf("evictions (-want +got):\n%s", diff)
	}
}

func (s *planning) expectFailure(reason string) {
	s.t.Helper()
	s.outcomes.Lock()
	defer s.outcomes.Unlock()
	if len(s.failures) != 1 || !strings.Contains(s.failures[0].Reason, reason) {
		s.t.Errorf("reported %+v, want one about %q", s.failures, reason)
	}
}

// budget makes a disruption budget of which so many disruptions are left, as its controller would.
func (s *planning) budget(left int32) {
	s.t.Helper()
	ctx, budgets := apitest.Context(s.t), s.admin.Core.PolicyV1().PodDisruptionBudgets(s.namespace)
	one := intstr.FromInt32(1)
	budget, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "victim"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: left, CurrentHealthy: 1 + left,
		DesiredHealthy: 1, ExpectedPods: 1 + left}
	if _, err := budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

const (
	leaving   = "True PreemptionByScheduler: by rule J1 (plan p), leaves"
	cancelled = "False PreemptionCancelled: the test says so"
)

func TestAPlanIsWrittenDownBeforeAnyPodIsEvicted(t *testing.T) {
	s := newPlanning(t)
	preemptor, v, w, past := createPod(t, s.admin, s.namespace, "a"), s.running("v"), s.running("w"), s.running("x")
	plan := s.plan("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v, w, past})
	plan.Evictions[2].PastBudget = true
	// What waits of the statuses of its PodGroup is older, and is not written any more. It waits only as long as no
	// worker has taken it.
	older := plan.Group
	older.Status.Conditions = nil
	s.outbox = s.newOutbox()
	s.outbox.Do(decision.Decisions{Groups: []decision.GroupStatus{older}, Plans: []decision.PlanStart{plan}})
	s.start(s.outbox)
	s.settle()
	got := s.written()
	for _, part := range [][2]int{{2, 5}, {5, 8}, {8, 11}} {
		slices.Sort(got[part[0]:part[1]])
	}
	slices.Sort(got[11:])
	if diff := cmp.Diff([]string{"status preemptor 200", "status a 200", "ask v 201", "ask w 201", "ask x 200",
		"status v 200", "status w 200", "status x 200",
		"delete x 200", "evict v 201", "evict w 201", "status v 200", "status w 200"}, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	group, err := s.admin.Batch.SchedulingV1beta1().PodGroups(s.namespace).Get(apitest.Context(t), "preemptor", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan.Group.Status, group.Status); diff != "" {
		t.Errorf("the PodGroup (-want +got):\n%s", diff)
	}
	if node := s.live(preemptor).Status.NominatedNodeName; node != "node" {
		t.Errorf("the preemptor is promised %q", node)
	}
	s.expectMarks(leaving, v, w, past)
	s.expectResults(map[plans.EvictionResult]int{plans.EvictionSent: 2, plans.EvictionForced: 1})
	eventually(t, func(ctx context.Context) string {
		list, err := s.admin.Core.EventsV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
		switch {
		case err != nil:
			return err.Error()
		case len(list.Items) < 3:
			return fmt.Sprintf("there are %d events", len(list.Items))
		}
		for _, e := range list.Items {
			if e.Reason != "Preempted" || e.Note != "by rule J1 (plan p)" || e.Related.Name != "preemptor" || e.Regarding.Kind != "Pod" {
				t.Errorf("the event is %+v", e)
			}
		}
		return ""
	})
}

func TestNoPodIsEvictedForANamesakeOrForNothing(t *testing.T) {
	s := newPlanning(t)
	foreign, sibling, gone, done := s.running("v"), s.running("w"), s.running("x"), s.running("y")
	plan := s.plan("p", nil, []*corev1.Pod{foreign, sibling, gone, done})
	plan.Evictions[0].UID, plan.Evictions[1].UID, plan.Evictions[1].PastBudget = "before", "before", true
	deletePod(t, s.admin, gone)
	if _, err := s.admin.Core.CoreV1().Pods(s.namespace).Patch(apitest.Context(t), "y", types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	s.begin(plan)
	s.settle()
	s.expectMarks("not marked", foreign, sibling)
	if s.live(done).DeletionTimestamp != nil {
		t.Error("a pod that is done was deleted")
	}
	s.expectResults(map[plans.EvictionResult]int{plans.EvictionNeedless: 4})
	if len(s.failures) != 0 {
		t.Errorf("reported %v", s.failures)
	}
}

func TestAnEvictionOfANamesakeIsNone(t *testing.T) {
	for _, pastBudget := range []bool{false, true} {
		s := newPlanning(t)
		preemptor, victim := createPod(t, s.admin, s.namespace, "a"), s.running("v")
		plan := s.plan("p", []*corev1.Pod{preemptor}, []*corev1.Pod{victim})
		plan.Evictions[0].PastBudget = pastBudget
		request := map[bool]string{false: "evict v", true: "delete v"}[pastBudget]
		s.gate[request] = make(chan struct{})
		s.begin(plan)
		<-s.waits
		// Between the mark and the eviction the pod ends, and another gets its name.
		pods := s.admin.Core.CoreV1().Pods(s.namespace)
		if err := pods.Delete(apitest.Context(t), "v", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Fatal(err)
		}
		namesake := s.running("v")
		close(s.gate[request])
		s.settle()
		s.expectResults(map[plans.EvictionResult]int{plans.EvictionNeedless: 1})
		s.expectMarks("not marked", namesake)
	}
}

func TestABudgetThatForbidsAnEvictionEndsThePlan(t *testing.T) {
	s := newPlanning(t)
	preemptor, v := createPod(t, s.admin, s.namespace, "a"), s.running("v")
	s.budget(0)
	s.begin(s.plan("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v}))
	s.settle()
	s.expectMarks("True PreemptionByScheduler: by rule J1 (plan p)", v)
	s.expectResults(map[plans.EvictionResult]int{plans.EvictionRefused: 1})
	s.expectFailure("disruption budget")
	s.end(s.endOf("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v}))
	s.settle()
	s.expectMarks(cancelled, v)
	if node := s.live(preemptor).Status.NominatedNodeName; node != "" {
		t.Errorf("the preemptor is still promised %q", node)
	}
}

func TestABudgetIsSpentOrPassedOverAsThePlanSays(t *testing.T) {
	s := newPlanning(t)
	v, w := s.running("v"), s.running("w")
	s.budget(1)
	plan := s.plan("p", nil, []*corev1.Pod{v, w})
	plan.Evictions[1].PastBudget = true
	s.begin(plan)
	s.settle()
	s.expectMarks(leaving, v, w)
	s.expectResults(map[plans.EvictionResult]int{plans.EvictionSent: 1, plans.EvictionForced: 1})
	budget, err := s.admin.Core.PolicyV1().PodDisruptionBudgets(s.namespace).Get(apitest.Context(t), "budget", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, isCounted := budget.Status.DisruptedPods["v"]; !isCounted || budget.Status.DisruptionsAllowed != 0 {
		t.Errorf("the budget is %+v", budget.Status)
	}
}

func TestAPlanThatIsCancelledInTheMiddleLeavesTheRestInPeace(t *testing.T) {
	s := newPlanning(t)
	preemptor := createPod(t, s.admin, s.namespace, "a")
	var victims []*corev1.Pod
	for _, name := range podNames("v", plans.Workers+4) {
		victims = append(victims, s.running(name))
		s.gate["evict "+name] = make(chan struct{})
	}
	s.begin(s.plan("p", []*corev1.Pod{preemptor}, victims))
	underWay := map[string]bool{}
	for range plans.Workers {
		underWay[<-s.waits] = true
	}
	var spared []*corev1.Pod
	for _, v := range victims {
		if !underWay["evict "+v.Name] {
			spared = append(spared, v)
		}
	}
	if len(spared) != 4 {
		t.Fatalf("%d evictions are under way", len(underWay))
	}
	// It cannot be known which of those under way will count.
	s.end(s.endOf("p", []*corev1.Pod{preemptor}, victims))
	for _, gate := range s.gate {
		close(gate)
	}
	s.settle()
	s.expectMarks(cancelled, spared...)
	for _, v := range victims {
		if isGone := s.live(v).DeletionTimestamp != nil; isGone != underWay["evict "+v.Name] {
			t.Errorf("pod %s leaves: %t", v.Name, isGone)
		}
	}
	if node := s.live(preemptor).Status.NominatedNodeName; node != "" {
		t.Errorf("the preemptor is still promised %q", node)
	}
	s.expectResults(map[plans.EvictionResult]int{plans.EvictionSent: plans.Workers, plans.EvictionDropped: 4})
}

func TestAPodWhoseBindingWaitsForAVolumeIsNominatedForNoOtherNode(t *testing.T) {
	s := newPlanning(t)
	n := &needy{T: t, admin: s.admin, namespace: s.namespace}
	a, b := createPod(t, s.admin, s.namespace, "a"), createPod(t, s.admin, s.namespace, "b")
	s.begin(s.plan("p", []*corev1.Pod{a, b}, nil))
	s.settle()
	reservation := &supplies.Reservation{Patience: time.Hour, Volumes: []supplies.VolumeReservation{wantsVolume(n.claim("claim"), nil)}}
	var d decision.Decisions
	for pod, node := range map[*corev1.Pod]string{a: "another", b: "node"} {
		d.Binds = append(d.Binds, decision.Bind{Pod: nameOf(pod), UID: pod.UID, Node: node, IsNominated: true, Reservation: reservation})
	}
	s.outbox.Do(d)
	eventually(t, func(context.Context) string {
		if left := s.outbox.Stats(); left.StepsWaiting+left.StepsInFlight > 0 {
			return fmt.Sprintf("%+v", left)
		}
		return ""
	})
	for pod, want := range map[*corev1.Pod]string{a: "", b: "node"} {
		live := s.live(pod)
		_, isRecorded := live.Annotations[schedulingv1beta1.PromiseRecordKey]
		if node := live.Status.NominatedNodeName; node != want || isRecorded != (want != "") {
			t.Errorf("pod %s is nominated for %q, recorded %t, want %q", pod.Name, node, isRecorded, want)
		}
	}
}

func TestALostReplyIsAnsweredByAskingAgain(t *testing.T) {
	s := newPlanning(t)
	preemptor, v, w := createPod(t, s.admin, s.namespace, "a"), s.running("v"), s.running("w")
	for _, name := range []string{"status preemptor", "status a", "status v", "evict v", "delete w"} {
		s.loses[name] = true
	}
	s.budget(1) // which a repetition must not ask for a second time
	plan := s.plan("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v, w})
	plan.Evictions[1].PastBudget = true
	s.begin(plan)
	s.settle()
	if len(s.loses) != 0 {
		t.Errorf("not sent: %v", s.loses)
	}
	s.expectMarks(leaving, v, w)
	s.expectResults(map[plans.EvictionResult]int{plans.EvictionSent: 1, plans.EvictionForced: 1})
	if node := s.live(preemptor).Status.NominatedNodeName; node != "node" {
		t.Errorf("the preemptor is promised %q", node)
	}
	if len(s.failures) != 0 || s.outbox.Stats().StepsRepeated != 4 {
		t.Errorf("%d repetitions, reported %v", s.outbox.Stats().StepsRepeated, s.failures)
	}
}

func TestTheNextOutboxFinishesWhatADrainLeft(t *testing.T) {
	s := newPlanning(t)
	preemptor, v, w := createPod(t, s.admin, s.namespace, "a"), s.running("v"), s.running("w")
	s.gate["status v"] = make(chan struct{})
	plan := s.plan("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v, w})
	s.begin(plan)
	<-s.waits
	drained := make(chan error)
	go func() { drained <- s.outbox.Drain(t.Context()) }()
	for !s.outbox.isClosed.Load() {
		time.Sleep(time.Millisecond)
	}
	close(s.gate["status v"])
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	s.expectMarks("True PreemptionByScheduler: by rule J1 (plan p)", v)
	if s.live(w).DeletionTimestamp != nil || s.live(v).DeletionTimestamp != nil {
		t.Error("a victim was evicted after the drain began")
	}
	s.tap.gate = nil
	s.outbox = s.startOutbox()
	s.begin(plan)
	s.settle()
	s.expectMarks(leaving, v, w)
}

func TestAPodThatHasItsNodeNeedsNoPromise(t *testing.T) {
	s := newPlanning(t)
	bound, v := s.running("a"), s.running("v")
	s.begin(s.plan("p", []*corev1.Pod{bound}, []*corev1.Pod{v}))
	s.settle()
	s.expectMarks(leaving, v)
	if len(s.failures) != 0 {
		t.Errorf("reported %v", s.failures)
	}
}

func TestOfWhatOthersHaveWrittenNothingIsTakenBack(t *testing.T) {
	s := newPlanning(t)
	drained, unmarked := s.running("v"), s.running("w")
	patch := []byte(`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager","message":"tainted"}]}}`)
	if _, err := s.admin.Core.CoreV1().Pods(s.namespace).Patch(apitest.Context(t), "v", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	s.end(s.endOf("of another process", []*corev1.Pod{unmarked}, []*corev1.Pod{drained, unmarked}))
	s.settle()
	s.expectMarks("True DeletionByTaintManager: tainted", drained)
	s.expectMarks("not marked", unmarked)
	if written := s.written(); len(written) != 0 {
		t.Errorf("written %q", written)
	}
}
