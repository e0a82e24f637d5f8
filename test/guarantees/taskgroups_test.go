package guarantees

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// application is the PodGroup of an application with one driver and some executors of one CPU.
func application(name, queue string, executors int, parameters string, options ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	g := fixture.Group(name, queue, int32(1+executors), fixture.NeedingOf("driver", 1), fixture.NeedingOf("executor", int32(executors)))
	g.Annotations[yunikorn.TaskGroupsKey] = fmt.Sprintf(`[{"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}},
		{"name": "executor", "minMember": %d, "minResource": {"cpu": "1"}}]`, executors)
	g.Annotations[yunikorn.GangParametersKey] = parameters
	for _, option := range options {
		option(g)
	}
	return g
}

// member is a pod of an application that was created at some time of the loop.
func member(name, of, role string, at time.Time, options ...func(*corev1.Pod)) *corev1.Pod {
	options = append([]func(*corev1.Pod){fixture.In(of), fixture.As(role, 0), fixture.Asks("cpu=1"), fixture.Labelled(yunikorn.AppIDKey, of)}, options...)
	pod := fixture.Pod(name, options...)
	pod.CreationTimestamp = metav1.NewTime(at)
	return pod
}

// twoNodes is a cluster of two nodes with some CPUs each, and two queues.
func twoNodes(t *testing.T, cpu int) *loop.Loop {
	asks := fmt.Sprintf("cpu=%d", cpu)
	return loop.New(t, configuration).Set(fixture.Node("n1", asks), fixture.Node("n2", asks), fixture.Queue("q"), fixture.Queue("other"))
}

// heldNodes lists the nodes of the stand-ins of a job, in their order.
func heldNodes(j *cluster.Job) string {
	var nodes []string
	for _, t := range j.StandIns(cluster.Awaited) {
		nodes = append(nodes, t.Node.Name)
	}
	return strings.Join(nodes, " ")
}

// fill is a job of one pod that requests some CPUs.
func filler(name, queue, asks string, at time.Time) []runtime.Object {
	pod := fixture.Pod(name, fixture.In(name), fixture.Asks(asks))
	pod.CreationTimestamp = metav1.NewTime(at)
	return []runtime.Object{fixture.Group(name, queue, 1), pod}
}

func boundNames(d *decision.Decisions) string {
	var names []string
	for _, b := range d.Binds {
		names = append(names, b.Pod.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestADriverStartsOnceItsExecutorsHaveRoom(t *testing.T) {
	t.Run("their room is held, and taken by them alone", func(t *testing.T) {
		w := twoNodes(t, 2)
		w.Set(application("app", "q", 3, ""), member("driver", "app", "driver", w.Now))
		if got := boundNames(w.Cycle()); got != "driver" {
			t.Fatalf("bound are %q", got)
		}
		w.StartBound()
		if got := heldNodes(w.JobNamed("app")); len(strings.Fields(got)) != 3 {
			t.Fatalf("held are %q", got)
		}
		w.Set(filler("else", "other", "cpu=1", w.Now))
		if got := boundNames(w.Cycle()); got != "" {
			t.Fatalf("a pod gets room that is held: %s", got)
		}
		for i := range 3 {
			w.Set(member(fmt.Sprintf("e%d", i), "app", "executor", w.Now))
		}
		d := w.Cycle()
		if got := boundNames(d); got != "e0 e1 e2" {
			t.Fatalf("bound are %q", got)
		}
		if got := heldNodes(w.JobNamed("app")); got != "" {
			t.Errorf("still held are %q", got)
		}
		w.StartBound()
		w.Set(member("e3", "app", "executor", w.Now))
		if got := boundNames(w.Cycle()); got != "" {
			t.Errorf("a pod beyond the minimum finds room that is not there: %s", got)
		}
	})
	t.Run("all or nothing", func(t *testing.T) {
		w := twoNodes(t, 2).Set(filler("full", "other", "cpu=1", fixture.Birth))
		w.Bind()
		w.Set(application("app", "q", 3, ""), member("driver", "app", "driver", w.Now))
		if got := boundNames(w.Cycle()); got != "" {
			t.Fatalf("bound are %q", got)
		}
		if v := w.Verdict("app"); v == nil || !v.Code.LacksRoom() {
			t.Errorf("the verdict is %+v", v)
		}
		w.RemovePods("full")
		if got := boundNames(w.Cycle()); got != "driver" {
			t.Errorf("with room for all, bound are %q", got)
		}
	})
	t.Run("pods beyond the minimum are placed one by one", func(t *testing.T) {
		w := twoNodes(t, 3)
		w.Set(application("app", "q", 2, ""), member("driver", "app", "driver", w.Now))
		for i := range 4 {
			w.Set(member(fmt.Sprintf("e%d", i), "app", "executor", w.Now))
		}
		if got := boundNames(w.Cycle()); got != "driver e0 e1 e2 e3" {
			t.Errorf("bound are %q", got)
		}
		if got := heldNodes(w.JobNamed("app")); got != "" {
			t.Errorf("held are %q", got)
		}
	})
	t.Run("a pod of another size goes where it fits", func(t *testing.T) {
		w := twoNodes(t, 2).Set(fixture.Node("n3", "cpu=2"))
		w.Set(filler("first", "other", "cpu=2", fixture.Birth))
		w.Bind()
		w.Set(application("app", "q", 3, ""), member("driver", "app", "driver", w.Now))
		w.Bind()
		w.RemovePods("first")
		w.Set(member("large", "app", "executor", w.Now, fixture.Asks("cpu=2")))
		if got := boundNames(w.Cycle()); got != "large" {
			t.Fatalf("bound are %q", got)
		}
		if got := heldNodes(w.JobNamed("app")); len(strings.Fields(got)) != 2 {
			t.Errorf("held are %q", got)
		}
	})
	for name, change := range map[string]func(w *loop.Loop, node string){
		"a node that is gone is replaced":     func(w *loop.Loop, node string) { w.Remove(fixture.Node(node, "cpu=2")) },
		"a node that is cordoned is replaced": func(w *loop.Loop, node string) { w.Set(fixture.Node(node, "cpu=2", cordoned)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := twoNodes(t, 2)
			w.Set(application("app", "q", 2, ""), member("driver", "app", "driver", w.Now))
			w.Bind()
			gone := "n1"
			if w.TaskNamed("driver").Node.Name == "n1" {
				gone = "n2"
			}
			change(w, gone)
			w.Set(fixture.Node("n9", "cpu=2"))
			w.Cycle()
			if got := heldNodes(w.JobNamed("app")); strings.Contains(got, gone) || len(strings.Fields(got)) != 2 {
				t.Errorf("held are %q", got)
			}
			for i := range 2 {
				w.Set(member(fmt.Sprintf("e%d", i), "app", "executor", w.Now))
			}
			if got := boundNames(w.Cycle()); got != "e0 e1" {
				t.Errorf("bound are %q", got)
			}
		})
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func TestAGangWithStandInsHasNodesOfOthersVacated(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("q", fixture.Guaranteed("cpu=4")), fixture.Queue("other"))
	for i := range 4 {
		w.Set(runs(fmt.Sprintf("r%d", i), "other", "n1", "cpu=1", i))
	}
	w.Set(application("app", "q", 3, ""), member("driver", "app", "driver", w.Now))
	d := w.CycleAfter(time.Minute)
	if len(d.Plans) != 1 || len(d.Plans[0].Evictions) != 4 || len(d.Plans[0].Nominations) != 1 {
		t.Fatalf("planned is %s", loop.Describe(d))
	}
	w.RemovePods("r0", "r1", "r2")
	if got := boundNames(w.Cycle()); got != "" {
		t.Errorf("before all have left, bound are %q", got)
	}
	w.RemovePods("r3").Set(filler("else", "other", "cpu=1", w.Now))
	if got := boundNames(w.Cycle()); got != "driver" {
		t.Errorf("bound are %q", got)
	}
	if got := heldNodes(w.JobNamed("app")); got != "n1 n1 n1" {
		t.Errorf("held are %q", got)
	}
}

func TestAGangWithStandInsLeavesAsAWhole(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=2"), fixture.Queue("q"), fixture.Queue("owner", fixture.Guaranteed("cpu=4")))
	w.Set(application("app", "q", 3, ""), member("driver", "app", "driver", w.Now))
	w.Bind()
	on := w.TaskNamed("driver").Node.Name
	late := w.Now.Add(-time.Hour)
	for i, size := range []string{"cpu=2", "cpu=2"} {
		w.Set(filler(fmt.Sprintf("own%d", i), "owner", size, late))
	}
	d := w.Cycle()
	evicted := 0
	for _, p := range d.Plans {
		evicted += len(p.Evictions)
	}
	if evicted != 1 || len(d.Plans[0].Evictions) != 1 || d.Plans[0].Evictions[0].Pod.Name != "driver" {
		t.Fatalf("planned is %s", loop.Describe(d))
	}
	if got := heldNodes(w.JobNamed("app")); got != "" {
		t.Errorf("held are %q", got)
	}
	w.RemovePods("driver")
	w.Rest()
	for _, name := range []string{"own0", "own1"} {
		if n := w.TaskNamed(name).Node; n == nil {
			t.Errorf("%s has no node; the driver was on %s", name, on)
		}
	}
}

func TestAfterItsTimeoutAGangWaitsNoLonger(t *testing.T) {
	t.Run("Soft: its pods are scheduled as they are", func(t *testing.T) {
		w := twoNodes(t, 1)
		w.Set(application("app", "q", 3, "placeholderTimeoutInSeconds=120 gangSchedulingStyle=Soft"), member("driver", "app", "driver", w.Now))
		for _, pause := range []time.Duration{time.Second, 118 * time.Second} {
			if got := boundNames(w.CycleAfter(pause)); got != "" {
				t.Fatalf("bound are %q", got)
			}
		}
		if want := w.Now.Add(time.Second); !w.Result.Wake.Equal(want) {
			t.Errorf("the scheduler wakes at %s, the time is over at %s", w.Result.Wake, want)
		}
		d := w.CycleAfter(time.Second)
		if !slices.ContainsFunc(d.Awaits, func(a decision.GroupStandIns) bool { return strings.Contains(a.Record, `"isOver":true`) }) {
			t.Errorf("recorded is %+v", d.Awaits)
		}
		if got := boundNames(w.Cycle()); got != "driver" {
			t.Errorf("bound are %q", got)
		}
	})
	t.Run("Hard: its waiting pods fail, and the next one begins again", func(t *testing.T) {
		w := twoNodes(t, 1)
		group := application("app", "q", 3, "placeholderTimeoutInSeconds=10 gangSchedulingStyle=Hard")
		driver := member("driver", "app", "driver", w.Now)
		w.Set(group, driver).Cycle()
		d := w.CycleAfter(10 * time.Second)
		if len(d.Fails) != 1 || d.Fails[0].Pod.Name != "driver" || d.Fails[0].Reason != "ResourceReservationTimeout" {
			t.Fatalf("failed are %+v", d.Fails)
		}
		w.Set(fixture.Node("n3", "cpu=9"))
		if d := w.Cycle(); len(d.Fails) > 0 || boundNames(d) != "" {
			t.Fatalf("failed are %+v, bound are %s", d.Fails, boundNames(d))
		}
		if v := w.Verdict("app"); v == nil || v.Code != verdict.ResourceReservationTimeout {
			t.Errorf("the verdict is %+v", v)
		}
		driver = driver.DeepCopy()
		driver.Status.Phase = corev1.PodFailed
		w.Set(driver).Cycle()
		w.Set(member("driver2", "app", "driver", w.Now))
		if got := boundNames(w.Cycle()); got != "driver2" {
			t.Errorf("bound are %q", got)
		}
		if got := heldNodes(w.JobNamed("app")); len(strings.Fields(got)) != 3 {
			t.Errorf("held are %q", got)
		}
	})
	t.Run("places for pods that do not come are given up", func(t *testing.T) {
		w := twoNodes(t, 2)
		w.Set(application("app", "q", 3, "placeholderTimeoutInSeconds=60"), member("driver", "app", "driver", w.Now))
		w.Bind()
		w.Set(filler("else", "other", "cpu=1", w.Now), member("e0", "app", "executor", w.Now))
		if got := boundNames(w.CycleAfter(59 * time.Second)); got != "e0" {
			t.Fatalf("bound are %q", got)
		}
		w.StartBound()
		w.Cycle()
		if got := boundNames(w.Cycle()); got != "else" {
			t.Errorf("bound are %q", got)
		}
	})
}

func TestAnotherSchedulerFindsThePlacesThatAreHeld(t *testing.T) {
	w := twoNodes(t, 2)
	group := application("app", "q", 3, "placeholderTimeoutInSeconds=60")
	driver := member("driver", "app", "driver", w.Now)
	w.Set(group, driver)
	d := w.Cycle()
	if len(d.Awaits) != 1 || d.Awaits[0].Job != cluster.GroupID(fixture.Key("app")) {
		t.Fatalf("recorded is %+v", d.Awaits)
	}
	held := heldNodes(w.JobNamed("app"))
	group = group.DeepCopy()
	group.Annotations[schedulingv1beta1.StandInsKey] = d.Awaits[0].Record
	driver = driver.DeepCopy()
	driver.Spec.NodeName, driver.Status.Phase = d.Binds[0].Node, corev1.PodRunning

	other := twoNodes(t, 2)
	other.Now = w.Now
	other.Set(filler("else", "other", "cpu=1", fixture.Birth), driver, group)
	if d := other.Cycle(); boundNames(d) != "" || len(d.Awaits) != 0 {
		t.Errorf("bound are %q, recorded is %+v", boundNames(d), d.Awaits)
	}
	if got := heldNodes(other.JobNamed("app")); got != held {
		t.Errorf("held are %q, were %q", got, held)
	}
	other.CycleAfter(time.Minute)
	if got := boundNames(other.Cycle()); got != "else" {
		t.Errorf("after the time since the other placed the gang, bound are %q", got)
	}
}

// limited is a quota of a namespace.
func limited(hard, used string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Key("app").Namespace, Name: "limit", UID: "limit"},
		Spec: corev1.ResourceQuotaSpec{Hard: fixture.List(hard)}, Status: corev1.ResourceQuotaStatus{Hard: fixture.List(hard), Used: fixture.List(used)}}
}

func TestNoNodeIsHeldForPodsThatTheQuotaForbids(t *testing.T) {
	w := twoNodes(t, 2)
	w.Set(limited("cpu=2", "cpu=1"), application("app", "q", 3, ""), member("driver", "app", "driver", w.Now))
	if d := w.Cycle(); heldNodes(w.JobNamed("app")) != "" || boundNames(d) != "" {
		t.Errorf("held are %q, bound are %q", heldNodes(w.JobNamed("app")), boundNames(d))
	}
	const says = "refused by ResourceQuota work/limit: cpu: needs 3, has 1, short by 2; of cpu 2, 1 used"
	if v := w.JobNamed("app").Verdict; v == nil || v.Code != verdict.Refused || v.Sentence() != says {
		t.Errorf("the verdict is %+v", v)
	}
	w.Set(limited("cpu=9", "cpu=1"))
	if w.Cycle(); heldNodes(w.JobNamed("app")) == "" {
		t.Error("nothing is held that the quota allows")
	}
	w.Set(limited("cpu=2", "cpu=1"))
	if w.CycleAfter(5 * time.Second); heldNodes(w.JobNamed("app")) == "" {
		t.Error("what is held is given up at once, though a quota may show a pod before the pod itself")
	}
	w.CycleAfter(5 * time.Second)
	if w.CycleAfter(5 * time.Second); heldNodes(w.JobNamed("app")) != "" {
		t.Errorf("held beyond the quota are %q", heldNodes(w.JobNamed("app")))
	}
}

func TestPodsThatDoNotExistEvictNoneBeyondTheQuota(t *testing.T) {
	w := twoNodes(t, 1)
	w.Set(limited("requests.cpu=100m", "requests.cpu=100m"), application("app", "q", 3, ""), member("driver", "app", "driver", w.Now))
	w.Cycle()
	for _, t2 := range w.JobNamed("app").Tasks() {
		if t2.IsStandIn {
			t.Errorf("%s stands in for a pod that the quota forbids", t2.Key())
		}
	}
}

func TestNodesAreHeldNoLongerThanTheSchedulerAllows(t *testing.T) {
	w := twoNodes(t, 2)
	w.Set(application("app", "q", 3, "placeholderTimeoutInSeconds=999999999"), member("driver", "app", "driver", w.Now))
	w.Bind()
	if heldNodes(w.JobNamed("app")) == "" {
		t.Fatal("nothing is held")
	}
	w.CycleAfter(15 * time.Minute)
	if w.Cycle(); heldNodes(w.JobNamed("app")) != "" {
		t.Errorf("held after 15 minutes are %q", heldNodes(w.JobNamed("app")))
	}
}

func TestARecordOfOnesOwnHoldsNoNode(t *testing.T) {
	w := twoNodes(t, 2)
	group := application("app", "q", 3, "")
	group.Annotations[schedulingv1beta1.StandInsKey] = `{"since":"2100-01-01T00:00:00Z","nodes":{"executor":["n1","n2"],"driver":["n1"]}}`
	group.Status.Phase = schedulingv1beta1.PodGroupPending
	w.Set(group, member("driver", "app", "driver", w.Now))
	w.Bind()
	if since := w.JobNamed("app").Expected.Since; since.After(w.Now) {
		t.Errorf("the gang has its nodes since %v, and it is %v", since, w.Now)
	}
}

// What a stand-in has reserved of devices is in no record. So one that needs devices gets its node, and them, again
// after a restart.
func TestStandInsHaveTheirDevicesAfterARestart(t *testing.T) {
	const gpu = "example.com/gpu"
	objects := func(w *loop.Loop) *loop.Loop {
		return w.Set(fixture.DevicesOf("gpu", gpu), fixture.Slice("n1", 1), fixture.Slice("n2", 1))
	}
	needy := application("app", "q", 2, "")
	needy.Annotations[yunikorn.TaskGroupsKey] = `[{"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}}, {"name": "executor", "minMember": 2, "minResource": {"cpu": "1", "` + gpu + `": "1"}}]`
	rival := func(w *loop.Loop) *loop.Loop {
		return w.Set(fixture.Group("rival", "other", 1), fixture.Pod("rival", fixture.In("rival"), fixture.Asks("cpu=1 "+gpu+"=1")))
	}
	w := objects(twoNodes(t, 8))
	w.Set(needy, member("driver", "app", "driver", w.Now))
	w.Bind()
	if held := heldNodes(w.JobNamed("app")); len(strings.Fields(held)) != 2 {
		t.Fatalf("held are %q", held)
	}
	if bound := rival(w).Bind(); bound["rival"] != "" {
		t.Fatalf("before the restart the devices of the stand-ins go to another: %v", bound)
	}

	again := objects(twoNodes(t, 8))
	recorded := needy.DeepCopy()
	recorded.Status.Phase = schedulingv1beta1.PodGroupInqueue
	recorded.Annotations[schedulingv1beta1.StandInsKey] = `{"since":"` + again.Now.UTC().Format(time.RFC3339) + `","nodes":{"executor":["n1","n2"]}}`
	again.Set(recorded, member("driver", "app", "driver", again.Now, fixture.On("n1")))
	if bound := rival(again).Bind(); bound["rival"] != "" {
		t.Errorf("after the restart they go to another: %v", bound)
	}
	again.Cycle()
	if held := heldNodes(again.JobNamed("app")); len(strings.Fields(held)) != 2 {
		t.Errorf("after the restart held are %q", held)
	}
}
