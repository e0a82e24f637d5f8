package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// running is a job that has one pod, which runs.
func running(name, queue, asks string) []runtime.Object {
	return []runtime.Object{fixture.Group(name, queue, 1, fixture.Wanting(asks)),
		fixture.Pod(name+"-0", fixture.In(name), fixture.Asks(asks), fixture.On("n1"))}
}

// pending is a job that was admitted and has one pod, which waits.
func pending(name, queue, asks string) []runtime.Object {
	return []runtime.Object{fixture.Group(name, queue, 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks(asks))}
}

// pendingAdmission is a job that was not admitted yet.
func pendingAdmission(name, queue, minimum string) runtime.Object {
	return fixture.Group(name, queue, 1, fixture.PendingAdmission, fixture.Wanting(minimum))
}

func share(w *harness.Model, s *framework.Session, queue string) (corev1.ResourceList, resources.Ratio) {
	got, _ := s.Policy.Share(w.Queue(queue))
	return w.Resources.List(got.Deserved.Vector()), got.Share
}

func TestTheShareIsTheWorstRatioToWhatIsDeserved(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16 memory=32Gi"),
		fixture.Queue("qa", fixture.Deserving("cpu=2 memory=2Gi")), fixture.Queue("qb", fixture.Deserving("cpu=2 memory=2Gi")),
		fixture.Queue("qc", fixture.Deserving("cpu=2 memory=4Gi")), fixture.Queue("cpu-only", fixture.Deserving("cpu=4")),
		fixture.Queue("without"), fixture.Queue("guaranteed-only", fixture.Guaranteed("cpu=5")),
		fixture.Queue("guaranteed", fixture.Deserving("cpu=1"), fixture.Guaranteed("cpu=2")),
		fixture.Queue("capped", fixture.Deserving("cpu=8"), fixture.Capped("cpu=4")),
		fixture.Queue("no-right-to-devices", fixture.Deserving("cpu=8 nvidia.com/gpu=0")))
	w.Set(fixture.Node("n2", "nvidia.com/gpu=1"))
	for queue, asks := range map[string]string{"qa": "cpu=1 memory=1Gi", "qb": "cpu=3 memory=2Gi", "qc": "cpu=1 memory=3Gi",
		"cpu-only": "cpu=1 memory=9Gi", "without": "cpu=1", "guaranteed-only": "cpu=1", "guaranteed": "cpu=1", "capped": "cpu=1",
		"no-right-to-devices": "nvidia.com/gpu=1"} {
		w.Set(running("in-"+queue, queue, asks))
	}
	s := w.Open()
	for queue, want := range map[string]resources.Ratio{"qa": {Num: 1, Den: 2}, "qb": {Num: 3, Den: 2}, "qc": {Num: 3, Den: 4},
		"cpu-only": {Num: 1, Den: 4}, "without": {Num: 1, Den: 1}, "guaranteed-only": {Num: 1, Den: 5}, "guaranteed": {Num: 1, Den: 2}, "capped": {Num: 1, Den: 4},
		"no-right-to-devices": {Num: 1, Den: 0}} {
		if _, got := share(w, s, queue); got.Compare(want) != 0 {
			t.Errorf("the share of %s is %v, should be %v", queue, got, want)
		}
	}
}

func TestQueuesAreServedByPriorityShareAndWhatTheyDeserve(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=32"), fixture.Queue("nothing"),
		fixture.Queue("as-deserved", fixture.Deserving("cpu=1")), fixture.Queue("half", fixture.Deserving("cpu=2")),
		fixture.Queue("quarter", fixture.Deserving("cpu=4")), fixture.Queue("double", fixture.Deserving("cpu=500m")),
		fixture.Queue("high", fixture.Deserving("cpu=100m"), fixture.Ranking(7)))
	order := []string{"high", "quarter", "half", "as-deserved", "nothing", "double"}
	for _, queue := range order {
		w.Set(running("in-"+queue, queue, "cpu=1"))
	}
	s := w.Open()
	for i, queue := range order {
		for _, later := range order[i+1:] {
			if a, b := w.Queue(queue), w.Queue(later); s.CompareQueues(a, b) >= 0 || s.CompareQueues(b, a) <= 0 {
				t.Errorf("%s should be served before %s", queue, later)
			}
		}
	}
}

func TestAPodIsPlacedWithinTheCeilingOfItsQueue(t *testing.T) {
	for name, test := range map[string]struct {
		queues []runtime.Object
		pod    []runtime.Object
		want   *verdict.Verdict
	}{
		"which is its capability": {
			[]runtime.Object{fixture.Queue("q", fixture.Capped("cpu=3"))}, pending("j", "q", "cpu=2"),
			&verdict.Verdict{Code: verdict.OverCapability, Subject: "q", Help: verdict.HelpQueue,
				Shortages: []verdict.Shortage{{Resource: "cpu", Need: 2000, Have: 1000}}}},
		"even if it is over it in something else": {
			[]runtime.Object{fixture.Queue("q", fixture.Capped("cpu=4 memory=1Gi"))}, pending("j", "q", "cpu=2"), nil},
		"and less what others are guaranteed": {
			[]runtime.Object{fixture.Queue("q"), fixture.Queue("safe", fixture.Guaranteed("cpu=14"))}, pending("j", "q", "cpu=1"),
			&verdict.Verdict{Code: verdict.OverCluster, Subject: "q", Help: verdict.HelpQueue | verdict.HelpNode,
				Shortages: []verdict.Shortage{{Resource: "cpu", Need: 1000, Have: 0}},
				Detail:    "its limit is the size of the cluster less what other queues are guaranteed"}},
		"but with what it is guaranteed itself": {
			[]runtime.Object{fixture.Queue("q", fixture.Guaranteed("cpu=1")), fixture.Queue("safe", fixture.Guaranteed("cpu=13"))},
			pending("j", "q", "cpu=1"), nil},
		"all of it, though the cluster has less than all guarantees": {
			[]runtime.Object{fixture.Queue("q", fixture.Guaranteed("cpu=3")), fixture.Queue("safe", fixture.Guaranteed("cpu=20"))},
			pending("j", "q", "cpu=1"), nil},
		"or never": {
			[]runtime.Object{fixture.Queue("q", fixture.Capped("cpu=3"))}, pending("j", "q", "cpu=4 memory=1Gi"),
			&verdict.Verdict{Code: verdict.TooLargeForQueue, Subject: "q", Help: verdict.HelpQueue | verdict.HelpJob,
				Shortages: []verdict.Shortage{{Resource: "cpu", Need: 4000, Have: 3000}}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16 memory=32Gi")).Set(test.queues)
			w.Set(running("held", "q", "cpu=2 memory=2Gi")).Set(test.pod)
			if diff := cmp.Diff(test.want, w.Open().MayAllocate(w.TaskNamed("j-0"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatOnlyOtherSchedulersKeepOutIsNotTooLarge(t *testing.T) {
	other := fixture.Pod("other", fixture.Asks("cpu=6"), fixture.On("n1"))
	other.Spec.SchedulerName = "default-scheduler"
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=8"), fixture.Queue("q"), fixture.Queue("capped", fixture.Capped("cpu=3")), other).
		Set(pending("large", "q", "cpu=4")).Set(pending("huge", "q", "cpu=9")).Set(pending("above", "capped", "cpu=4"))
	s := w.Open()
	const size = "its limit is the size of the cluster less what other queues are guaranteed, and less what pods hold that are in no queue"
	for task, want := range map[string]string{
		"large-0": "OverCluster q: cpu: needs 4, has 2, short by 2; " + size,
		"huge-0":  "TooLargeForQueue q: cpu: needs 9, has 2, short by 7; " + size,
		"above-0": "TooLargeForQueue capped: cpu: needs 4, has 2, short by 2; " + size,
	} {
		if diff := cmp.Diff(want, harness.Describe(s.MayAllocate(w.TaskNamed(task)))); diff != "" {
			t.Errorf("task %s: %s", task, diff)
		}
	}
}

func TestQueuesPendingAdmission(t *testing.T) {
	t.Run("admission looks at min resources", func(t *testing.T) {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=6 memory=6Gi"), fixture.Queue("q", fixture.Capped("cpu=2 memory=2Gi")),
			pendingAdmission("cpu", "q", "cpu=1"), pendingAdmission("memory", "q", "cpu=1 memory=1Gi"), pendingAdmission("nothing", "q", ""))
		w.Set(running("held", "q", "cpu=1 memory=3Gi"))
		s := w.Open()
		for job, want := range map[string]string{"cpu": "", "nothing": "",
			"memory": "OverCapability q: memory: needs 1Gi, has 0, short by 1Gi"} {
			if diff := cmp.Diff(want, harness.Describe(s.MayEnqueue(w.JobNamed(job)))); diff != "" {
				t.Errorf("job %s: %s", job, diff)
			}
		}
	})

	t.Run("a job too large for its queue is not admitted", func(t *testing.T) {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16 memory=16Gi"), fixture.Queue("c1", fixture.Capped("cpu=1 memory=1Gi")),
			pendingAdmission("j", "c1", "cpu=8 memory=8Gi"))
		want := "TooLargeForQueue c1: cpu: needs 8, has 1, short by 7: memory: needs 8Gi, has 1Gi, short by 7Gi"
		if diff := cmp.Diff(want, harness.Describe(w.Open().MayEnqueue(w.JobNamed("j")))); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("one of two children is admitted below the parent", func(t *testing.T) {
		w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(fixture.Node("n1", "cpu=8 memory=8Gi"),
			fixture.Queue("q6", fixture.Capped("cpu=2 memory=4Gi")), fixture.Queue("q61", fixture.Below("q6")), fixture.Queue("q62", fixture.Below("q6")),
			pendingAdmission("pg10", "q61", "cpu=2 memory=4Gi"), pendingAdmission("pg11", "q62", "cpu=2 memory=4Gi"))
		s := w.Open()
		if v := s.MayEnqueue(w.JobNamed("pg10")); v != nil {
			t.Fatal(harness.Describe(v))
		}
		s.Admit(w.JobNamed("pg10"))
		want := "OverCapability q6: cpu: needs 2, has 0, short by 2: memory: needs 4Gi, has 0, short by 4Gi"
		if diff := cmp.Diff(want, harness.Describe(s.MayEnqueue(w.JobNamed("pg11")))); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("the highest queue that is full is named", func(t *testing.T) {
		w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(fixture.Node("n1", "cpu=8"), fixture.Queue("top", fixture.Capped("cpu=2")),
			fixture.Queue("middle", fixture.Below("top")), fixture.Queue("leaf", fixture.Below("middle"), fixture.Capped("cpu=1")))
		w.Set(pending("j", "leaf", "cpu=3")).Set(pending("k", "leaf", "cpu=2"))
		s := w.Open()
		for task, want := range map[string]string{
			"j-0": "TooLargeForQueue top: cpu: needs 3, has 2, short by 1",
			"k-0": "TooLargeForQueue leaf: cpu: needs 2, has 1, short by 1",
		} {
			if diff := cmp.Diff(want, harness.Describe(s.MayAllocate(w.TaskNamed(task)))); diff != "" {
				t.Errorf("task %s: %s", task, diff)
			}
		}
	})
}

func TestGuaranteesOfSiblingsAndOfTheirChildrenAreKeptFree(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(fixture.Node("n1", "cpu=20"), fixture.Queue("a"),
		fixture.Queue("b", fixture.Capped("cpu=10")), fixture.Queue("b1", fixture.Below("b"), fixture.Guaranteed("cpu=3")),
		fixture.Queue("b2", fixture.Below("b"), fixture.Deserving("cpu=9")))
	w.Set(pending("ja", "a", "cpu=20")).Set(pending("jb", "b2", "cpu=8")).Set(pending("jc", "b1", "cpu=10"))
	s := w.Open()
	// Three of the twenty are b1's: a may have seventeen, b its ten, and of them b2 seven.
	for task, have := range map[string]int64{"ja-0": 17000, "jb-0": 7000} {
		v := s.MayAllocate(w.TaskNamed(task))
		if v == nil || len(v.Shortages) != 1 || v.Shortages[0].Have != have {
			t.Errorf("task %s: %v, should have %d", task, v, have)
		}
	}
	if v := s.MayAllocate(w.TaskNamed("jc-0")); v != nil {
		t.Error(harness.Describe(v))
	}
	if deserved, _ := share(w, s, "b2"); deserved.Cpu().Value() != 7 {
		t.Errorf("b2 deserves %v, which is not the seven it may have", deserved)
	}
}

func TestAJobInAQueueWithChildrenIsRefusedAndNoOther(t *testing.T) {
	objects := []runtime.Object{fixture.Node("n1", "cpu=8"), fixture.Queue("parent"), fixture.Queue("child", fixture.Below("parent")), fixture.Queue("other")}
	for _, queue := range []string{"parent", "child", "other"} {
		objects = append(objects, pending("in-"+queue, queue, "cpu=1")...)
	}
	w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(objects)
	s := w.Open()
	want := &verdict.Verdict{Code: verdict.QueueNotLeaf, Subject: "parent", Help: verdict.HelpQueue}
	if diff := cmp.Diff(want, w.JobNamed("in-parent").Verdict); diff != "" {
		t.Error(diff)
	}
	if len(s.Jobs(w.Queue("parent"))) != 0 || len(s.Jobs(w.Queue("child"))) != 1 || len(s.Jobs(w.Queue("other"))) != 1 {
		t.Error("not the jobs of the leaves, and they alone, are looked at")
	}
	if w = harness.ForPlugin(t, Factory(), "").Set(objects); len(w.Open().Queues()) != 3 {
		t.Error("without the hierarchy a queue with children is a queue like others")
	}
}

func TestABrokenQueueStopsNoOther(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(fixture.Node("n1", "cpu=8"), fixture.Queue("orphan", fixture.Below("nowhere"),
		fixture.Deserving("cpu=2"), fixture.Guaranteed("cpu=1")), fixture.Queue("x", fixture.Below("y")), fixture.Queue("y", fixture.Below("x")), fixture.Queue("fine"))
	w.Set(running("held", "orphan", "cpu=1")).Set(pending("a", "orphan", "cpu=1")).Set(pending("b", "x", "cpu=1")).
		Set(pending("c", "fine", "cpu=7"))
	s := w.Open()
	if got := s.Queues(); len(got) != 1 || got[0].Name != "fine" {
		t.Errorf("queues %v are looked at", got)
	}
	if v := s.MayAllocate(w.TaskNamed("c-0")); v != nil {
		t.Error(harness.Describe(v))
	}
	if deserved, got := share(w, s, "orphan"); got.Compare(resources.Ratio{Num: 1, Den: 2}) != 0 || deserved.Cpu().Value() != 2 {
		t.Errorf("the orphan is shown with %v and %v", deserved, got)
	}
}

func TestTheRootDeservesWhatItsChildrenDo(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(fixture.Node("n1", "cpu=8 memory=8Gi"), fixture.Queue("root"),
		fixture.Queue("a", fixture.Deserving("cpu=2")), fixture.Queue("a1", fixture.Below("a"), fixture.Deserving("cpu=1")), fixture.Queue("b", fixture.Deserving("cpu=4 memory=1Gi")))
	w.Set(running("j", "a1", "cpu=3"))
	deserved, got := share(w, w.Open(), "root")
	if diff := cmp.Diff(fixture.List("cpu=6 memory=1Gi"), deserved); diff != "" {
		t.Error(diff)
	}
	if got.Float() != 0.5 {
		t.Errorf("its share is %v, should be a half", got)
	}
}

func TestBranchesAreComparedWhereTheyPart(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(fixture.Node("n1", "cpu=32"),
		fixture.Queue("rich", fixture.Deserving("cpu=4")), fixture.Queue("poor", fixture.Deserving("cpu=4")),
		fixture.Queue("rich-and-idle", fixture.Below("rich"), fixture.Deserving("cpu=2")),
		fixture.Queue("rich-and-busy", fixture.Below("rich"), fixture.Deserving("cpu=2")),
		fixture.Queue("poor-and-busy", fixture.Below("poor"), fixture.Deserving("cpu=1")),
		fixture.Queue("urgent", fixture.Below("rich"), fixture.Ranking(1)))
	w.Set(running("j", "rich-and-busy", "cpu=3")).Set(running("k", "poor-and-busy", "cpu=2"))
	s := w.Open()
	// The leaf that holds twice its share is before the idle one, because its parent is further below.
	order := []string{"urgent", "poor-and-busy", "rich-and-idle", "rich-and-busy", "poor", "rich"}
	for i, queue := range order {
		for _, later := range order[i+1:] {
			if a, b := w.Queue(queue), w.Queue(later); s.CompareQueues(a, b) >= 0 || s.CompareQueues(b, a) <= 0 {
				t.Errorf("%s should be served before %s", queue, later)
			}
		}
	}
}

func TestArgumentsForLaterAreAcceptedAndLeaveANotice(t *testing.T) {
	parsed, err := conf.Parse([]byte(configured("ancestorReclaimLevel: 1", "capacity.DynamicResourceAllocationEnable: true")), catalogue())
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Notices) != 1 || !strings.Contains(parsed.Notices[0].Text, "capacity.DynamicResourceAllocationEnable") {
		t.Errorf("notices are %v, should be one, for the argument of resource claims", parsed.Notices)
	}
}

func TestALevelBelowZeroIsAnError(t *testing.T) {
	parsed, err := conf.Parse([]byte(configured("ancestorReclaimLevel: -1")), catalogue())
	if err != nil {
		t.Fatal(err)
	}
	_, err = newPlugin(conf.Switches{}, parsed.Tiers[0].Plugins[0].Arguments)
	if err == nil || err.Error() != "ancestorReclaimLevel is -1: it must not be below 0" {
		t.Errorf("the error is %v", err)
	}
}

func catalogue() conf.Catalogue {
	return conf.Catalogue{Plugins: map[string]conf.Spec{Name: Factory().Spec}, Actions: map[string]conf.Spec{"allocate": {}}}
}

func configured(arguments ...string) string {
	return "actions: allocate\ntiers:\n- plugins:\n  - name: capacity\n    arguments:\n      " + strings.Join(arguments, "\n      ")
}

func benchmarkSession(b *testing.B, on ...conf.Switch) (*harness.Model, *framework.Session) {
	w := harness.ForPlugin(b, Factory(), "", on...)
	for i := range 1000 {
		w.Set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=64 memory=256Gi nvidia.com/gpu=8"))
	}
	for i := range 1000 {
		name, options := fmt.Sprintf("q%d", i), []fixture.QueueOption{fixture.Deserving("cpu=32 memory=64Gi"), fixture.Guaranteed("cpu=1")}
		if i >= 10 {
			options = append(options, fixture.Below(fmt.Sprintf("q%d", i/10)))
		}
		w.Set(fixture.Queue(name, options...))
		if i >= 100 {
			w.Set(pending("in-"+name, name, "cpu=1 memory=1Gi nvidia.com/gpu=1"))
		}
	}
	return w, w.Open()
}

func BenchmarkOpenSessionWithAThousandQueues(b *testing.B) {
	for _, hierarchical := range []bool{false, true} {
		b.Run(fmt.Sprintf("hierarchical=%t", hierarchical), func(b *testing.B) {
			_, s := benchmarkSession(b)
			p := &plugin{hierarchical: hierarchical}
			b.ReportAllocs()
			for b.Loop() {
				p.OpenSession(s)
			}
		})
	}
}

func BenchmarkMayAllocate(b *testing.B) {
	w, s := benchmarkSession(b, conf.EnableHierarchy)
	t := w.TaskNamed("in-q999-0")
	b.ReportAllocs()
	for b.Loop() {
		if v := s.MayAllocate(t); v != nil {
			b.Fatal(harness.Describe(v))
		}
	}
}

func BenchmarkOrderingAThousandQueues(b *testing.B) {
	_, s := benchmarkSession(b, conf.EnableHierarchy)
	queues := slices.Clone(s.Queues())
	b.ReportAllocs()
	for b.Loop() {
		slices.SortFunc(queues, s.CompareQueues)
		slices.Reverse(queues)
	}
}
