package explain_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

func capability(text string) func(*v1beta1.Queue) {
	return func(q *v1beta1.Queue) { q.Spec.Capability = fixture.List(text) }
}

func deserved(text string) func(*v1beta1.Queue) {
	return func(q *v1beta1.Queue) { q.Spec.Deserved = fixture.List(text) }
}

func class(name string) func(*v1beta1.PodGroup) {
	return func(g *v1beta1.PodGroup) { g.Spec.PriorityClassName = name }
}

// running is a gang that runs on a node.
func (a *asker) running(name, queue, node, request string, size int, options ...func(*corev1.Pod)) {
	group, pods := gang(name, queue, size, request, options...)
	group.Spec.MinMember = 1
	group.Status.Phase = v1beta1.PodGroupRunning
	a.Set(group)
	for _, pod := range pods {
		fixture.On(node)(pod)
		a.Set(pod)
	}
}

var preemptable = fixture.Annotated(v1beta1.PreemptableKey, "true")

func TestAJobSaysWhatIsShortOnWhichNodes(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=2"),
		fixture.Node("far", "cpu=64", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	group, pods := gang("g", "default", 2, "cpu=3")
	a.Set(group, pods[0], pods[1])
	a.Rest()
	a.unchanged(func() {
		j := a.job("g")
		if !j.Admitted || j.Lacks != 2 || j.Verdict == nil || j.Verdict.Code != "GangShort" || j.Verdict.Placed != 1 || j.Verdict.Wanted != 2 {
			t.Errorf("the job is %+v, its verdict %+v", j, j.Verdict)
		}
		if len(j.Refusals) != 1 || j.Refusals[0].Pods != 2 {
			t.Fatalf("the refusals are %+v", j.Refusals)
		}
		// One pod of them would fit on n1 by itself.
		for _, r := range j.Refusals[0].Nodes {
			if r.Reason == "Insufficient cpu" && (r.Nodes != 1 || r.Example != "n2") {
				t.Errorf("%+v", r)
			}
		}
		if j.Order == nil || j.Order.Place != 1 || j.Order.Of != 1 || j.Order.Queues != 1 {
			t.Errorf("its place is %+v", j.Order)
		}
		if !slices.Contains(j.Verdict.Helps, "node") || j.Pods["Pending"] != 2 || j.Requests["cpu"] != "6" {
			t.Errorf("%+v, %+v", j.Verdict.Helps, j)
		}
	})
}

func TestAJobSaysWhichQueueBoundsItAndByHowMuch(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=16"), fixture.Queue("q", capability("cpu=4"), deserved("cpu=2")))
	a.running("old", "q", "n1", "cpu=3", 1)
	group, pods := gang("g", "q", 1, "cpu=3")
	a.Set(group, pods[0])
	a.Rest()
	a.unchanged(func() {
		want := explain.Bound{Queue: "q", Resource: "cpu", Limit: "capability", May: "4", Holds: "3", Needed: "3", Exceeds: "2"}
		if j := a.job("g"); !slices.Contains(j.Bounds, want) {
			t.Errorf("the bounds are %+v, want %+v", j.Bounds, want)
		} else if j.Phase == "Pending" && slices.ContainsFunc(j.Bounds, func(b explain.Bound) bool { return b.Limit == "deserved" }) {
			t.Errorf("what is deserved does not bound a job that waits for admission: %+v", j.Bounds)
		}
		q, err := a.model().Queue(a.Now, "q")
		if err != nil || q.Holds["cpu"] != "3" || q.Capability["cpu"] != "4" || q.Jobs.Admitted+q.Jobs.Pending != 1 || q.Jobs.Running != 1 ||
			!slices.Equal(q.Jobs.Waiting, []string{"work/g"}) || q.Share == nil || *q.Share != 1.5 {
			t.Errorf("the queue is %+v, %v", q, err)
		}
	})
}

func TestAJobSaysWhoCouldLeaveAndWhichRuleProtectsTheOthers(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"), fixture.PriorityClass("high", 10))
	a.running("low", "default", "n1", "cpu=1", 2, preemptable)
	a.running("marked-not", "default", "n1", "cpu=1", 1)
	a.running("equal", "default", "n1", "cpu=1", 1, preemptable)
	equal := fixture.Group("equal", "default", 1, class("high"))
	equal.Generation = 2
	a.Set(equal)
	group, pods := gang("g", "default", 1, "cpu=4")
	class("high")(group)
	a.Set(group, pods[0])
	a.Rest()
	a.unchanged(func() {
		j := a.job("g")
		if len(j.Candidates) == 0 {
			t.Fatalf("nobody is said to be a candidate: %+v", j)
		}
		c := j.Candidates[0]
		if c.Action != "preempt" || c.MayLeave != 2 || len(c.Protected) != 2 {
			t.Errorf("the candidates are %+v", c)
		}
		for _, p := range c.Protected {
			if p.Pods != 1 || !strings.HasPrefix(p.Rule, "rule J1") && !strings.HasPrefix(p.Rule, "rule P2") {
				t.Errorf("%+v", p)
			}
		}
	})
}

func TestAJobSaysHowFarItsPlanIs(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"), fixture.PriorityClass("high", 10))
	a.running("low", "default", "n1", "cpu=2", 2, preemptable)
	group, pods := gang("g", "default", 1, "cpu=4")
	class("high")(group)
	a.Set(group, pods[0])
	a.Rest()
	a.unchanged(func() {
		p := a.job("g").Plan
		if p == nil || p.Action != "preempt" || p.Evictions != 2 || p.Left != 0 || len(p.Leaving) != 2 ||
			!slices.Equal(p.Promised, []explain.Placement{{Pod: "work/g-0", Node: "n1"}}) {
			t.Fatalf("the plan is %+v", p)
		}
		pod, err := a.model().Pod(a.Now, fixture.Key("low-0"))
		if err != nil || pod.LeavesFor != "work/g" || pod.Plan != p.ID || pod.Status != "Evicting" {
			t.Errorf("the victim is %+v, %v", pod, err)
		}
		n, err := a.model().Node("n1")
		if err != nil || n.Promised["cpu"] != "4" || n.Leaving["cpu"] != "4" || len(n.Idle) != 1 || n.PodCount != 3 {
			t.Errorf("the node is %+v, %v", n, err)
		}
	})
}

func TestQueuesSayFromWhomTheyMayTake(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=8"), fixture.Queue("a", deserved("cpu=4")), fixture.Queue("b", deserved("cpu=4")),
		fixture.Queue("kept", deserved("cpu=0"), func(q *v1beta1.Queue) { no := false; q.Spec.Reclaimable = &no }))
	a.running("x", "b", "n1", "cpu=6", 1)
	a.running("y", "kept", "n1", "cpu=1", 1)
	a.Rest()
	a.unchanged(func() {
		q, err := a.model().Queue(a.Now, "a")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range q.TakesFrom {
			if r.May != (r.Queue == "b") || r.Queue == "kept" && !strings.HasPrefix(r.Rule, "rule Q3") {
				t.Errorf("from %s: %+v", r.Queue, r)
			}
		}
		for _, r := range q.GivesTo {
			if r.May || r.Rule != "the queue holds nothing" {
				t.Errorf("to %s: %+v", r.Queue, r)
			}
		}
	})
}

func TestWhatIsNotKnownIsAnError(t *testing.T) {
	a := newAsker(t, evicting)
	a.Rest()
	m := a.model()
	var errs []error
	_, err := m.Job(a.Now, cluster.GroupID(fixture.Key("x")))
	errs = append(errs, err)
	_, err = m.Pod(a.Now, fixture.Key("x"))
	errs = append(errs, err)
	_, err = m.Queue(a.Now, "x")
	errs = append(errs, err)
	_, err = m.Node("x")
	errs = append(errs, err)
	for _, err := range errs {
		var notFound explain.NotFound
		if !errors.As(err, &notFound) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestASubmissionSaysWhatWouldHappen(t *testing.T) {
	base := func(t *testing.T) *asker {
		a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=4"), fixture.PriorityClass("high", 10),
			fixture.Queue("small", capability("cpu=1")))
		a.running("low", "default", "n1", "cpu=2", 2, preemptable)
		a.Rest()
		return a
	}
	for name, test := range map[string]struct {
		queue, class, request string
		size                  int
		minResources          string
		want                  explain.Outcome
		says                  string
	}{
		"it finds free room":             {"default", "", "cpu=2", 2, "", explain.OutcomeBound, `"node":"n2"`},
		"others leave for it":            {"default", "high", "cpu=4", 2, "", explain.OutcomePreempting, `"rule":"J1"`},
		"nobody leaves for it":           {"default", "", "cpu=4", 2, "", explain.OutcomeWaiting, `"code":"GangShort"`},
		"its queue does not exist":       {"nowhere", "", "cpu=1", 1, "", explain.OutcomeNotAdmitted, `"code":"QueueNotFound"`},
		"its queue may not hold it":      {"small", "", "cpu=2", 1, "cpu=2", explain.OutcomeNotAdmitted, `"subject":"small"`},
		"some of its pods are not there": {"default", "", "cpu=1", 0, "", explain.OutcomeWaiting, `"code":"NotEnoughTasks"`},
	} {
		t.Run(name, func(t *testing.T) {
			a := base(t)
			group, pods := gang("new", test.queue, test.size, test.request)
			if test.size == 0 {
				group.Spec.MinMember = 1
			}
			class(test.class)(group)
			if test.minResources != "" {
				fixture.Wanting(test.minResources)(group)
			}
			a.unchanged(func() {
				answer := a.submit(group, pods...)
				text, err := json.Marshal(answer)
				if err != nil || answer.Outcome != test.want || !strings.Contains(string(text), test.says) {
					t.Errorf("the answer is %s, want %s with %s", text, test.want, test.says)
				}
			})
		})
	}
}

func TestASubmissionHasThePlaceThatTheJobGets(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"), fixture.PriorityClass("high", 10), fixture.Queue("other"))
	for name, queue := range map[string]string{"first": "default", "second": "default", "elsewhere": "other"} {
		group, pods := gang(name, queue, 1, "cpu=8")
		a.Set(group, pods[0])
	}
	a.Rest()
	for name, want := range map[string]explain.Order{
		"":     {Place: 3, Of: 3, Next: "work/second", QueuePlace: 1, Queues: 2},
		"high": {Place: 1, Of: 3, QueuePlace: 1, Queues: 2},
	} {
		group, pods := gang("zlast", "default", 1, "cpu=8")
		class(name)(group)
		var answer explain.Submission
		a.unchanged(func() { answer = a.submit(group, pods...) })
		if answer.Order == nil || *answer.Order != want {
			t.Errorf("with the class %q it would have %+v, want %+v", name, answer.Order, want)
		}
		a.Set(group, pods[0])
		a.Rest()
		if got := a.job("zlast").Order; got == nil || got.Place != want.Place || got.Of != want.Of || got.Next != want.Next {
			t.Errorf("with the class %q it has %+v, want %+v", name, got, want)
		}
		a.Remove(pods[0], group)
		a.Rest()
	}
}

// A cordoned node takes no pod of any job: what the job lacks the others say.
func TestCordonedNodesHideNoCause(t *testing.T) {
	a := newAsker(t, evicting)
	for _, name := range []string{"c1", "c2", "c3"} {
		a.Set(fixture.Node(name, "cpu=4", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	}
	group, pods := gang("waits", "default", 1, "cpu=1")
	a.Set(group, pods[0])
	a.Rest()
	if c := a.model().Cause(a.Now, cluster.GroupID(fixture.Key("waits"))); c.Code != string(verdict.NodeMismatch) || !c.Never {
		t.Errorf("where all nodes are cordoned the cause is %+v", c)
	}
	a.Set(fixture.Node("tainted", "cpu=4", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "only", Value: "others", Effect: corev1.TaintEffectNoSchedule}}
	}))
	a.Rest()
	if c := a.model().Cause(a.Now, cluster.GroupID(fixture.Key("waits"))); c.Code != string(verdict.NodeTaints) || c.Where != "node tainted" || len(c.Nodes) != 2 {
		t.Errorf("with a tainted node in the cluster it is %+v", c)
	}
}

// Before it is admitted a job has no pods that could be held against nodes.
func TestAJobLargerThanAllNodesTogetherNeverStarts(t *testing.T) {
	a := newAsker(t, "", fixture.Node("n0", "cpu=4"), fixture.Node("n1", "cpu=4"), fixture.Group("runs", "default", 1, fixture.Wanting("cpu=8")))
	for name, wants := range map[string]string{"large": "cpu=9", "fits": "cpu=8"} {
		a.Set(fixture.Group(name, "default", 1, fixture.PendingAdmission, fixture.Wanting(wants)))
	}
	a.Cycle()
	large, fits := a.model().Cause(a.Now, cluster.GroupID(fixture.Key("large"))), a.model().Cause(a.Now, cluster.GroupID(fixture.Key("fits")))
	if !large.Never || large.Code != string(verdict.TooLargeForQueue) {
		t.Errorf("the cause of the large one is %+v", large)
	}
	if fits.Never || !fits.Waits || fits.Code != string(verdict.OverCluster) {
		t.Errorf("the cause of the one that fits is %+v", fits)
	}
}

// A pod keeps its name until it is gone, so its successor cannot be made.
func TestAJobThatLacksPodsNamesTheOneThatDoesNotEnd(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"))
	group, pods := gang("stuck", "default", 2, "cpu=1", fixture.On("n1"))
	a.Set(group, pods[0], pods[1])
	a.Rest()
	leaving := pods[0].DeepCopy()
	leaving.Finalizers = []string{"example.com/hold"}
	leaving.DeletionTimestamp, leaving.DeletionGracePeriodSeconds = &metav1.Time{Time: a.Now}, ptr.To[int64](0)
	a.Set(leaving)
	a.Remove(pods[1])
	a.Now = a.Now.Add(5 * time.Second)
	a.Rest()
	c := a.model().Cause(a.Now, cluster.GroupID(fixture.Key("stuck")))
	name := fixture.Key(leaving.Name).String()
	if c.Code != string(verdict.NotEnoughTasks) || c.Pod != name || !strings.HasSuffix(c.Message, "; pod "+name+" is being deleted and has the finalizer example.com/hold") {
		t.Errorf("the cause is %+v", c)
	}
}

// A job that ends, or goes on with fewer pods, says so too: its Job cannot be completed, restarted or resumed before.
func TestAJobThatDoesNotWaitNamesThePodThatDoesNotEnd(t *testing.T) {
	for want, phase := range map[string]corev1.PodPhase{explain.Finished: corev1.PodSucceeded, explain.Running: corev1.PodRunning} {
		a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"))
		group, pods := gang("stuck", "default", 2, "cpu=1", fixture.On("n1"))
		group.Spec.MinMember = 1
		for _, pod := range pods {
			pod.Status.Phase = phase
		}
		leaving := pods[0].DeepCopy()
		leaving.DeletionTimestamp, leaving.DeletionGracePeriodSeconds = &metav1.Time{Time: a.Now.Add(-time.Minute)}, ptr.To[int64](30)
		a.Set(group, leaving, pods[1])
		a.Rest()
		c := a.model().Cause(a.Now, cluster.GroupID(fixture.Key("stuck")))
		name := fixture.Key(leaving.Name).String()
		if c.Code != want || c.Waits || c.Where != "pod "+name || !strings.Contains(c.Message, "; pod "+name+" should have ended by ") || !strings.HasSuffix(c.Message, "and node n1 has not removed it") {
			t.Errorf("%s: the cause is %+v", want, c)
		}
	}
}
