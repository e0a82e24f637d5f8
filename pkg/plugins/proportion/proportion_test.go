package proportion

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// wanting is a job of a queue with some pods that wait.
func wanting(queue string, pods int, asks string) []runtime.Object {
	name := "of-" + queue
	objects := []runtime.Object{fixture.Group(name, queue, 1)}
	for i := range pods {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", queue, i), fixture.In(name), fixture.Asks(asks)))
	}
	return objects
}

// holding is a job of a queue with some pods that run.
func holding(queue string, pods int, asks, node string) []runtime.Object {
	objects := wanting(queue, pods, asks)
	for _, object := range objects[1:] {
		fixture.On(node)(object.(*corev1.Pod))
	}
	return objects
}

func youngest(q *schedulingv1beta1.Queue) { q.CreationTimestamp.Time = fixture.Birth.Add(time.Hour) }

// deserved says what a queue deserves of one resource.
func deserved(w *harness.Model, s *framework.Session, queue string, name corev1.ResourceName) int64 {
	d, _ := w.Resources.Find(name)
	share, _ := s.Policy.Share(w.Queue(queue))
	return share.Deserved.Vector().At(d)
}

func TestQueuesDeserve(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	for name, test := range map[string]struct {
		objects  [][]runtime.Object
		resource corev1.ResourceName
		want     map[string]int64
	}{
		"by weight, all of the cluster": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=12"), fixture.Queue("q1", fixture.Weighing(1)),
				fixture.Queue("q2", fixture.Weighing(2)), fixture.Queue("q3", fixture.Weighing(3))},
				wanting("q1", 1, "cpu=2"), wanting("q2", 5, "cpu=2"), wanting("q3", 5, "cpu=2")},
			"cpu", map[string]int64{"q1": 2000, "q2": 4000, "q3": 6000}},
		"no more than they want": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=3"), fixture.Queue("q1"), fixture.Queue("q2")},
				holding("q1", 3, "cpu=1", "n1"), wanting("q2", 1, "cpu=1")},
			"cpu", map[string]int64{"q1": 2000, "q2": 1000}},
		"no more than their capability": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=12"), fixture.Queue("q1", fixture.Capped("cpu=1")), fixture.Queue("q2")},
				wanting("q1", 9, "cpu=1"), wanting("q2", 9, "cpu=1")},
			"cpu", map[string]int64{"q1": 1000, "q2": 9000}},
		"what they are guaranteed, which the others pay for": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=10"), fixture.Queue("q1", fixture.Guaranteed("cpu=8")), fixture.Queue("q2")},
				wanting("q1", 10, "cpu=1"), wanting("q2", 10, "cpu=1")},
			"cpu", map[string]int64{"q1": 8000, "q2": 2000}},
		"what they are guaranteed while they have no jobs": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=10"), fixture.Queue("q1", fixture.Guaranteed("cpu=4")),
				fixture.Queue("q2"), fixture.Queue("q3")},
				wanting("q2", 9, "cpu=1"), wanting("q3", 9, "cpu=1")},
			"cpu", map[string]int64{"q1": 4000, "q2": 3000, "q3": 3000}},
		"nothing without jobs": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=10"), fixture.Queue("q1", fixture.Weighing(9)), fixture.Queue("q2")},
				wanting("q2", 20, "cpu=1")},
			"cpu", map[string]int64{"q1": 0, "q2": 10000}},
		"whole devices, and none is left over": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=99 nvidia.com/gpu=8"), fixture.Queue("q1"), fixture.Queue("q2"), fixture.Queue("q3")},
				wanting("q1", 5, "nvidia.com/gpu=1"), wanting("q2", 5, "nvidia.com/gpu=1"), wanting("q3", 5, "nvidia.com/gpu=1")},
			gpu, map[string]int64{"q1": 3, "q2": 3, "q3": 2}},
		"the unit that rounding leaves, the older first": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=99 nvidia.com/gpu=3"), fixture.Queue("a-younger", youngest), fixture.Queue("b-older")},
				wanting("a-younger", 5, "nvidia.com/gpu=1"), wanting("b-older", 5, "nvidia.com/gpu=1")},
			gpu, map[string]int64{"a-younger": 1, "b-older": 2}},
		"only what they hold while they are closed": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=10"), fixture.Queue("q1", fixture.Closed), fixture.Queue("q2")},
				holding("q1", 1, "cpu=1", "n1"), {fixture.Pod("late", fixture.In("of-q1"), fixture.Asks("cpu=9"))},
				wanting("q2", 20, "cpu=1")},
			"cpu", map[string]int64{"q1": 1000, "q2": 9000}},
		"only what they hold while their parent is missing": {
			[][]runtime.Object{{fixture.Node("n1", "cpu=10"), fixture.Queue("q1", fixture.Below("nowhere")), fixture.Queue("q2")},
				wanting("q1", 9, "cpu=1"), wanting("q2", 20, "cpu=1")},
			"cpu", map[string]int64{"q1": 0, "q2": 10000}},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, Factory(), "")
			for _, objects := range test.objects {
				w.Set(objects)
			}
			s := w.Open()
			for queue, want := range test.want {
				if got := deserved(w, s, queue, test.resource); got != want {
					t.Errorf("queue %s deserves %d, should deserve %d", queue, got, want)
				}
			}
		})
	}
}

func TestTheOrderInWhichObjectsArriveChangesNoShare(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		objects := []runtime.Object{fixture.Node("n1", fmt.Sprintf("cpu=%dm nvidia.com/gpu=7", rapid.IntRange(1, 5000).Draw(r, "cpu")))}
		queues := rapid.IntRange(1, 7).Draw(r, "queues")
		for i := range queues {
			name := fmt.Sprintf("q%d", i)
			objects = append(objects, fixture.Queue(name, fixture.Weighing(rapid.Int32Range(0, 5).Draw(r, "weight")),
				fixture.Guaranteed(fmt.Sprintf("cpu=%dm", rapid.SampledFrom([]int{0, 0, 100, 900}).Draw(r, "guarantee")))))
			objects = append(objects, wanting(name, rapid.IntRange(0, 4).Draw(r, "pods"), "cpu=333m nvidia.com/gpu=1")...)
		}
		read := func(seed uint64) string {
			random := rand.New(rand.NewPCG(seed, 0))
			random.Shuffle(len(objects), func(i, k int) { objects[i], objects[k] = objects[k], objects[i] })
			w := harness.ForPlugin(t, Factory(), "").Set(objects)
			s := w.Open()
			var b strings.Builder
			for i := range queues {
				name := fmt.Sprintf("q%d", i)
				fmt.Fprintln(&b, name, deserved(w, s, name, "cpu"), deserved(w, s, name, "nvidia.com/gpu"), deserved(w, s, name, "pods"))
			}
			return b.String()
		}
		if diff := cmp.Diff(read(1), read(rapid.Uint64().Draw(r, "seed"))); diff != "" {
			r.Fatal(diff)
		}
	})
}

func TestQueuesAreServedByPriorityThenByShare(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=12"), fixture.Queue("half"), fixture.Queue("third"),
		fixture.Queue("full-and-first", fixture.Ranking(1)))
	w.Set(holding("half", 2, "cpu=1", "n1")).Set(fixture.Pod("h", fixture.In("of-half"), fixture.Asks("cpu=2")))
	w.Set(holding("third", 1, "cpu=1", "n1")).Set(fixture.Pod("t", fixture.In("of-third"), fixture.Asks("cpu=2")))
	w.Set(holding("full-and-first", 4, "cpu=1", "n1"))
	s := w.Open()
	for _, pair := range [][2]string{{"full-and-first", "third"}, {"third", "half"}, {"full-and-first", "half"}} {
		if a, b := w.Queue(pair[0]), w.Queue(pair[1]); s.CompareQueues(a, b) >= 0 || s.CompareQueues(b, a) <= 0 {
			t.Errorf("%s should be served before %s", pair[0], pair[1])
		}
	}
}

func TestAQueueThatHoldsWhatItDoesNotDeserveIsServedLast(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=4"), fixture.Queue("borrower"), fixture.Queue("owner", fixture.Guaranteed("cpu=4")))
	w.Set(holding("borrower", 1, "cpu=1", "n1")).Set(holding("owner", 3, "cpu=1", "n1"))
	s := w.Open()
	if s.CompareQueues(w.Queue("owner"), w.Queue("borrower")) >= 0 {
		t.Error("the borrower is served before the owner")
	}
}

func TestAPodIsPlacedWithinWhatItsQueueDeserves(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=4 memory=8Gi"), fixture.Queue("q1"), fixture.Queue("q2"))
	w.Set(wanting("q1", 3, "cpu=1500m")).Set(wanting("q2", 4, "cpu=1"))
	s := w.Open()
	first, second := w.TaskNamed("q1-0"), w.TaskNamed("q1-1")
	if v := s.MayAllocate(first); v != nil {
		t.Fatal(harness.Describe(v))
	}
	x := s.Begin()
	x.Place(first, w.Node("n1"))
	want := &verdict.Verdict{Code: verdict.OverShare, Subject: "q1", Help: verdict.HelpOwnQueue, OfCluster: true,
		Shortages: []verdict.Shortage{{Resource: "cpu", Need: 1500, Have: 500}}, Detail: "it deserves cpu 2"}
	if diff := cmp.Diff(want, s.MayAllocate(second)); diff != "" {
		t.Error(diff)
	}
	x.Undo()
	if v := s.MayAllocate(second); v != nil {
		t.Errorf("after the undo: %s", harness.Describe(v))
	}
}

func TestAQueueWithAllItDeservesIsHeldBackOnlyIfItWantsMore(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=2 pods=2"), fixture.Queue("q1"), fixture.Queue("q2"))
	w.Set(holding("q1", 1, "cpu=1", "n1")).Set(holding("q2", 1, "cpu=1", "n1"))
	w.Set(fixture.Pod("more", fixture.In("of-q1"), fixture.Asks("cpu=1")))
	s := w.Open()
	if v := s.Overused(w.Queue("q1")); harness.Describe(v) != "OverShare q1; it deserves cpu 1, pods 1" {
		t.Errorf("q1 wants more than it deserves: %v", v)
	}
	if v := s.Overused(w.Queue("q2")); v != nil {
		t.Errorf("q2 wants nothing more: %s", harness.Describe(v))
	}
}

func TestAJobIsLookedAtAgainWhenOthersWantLess(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=2"), fixture.Queue("q1"), fixture.Queue("q2"))
	w.Set(wanting("q1", 1, "cpu=2")).Set(wanting("q2", 1, "cpu=2"))
	s := w.Open()
	s.AddVerdict(w.JobNamed("of-q1"), s.MayAllocate(w.TaskNamed("q1-0")))
	s.AddVerdict(w.JobNamed("of-q2"), s.MayAllocate(w.TaskNamed("q2-0")))
	if s = w.Open(); len(s.Queues()) != 0 {
		t.Fatalf("nothing has happened, and %d queues are looked at", len(s.Queues()))
	}
	w.Remove(fixture.Pod("q2-0"))
	s = w.Open()
	if len(s.Jobs(w.Queue("q1"))) != 1 {
		t.Fatal("the job is not looked at although its queue deserves more now")
	}
	if v := s.MayAllocate(w.TaskNamed("q1-0")); v != nil {
		t.Error(harness.Describe(v))
	}
}

func TestAdmission(t *testing.T) {
	at := func(name, queue, minimum string) runtime.Object {
		return fixture.Group(name, queue, 1, fixture.PendingAdmission, fixture.Wanting(minimum))
	}
	capped := fixture.Queue("q", fixture.Capped("cpu=4 memory=4Gi"))
	held := holding("q", 2, "cpu=1", "n1")
	held[0] = fixture.Group("of-q", "q", 2, fixture.Wanting("cpu=2"))
	for name, test := range map[string]struct {
		objects []runtime.Object
		job     runtime.Object
		want    string
	}{
		"lets in what fits with the rest": {held, at("j", "q", "cpu=2"), ""},
		"refuses what does not": {held, at("j", "q", "cpu=3"),
			"OverCapability q: cpu: needs 3, has 2, short by 1"},
		"counts jobs that were admitted by what they still lack": {
			append([]runtime.Object{fixture.Group("in", "q", 1, fixture.Wanting("cpu=3")),
				fixture.Pod("in-0", fixture.In("in"), fixture.Asks("cpu=1"), fixture.On("n1"))}, held...),
			at("j", "q", "cpu=1"), "OverCapability q: cpu: needs 1, has 0, short by 1"},
		"counts what jobs hold beyond their minimum": {
			append([]runtime.Object{fixture.Group("elastic", "q", 1, fixture.Wanting("cpu=1")),
				fixture.Pod("e-0", fixture.In("elastic"), fixture.Asks("cpu=1"), fixture.On("n1")),
				fixture.Pod("e-1", fixture.In("elastic"), fixture.Asks("cpu=1"), fixture.On("n1"))}, held...),
			at("j", "q", "cpu=1"), "OverCapability q: cpu: needs 1, has 0, short by 1"},
		"does not ask twice for what a job holds": {
			append([]runtime.Object{fixture.Pod("j-0", fixture.In("j"), fixture.Asks("cpu=1"), fixture.On("n1"))}, held...),
			at("j", "q", "cpu=2"), ""},
		"looks only at what is asked for": {
			[]runtime.Object{fixture.Group("fat", "q", 1, fixture.Wanting("memory=9Gi")), fixture.Pod("f", fixture.In("fat"), fixture.Asks("memory=9Gi"), fixture.On("n1"))},
			at("j", "q", "cpu=4"), ""},
		"says when a job can never fit": {nil, at("j", "q", "cpu=8 memory=8Gi"),
			"TooLargeForQueue q: cpu: needs 8, has 4, short by 4: memory: needs 8Gi, has 4Gi, short by 4Gi"},
		"says when the cluster is too small": {nil, at("j", "other", "cpu=17"),
			"TooLargeForQueue other: cpu: needs 17, has 12, short by 5; " +
				"its limit is the size of the cluster less what other queues are guaranteed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16 memory=16Gi"), capped, fixture.Queue("other"),
				fixture.Queue("safe", fixture.Guaranteed("cpu=4")))
			w.Set(test.objects).Set(test.job)
			if diff := cmp.Diff(test.want, harness.Describe(w.Open().MayEnqueue(w.JobNamed("j")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAJobThatIsAdmittedLeavesLessForTheNext(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16"), fixture.Queue("q", fixture.Capped("cpu=4")),
		fixture.Group("a", "q", 1, fixture.PendingAdmission, fixture.Wanting("cpu=3")),
		fixture.Group("b", "q", 1, fixture.PendingAdmission, fixture.Wanting("cpu=3")))
	s := w.Open()
	if v := s.MayEnqueue(w.JobNamed("a")); v != nil {
		t.Fatal(harness.Describe(v))
	}
	s.Admit(w.JobNamed("a"))
	if v := s.MayEnqueue(w.JobNamed("b")); v == nil || v.Code != verdict.OverCapability {
		t.Errorf("more is still admitted: %v", v)
	}
}

func TestTheRootMayGoAway(t *testing.T) {
	root := fixture.Queue("root", fixture.Guaranteed("cpu=1"))
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=2"), root, fixture.Queue("q"))
	w.Set(wanting("q", 2, "cpu=1"))
	w.Remove(root)
	if got := deserved(w, w.Open(), "q", "cpu"); got != 2000 {
		t.Errorf("the queue deserves %d, should deserve all 2000", got)
	}
}

func benchmarkWorld(b *testing.B) *harness.Model {
	w := harness.ForPlugin(b, Factory(), "")
	for i := range 1000 {
		w.Set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=64 memory=256Gi nvidia.com/gpu=8"))
	}
	for i := range 1000 {
		name := fmt.Sprintf("q%d", i)
		w.Set(fixture.Queue(name, fixture.Weighing(int32(1+i%7)), fixture.Guaranteed(fmt.Sprintf("cpu=%d", i%3))))
		w.Set(wanting(name, 1+i%20, fmt.Sprintf("cpu=%d memory=%dGi nvidia.com/gpu=1", 1+i%32, 1+i%100)))
	}
	w.Open()
	return w
}

func BenchmarkOpenSessionWithAThousandQueues(b *testing.B) {
	p, s := &plugin{}, benchmarkWorld(b).Open()
	b.ReportAllocs()
	for b.Loop() {
		p.OpenSession(s)
	}
}

func BenchmarkMayAllocate(b *testing.B) {
	w := benchmarkWorld(b)
	p := &plugin{}
	p.OpenSession(w.Open())
	t := w.TaskNamed("q8-0")
	b.ReportAllocs()
	for b.Loop() {
		if v := p.MayAllocate(t.Job.Queue, t); v != nil {
			b.Fatal(harness.Describe(v))
		}
	}
}
