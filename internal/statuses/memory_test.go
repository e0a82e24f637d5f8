package statuses_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/statuses"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// waitingJob is a loop in which the status of a job, of its pod and of its queue was written, none of which the API
// server shows.
func waitingJob(t *testing.T) *loop.Loop {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=2"))
	w.Set(fixture.Gang("runs", "default", 1, 1))
	w.Bind()
	w.Set(fixture.Gang("waits", "default", 1, 1, fixture.Asks("cpu=2")))
	d := w.Cycle()
	if len(d.Groups) != 2 || len(d.Pods) != 1 {
		t.Fatalf("of two jobs, one of which waits, %d statuses of PodGroups and %d of pods are written", len(d.Groups), len(d.Pods))
	}
	if d := w.Cycle(); !d.IsEmpty() {
		t.Fatalf("what was written is written again: %+v", d)
	}
	return w
}

// writes is how many statuses of the job that waits, of its pod and of its queue are written in two cycles.
func writes(w *loop.Loop) (group, pod, queue int) {
	for range 2 {
		d := w.Cycle()
		count := func(is bool, of *int) {
			if is {
				*of++
			}
		}
		for _, g := range d.Groups {
			count(g.Job.Name == "waits", &group)
		}
		for _, p := range d.Pods {
			count(p.Pod.Name == "waits-0", &pod)
		}
		for _, q := range d.Queues {
			count(q.Queue == "default", &queue)
		}
	}
	return group, pod, queue
}

func TestAStatusIsWrittenOnceForEachObject(t *testing.T) {
	another := func(g *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
		g.UID = "another"
		return g
	}
	newPod := func(uid types.UID) *corev1.Pod {
		p := fixture.Pod("waits-0", fixture.In("waits"), fixture.As("worker", 0), fixture.Asks("cpu=2"))
		p.UID = uid
		return p
	}
	group := func() *schedulingv1beta1.PodGroup { return fixture.Group("waits", "default", 1) }
	for name, test := range map[string]struct {
		happens           func(w *loop.Loop)
		group, pod, queue int
	}{
		"nothing happens":                  {func(w *loop.Loop) {}, 0, 0, 0},
		"the objects are shown once more":  {func(w *loop.Loop) { w.Set(group(), newPod("waits-0-uid"), fixture.Queue("default")) }, 0, 0, 0},
		"a PodGroup takes its name":        {func(w *loop.Loop) { w.Set(another(group())) }, 1, 0, 0},
		"the PodGroup goes and comes back": {func(w *loop.Loop) { w.Remove(group()).Set(group()) }, 1, 0, 0},
		"another comes when it is gone":    {func(w *loop.Loop) { w.Remove(group()).Set(another(group())) }, 1, 0, 0},
		"a pod takes its pod's name":       {func(w *loop.Loop) { w.Set(newPod("another")) }, 0, 1, 0},
		"its pod goes and comes back":      {func(w *loop.Loop) { w.RemovePods("waits-0").Set(newPod("another")) }, 0, 1, 0},
		"a queue takes its queue's name": {func(w *loop.Loop) {
			q := fixture.Queue("default")
			q.UID = "another"
			w.Set(q)
		}, 0, 0, 1},
		"its queue goes and comes back": {func(w *loop.Loop) { w.Remove(fixture.Queue("default")).Set(fixture.Queue("default")) }, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := waitingJob(t)
			test.happens(w)
			if group, pod, queue := writes(w); group != test.group || pod != test.pod || queue != test.queue {
				t.Errorf("written are %d statuses of its PodGroup, %d of its pod, %d of its queue; want %d, %d, %d",
					group, pod, queue, test.group, test.pod, test.queue)
			}
		})
	}
}

// While a job is of another scheduler, that one writes the status of its PodGroup. When the job comes back, what it
// finds there counts.
func TestAStatusIsWrittenAgainForAJobThatComesBack(t *testing.T) {
	w := waitingJob(t)
	theirs := fixture.Group("waits", "default", 1)
	theirs.Annotations, theirs.Generation = map[string]string{schedulingv1beta1.SchedulerNameKey: "second"}, 2
	w.Set(theirs)
	if group, _, _ := writes(w); group != 0 {
		t.Errorf("%d statuses are written of a PodGroup of another scheduler", group)
	}
	mine := theirs.DeepCopy()
	mine.Annotations, mine.Generation = nil, 3
	w.Set(mine)
	if group, _, _ := writes(w); group != 1 {
		t.Errorf("when the job comes back, %d statuses are written", group)
	}
}

// A process that starts knows only what the API server shows.
func TestAProcessThatStartsWritesWhatIsNotShown(t *testing.T) {
	before := waitingJob(t)
	group, pod, queue := fixture.Group("waits", "default", 1), before.Task(fixture.Key("waits-0")).Pod.DeepCopy(), fixture.Queue("default")
	next := loop.New(t, "").Set(fixture.Node("n1", "cpu=2"), fixture.Group("runs", "default", 1), before.Task(fixture.Key("runs-0")).Pod, group, pod)
	if group, pod, queue := writes(next); group != 1 || pod != 1 || queue != 1 {
		t.Errorf("of what is not shown %d statuses of a PodGroup, %d of its pod, %d of its queue are written", group, pod, queue)
	}
	group.Status = before.Groups[cluster.GroupID(fixture.Key("waits"))].Status
	queue.Status.Allocated = fixture.List("cpu=1 pods=1")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "NotEnoughResources; see the status of PodGroup waits"}}
	third := loop.New(t, "").Set(queue, fixture.Node("n1", "cpu=2"), fixture.Group("runs", "default", 1), before.Task(fixture.Key("runs-0")).Pod, group, pod)
	if group, pod, queue := writes(third); group+pod+queue != 0 {
		t.Errorf("of what is shown %d statuses of a PodGroup, %d of its pod, %d of its queue are written", group, pod, queue)
	}
}

// A plan's record goes into the status that the PodGroup will have: one that is shown late must not win.
func TestAPlanIsRecordedInTheStatusThatWasWrittenLast(t *testing.T) {
	w := loop.New(t, "{actions: \"enqueue, allocate, preempt\", tiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: predicates}]}]}")
	w.Set(fixture.PriorityClass("high", 1000), fixture.Node("n1", "cpu=2"), fixture.Group("low", "default", 1),
		fixture.Pod("low-0", fixture.In("low"), fixture.Asks("cpu=2"), fixture.On("n1"), fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")))
	high := fixture.Group("high", "default", 1, fixture.PendingAdmission)
	high.Spec.PriorityClassName = "high"
	w.Set(high)
	w.Cycle()
	w.Set(fixture.Pod("high-0", fixture.In("high"), fixture.Asks("cpu=2")))
	d := w.Cycle()
	if len(d.Plans) != 1 {
		t.Fatalf("decided is %+v, want one plan", d)
	}
	var last decision.GroupStatus
	for _, g := range d.Groups {
		if g.Job.Name == "high" {
			last = g
		}
	}
	if got := d.Plans[0].Group; got.Status.Phase != schedulingv1beta1.PodGroupInqueue || len(got.Status.Conditions) != len(last.Status.Conditions) {
		t.Errorf("the plan is recorded in %+v, want %+v", got.Status, last.Status)
	}
}

// A controller creates the pods of a job once it sees that the job is admitted, so that status must not wait for
// others.
func TestAStatusSaysWhetherPodsWaitForIt(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=8"))
	last := func(d *decision.Decisions) decision.GroupStatus {
		t.Helper()
		if len(d.Groups) == 0 {
			t.Fatal("no status is written")
		}
		return d.Groups[0]
	}
	w.Set(fixture.Group("own", "default", 2, fixture.PendingAdmission))
	if g := last(w.Cycle()); g.Status.Phase != schedulingv1beta1.PodGroupInqueue || g.AwaitsPods {
		t.Errorf("admitted without pods and without a controller: %+v, want one that no pod waits for", g)
	}
	group := fixture.Group("g", "default", 2, fixture.PendingAdmission)
	group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "g", UID: "job", Controller: ptr.To(true)}}
	w.Set(group)
	if g := last(w.Cycle()); g.Status.Phase != schedulingv1beta1.PodGroupInqueue || !g.AwaitsPods {
		t.Errorf("admitted without pods: %+v, want one that pods wait for", g)
	}
	w.Set(fixture.Pod("g-0", fixture.In("g"), fixture.Asks("cpu=9")), fixture.Pod("g-1", fixture.In("g")))
	w.Now = w.Now.Add(statuses.ArrivalPause)
	if g := last(w.Cycle()); g.Status.Phase != schedulingv1beta1.PodGroupInqueue || g.AwaitsPods {
		t.Errorf("admitted with all pods: %+v, want one that no pod waits for", g)
	}
}
