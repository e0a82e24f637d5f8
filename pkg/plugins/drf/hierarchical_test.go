package drf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// at is a queue with a place in the tree.
func at(name, path, weights string) runtime.Object {
	return fixture.Queue(name, fixture.QueueAnnotated(schedulingv1beta1.HierarchyAnnotationKey, path),
		fixture.QueueAnnotated(schedulingv1beta1.HierarchyWeightsAnnotationKey, weights))
}

// wanting is a job with pods that wait.
func wanting(name, queue string, pods int, asks string) []runtime.Object {
	objects := []runtime.Object{fixture.Group(name, queue, 1)}
	for i := range pods {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.Asks(asks)))
	}
	return objects
}

func treeOf(tb testing.TB, objects ...[]runtime.Object) *harness.Model {
	w := harness.ForPlugin(tb, Factory(), "", conf.EnableHierarchy)
	for _, list := range objects {
		w.Set(list)
	}
	return w
}

// fill places pods on the only node, one at a time, for the queue that comes first and its job that does, until nothing
// fits. It returns how many pods of each job are placed.
func fill(w *harness.Model, s *framework.Session) map[string]int {
	placed, node := map[string]int{}, w.Nodes()[0]
	queues := slices.Clone(s.Queues())
	x := s.Begin()
	for len(queues) > 0 {
		q := slices.MinFunc(queues, s.CompareQueues)
		jobs := slices.Clone(s.Jobs(q))
		slices.SortFunc(jobs, s.CompareJobs)
		fits := func(j *cluster.Job) bool { p := s.Pending(j); return len(p) > 0 && node.Room(p[0].Request()) }
		i := slices.IndexFunc(jobs, fits)
		if i < 0 {
			queues = slices.DeleteFunc(queues, func(other *cluster.Queue) bool { return other == q })
			continue
		}
		x.Place(s.Pending(jobs[i])[0], node)
		placed[jobs[i].ID.Name]++
	}
	return placed
}

func TestHierarchicalShares(t *testing.T) {
	// Half of the cluster is for science, half for engineering, and of that half is for development, which wants only
	// CPU, and half for production, which wants only memory. They do not stand in each other's way, so each gets all of
	// engineering's half of what it wants.
	t.Run("siblings of unlike demands get their parent's share of each", func(t *testing.T) {
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=10 memory=10Gi"), at("sci", "root/sci", "100/50"),
			at("dev", "root/eng/dev", "100/50/50"), at("prod", "root/eng/prod", "100/50/50")},
			wanting("pg1", "sci", 10, "cpu=1 memory=1Gi"), wanting("pg21", "dev", 10, "cpu=1"), wanting("pg22", "prod", 10, "memory=1Gi"))
		if diff := cmp.Diff(map[string]int{"pg1": 5, "pg21": 5, "pg22": 5}, fill(w, w.Open())); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("weights are honoured at every level", func(t *testing.T) {
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=24"), at("a", "root/a", "1/3"), at("b1", "root/b/b1", "1/1/2"), at("b2", "root/b/b2", "1/1/1")},
			wanting("ja", "a", 30, "cpu=1"), wanting("jb1", "b1", 30, "cpu=1"), wanting("jb2", "b2", 30, "cpu=1"))
		if diff := cmp.Diff(map[string]int{"ja": 18, "jb1": 4, "jb2": 2}, fill(w, w.Open())); diff != "" {
			t.Error(diff)
		}
	})

	// One child of the second branch wants only CPU, which runs out. Were it counted in full, the branch would seem to
	// have had its share, and the other child, which wants memory, would get nothing (the example is that of the H-DRF
	// paper in small).
	t.Run("a child that can use no more does not starve its sibling", func(t *testing.T) {
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=10 memory=10Gi"), at("one", "root/one", "1/1"), at("cpu", "root/two/cpu", "1/1/1"),
			at("memory", "root/two/memory", "1/1/1")},
			wanting("j1", "one", 20, "cpu=1"), wanting("j2", "cpu", 20, "cpu=1"), wanting("j3", "memory", 20, "memory=1Gi"))
		if diff := cmp.Diff(map[string]int{"j1": 5, "j2": 5, "j3": 10}, fill(w, w.Open())); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("what can use more goes first, even of a larger share", func(t *testing.T) {
		done := wanting("done", "small", 1, "cpu=1")
		fixture.On("n")(done[1].(*corev1.Pod))
		busy := wanting("busy", "large", 4, "cpu=1")
		for _, pod := range busy[1:4] {
			fixture.On("n")(pod.(*corev1.Pod))
		}
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=10"), at("small", "root/small", "1/1"), at("large", "root/large", "1/1")}, done, busy)
		if s := w.Open(); s.CompareQueues(w.Queue("large"), w.Queue("small")) >= 0 {
			t.Error("the queue that has all it wants is first")
		}
	})

	t.Run("what a saturated child has counts in full", func(t *testing.T) {
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=20"), at("done", "root/two/done", "1/1/1"), at("growing", "root/two/growing", "1/1/1"),
			at("one", "root/one", "1/1")}, placed(wanting("j1", "done", 6, "cpu=1")), wanting("j2", "growing", 2, "cpu=1"), wanting("j3", "one", 6, "cpu=1"))
		s := w.Open()
		s.Begin().Place(w.TaskNamed("j2-0"), w.Node("n"))
		for i := range 5 {
			s.Begin().Place(w.TaskNamed(fmt.Sprintf("j3-%d", i)), w.Node("n"))
		}
		for name, twentieths := range map[string]int64{"two": 7, "one": 5} {
			got, want := nodesOf(w, s)[name], &node{share: twentieths * whole / 20, weight: one}
			if got.weighted() != want.weighted() {
				t.Errorf("the share of %s is %d, should be %d twentieths", name, got.share, twentieths)
			}
		}
	})

	t.Run("equal shares stay equal through the arithmetic", func(t *testing.T) {
		// A third, a sixth and a half of a half, none of which is a whole number of anything, against the half in one
		// piece.
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=12"), at("parts", "root/parts", "1/1"), at("whole", "root/whole", "1/1")},
			placed(wanting("j1", "parts", 1, "cpu=2")), placed(wanting("j2", "parts", 1, "cpu=1")), placed(wanting("j3", "parts", 1, "cpu=3")),
			placed(wanting("j4", "whole", 1, "cpu=6")))
		nodes := nodesOf(w, w.Open())
		if parts, whole := nodes["parts"], nodes["whole"]; parts.share == whole.share || parts.weighted() != whole.weighted() {
			t.Errorf("the shares are %d and %d", parts.share, whole.share)
		}
	})

	t.Run("a job that is over does not pass for one that wants more", func(t *testing.T) {
		full := wanting("full", "a", 1, "cpu=1")
		fixture.On("n")(full[1].(*corev1.Pod))
		over := wanting("over", "a", 1, "cpu=1")
		over[1].(*corev1.Pod).Status.Phase = corev1.PodSucceeded
		busy := wanting("busy", "b", 3, "cpu=1")
		fixture.On("n")(busy[1].(*corev1.Pod))
		fixture.On("n")(busy[2].(*corev1.Pod))
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=10"), at("a", "root/a", "1/1"), at("b", "root/b", "1/1")}, full, over, busy)
		if s := w.Open(); s.CompareQueues(w.Queue("b"), w.Queue("a")) >= 0 {
			t.Error("the queue of a job that is over is first")
		}
	})

	t.Run("what wants a resource that is used up is served last", func(t *testing.T) {
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=10 nvidia.com/gpu=1"), at("blocked", "root/blocked", "1/1"), at("busy", "root/busy", "1/1")},
			wanting("j1", "blocked", 1, "nvidia.com/gpu=1"), wanting("j2", "busy", 4, "cpu=1"), wanting("j3", "busy", 1, "nvidia.com/gpu=1"))
		s := w.Open()
		s.Begin().Place(w.TaskNamed("j2-0"), w.Node("n"))
		blocked, busy := w.Queue("blocked"), w.Queue("busy")
		if s.CompareQueues(blocked, busy) >= 0 {
			t.Error("the queue that holds nothing is not first while there is a device")
		}
		s.Begin().Place(w.TaskNamed("j3-0"), w.Node("n"))
		if s.CompareQueues(blocked, busy) <= 0 {
			t.Error("the queue that waits for a device is first although there is none")
		}
	})
}

// nodesOf returns the nodes directly below the root, by name.
func nodesOf(w *harness.Model, s *framework.Session) map[string]*node {
	h := &hierarchical{}
	h.OpenSession(s)
	h.tree = h.grow()
	h.tree.refresh()
	return h.tree.root.byName
}

// placed makes all pods of a job run.
func placed(objects []runtime.Object) []runtime.Object {
	for _, pod := range objects[1:] {
		fixture.On("n")(pod.(*corev1.Pod))
	}
	return objects
}

func TestChildrenInBalanceCountInFullWhateverTheirWeights(t *testing.T) {
	w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=24"), at("a", "root/a", "1/3"), at("b1", "root/b/b1", "1/1/2"), at("b2", "root/b/b2", "1/1/1")},
		wanting("ja", "a", 19, "cpu=1"), wanting("jb1", "b1", 5, "cpu=1"), wanting("jb2", "b2", 3, "cpu=1"))
	s := w.Open()
	for name, pods := range map[string]int{"ja": 18, "jb1": 4, "jb2": 2} {
		for i := range pods - 1 {
			s.Begin().Place(w.TaskNamed(fmt.Sprintf("%s-%d", name, i)), w.Node("n"))
		}
	}
	for _, last := range []string{"ja-17", "jb1-3", "jb2-1"} {
		s.Begin().Place(w.TaskNamed(last), w.Node("n"))
	}
	// The cluster is full now, so that nothing can use more; seen without that, the branches are in balance.
	h := &hierarchical{}
	h.OpenSession(s)
	h.tree = h.grow()
	w.Idle.Set(0, 1)
	h.tree.refresh()
	a, b := h.tree.root.byName["a"], h.tree.root.byName["b"]
	if a.saturated || b.saturated || a.weighted() != b.weighted() {
		t.Errorf("the weighted shares are %d and %d", a.weighted(), b.weighted())
	}
}

func TestAPlacementThatIsTakenBackLeavesNoTraceInTheOrder(t *testing.T) {
	w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=10"), at("a", "root/x/a", "1/1/1"), at("b", "root/y/b", "1/1/1")},
		wanting("ja", "a", 3, "cpu=1"), wanting("jb", "b", 3, "cpu=1"))
	s := w.Open()
	a, b := w.Queue("a"), w.Queue("b")
	first := s.CompareQueues(a, b)
	x := s.Begin()
	x.Place(w.TaskNamed("ja-0"), w.Node("n"))
	if s.CompareQueues(a, b) <= 0 {
		t.Error("the queue that got a pod is not behind")
	}
	y := s.Begin()
	y.Place(w.TaskNamed("jb-0"), w.Node("n"))
	y.Place(w.TaskNamed("jb-1"), w.Node("n"))
	if s.CompareQueues(a, b) >= 0 {
		t.Error("the queue that got two pods is not behind")
	}
	y.Undo()
	if s.CompareQueues(a, b) <= 0 {
		t.Error("the inner transaction left a trace")
	}
	x.Undo()
	if s.CompareQueues(a, b) != first {
		t.Error("the outer transaction left a trace")
	}
}

func TestAnnotationsThatCannotBeReadStopTheirQueueAlone(t *testing.T) {
	for name, test := range map[string]struct{ path, weights, want string }{
		"another number of weights": {"root/a/b", "1/2",
			`annotation volcano.sh/hierarchy is "root/a/b" and volcano.sh/hierarchy-weights is "1/2": they must have equally many parts`},
		"weights without a path": {"", "1/2",
			`annotation volcano.sh/hierarchy is "" and volcano.sh/hierarchy-weights is "1/2": they must have equally many parts`},
		"an empty part": {"root//b", "1/2/3", `annotation volcano.sh/hierarchy is "root//b": its parts must not be empty`},
		"no number":     {"root/a", "1/heavy", `annotation volcano.sh/hierarchy-weights is "1/heavy": "heavy" is not a number above 0`},
		"zero":          {"root/a", "1/0", `annotation volcano.sh/hierarchy-weights is "1/0": "0" is not a number above 0`},
		"not a number":  {"root/a", "1/NaN", `annotation volcano.sh/hierarchy-weights is "1/NaN": "NaN" is not a number above 0`},
	} {
		t.Run(name, func(t *testing.T) {
			w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=10"), at("bad", test.path, test.weights), at("good", "root/good", "1/1"),
				fixture.Queue("plain")}, wanting("j", "bad", 1, "cpu=1"), wanting("k", "good", 1, "cpu=1"), wanting("l", "plain", 1, "cpu=1"))
			s := w.Open()
			want := &verdict.Verdict{Code: verdict.QueueInvalid, Subject: "bad", Help: verdict.HelpQueue, Detail: test.want}
			if diff := cmp.Diff(want, w.JobNamed("j").Verdict); diff != "" {
				t.Error(diff)
			}
			if len(s.Queues()) != 2 || s.CompareQueues(w.Queue("good"), w.Queue("plain")) >= 0 {
				t.Error("the others are not served as usual")
			}
			// Once the annotation is put right the queue is served again.
			w.Set(at("bad", "root/b", "1/1"))
			if s = w.Open(); len(s.Jobs(w.Queue("bad"))) != 1 {
				t.Errorf("the job is still held back: %v", w.JobNamed("j").Verdict)
			}
		})
	}
}

func TestPathsAndWeightsAreReadAsVolcanoReadsThem(t *testing.T) {
	for name, test := range map[string]struct {
		path, weights string
		want          []step
	}{
		"none":                      {"", "", []step{{"q", 1000}}},
		"from the root":             {"root/a/b", "9/2/3.5", []step{{"a", 2000}, {"b", 3500}}},
		"from below the root":       {"a/b", "2/3", []step{{"a", 2000}, {"b", 3000}}},
		"below 1 counts as 1":       {"root/a", "1/0.25", []step{{"a", 1000}}},
		"no weights are ones":       {"root/a/b", "", []step{{"a", 1000}, {"b", 1000}}},
		"no weight is beyond bound": {"root/a", "1/1e300", []step{{"a", maxWeight * 1000}}},
		"the root itself":           {"root", "1", nil},
	} {
		got, err := readSteps("q", test.path, test.weights)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v and %v, should be %v", name, got, err, test.want)
		}
	}
}

func TestQueuesAtOnePlace(t *testing.T) {
	t.Run("the older queue decides the weight of a shared node", func(t *testing.T) {
		younger := at("a-younger", "root/shared/y", "1/1/1").(*schedulingv1beta1.Queue)
		younger.CreationTimestamp.Time = fixture.Birth.Add(1)
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=9"), younger, at("older", "root/shared/o", "1/2/1"), at("other", "root/other", "1/1")},
			wanting("jy", "a-younger", 9, "cpu=1"), wanting("jo", "older", 9, "cpu=1"), wanting("jz", "other", 9, "cpu=1"))
		if diff := cmp.Diff(map[string]int{"jy": 3, "jo": 3, "jz": 3}, fill(w, w.Open())); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("queues at one place and below it share it", func(t *testing.T) {
		w := treeOf(t, []runtime.Object{fixture.Node("n", "cpu=12"), at("a", "root/x", "1/1"), at("b", "root/x", "1/1"), at("c", "root/x/c", "1/1/1"),
			at("d", "root/d", "1/1")},
			wanting("ja", "a", 12, "cpu=1"), wanting("jb", "b", 12, "cpu=1"), wanting("jc", "c", 12, "cpu=1"), wanting("jd", "d", 12, "cpu=1"))
		if diff := cmp.Diff(map[string]int{"ja": 2, "jb": 2, "jc": 2, "jd": 6}, fill(w, w.Open())); diff != "" {
			t.Error(diff)
		}
	})
}

// drawWorld is some queues in a tree, with jobs that want one or two resources.
func drawWorld(t *rapid.T, tb testing.TB) *harness.Model {
	w := treeOf(tb, []runtime.Object{fixture.Node("n", "cpu=7 memory=11Gi nvidia.com/gpu=3")})
	paths := []string{"a", "b", "a/c", "a/d", "b/c", "b/c/e", "b/c/f"}
	for i := range rapid.IntRange(2, 6).Draw(t, "queues") {
		path := "root/" + rapid.SampledFrom(paths).Draw(t, "path")
		weights := "1" + strings.Repeat(fmt.Sprintf("/%d", rapid.IntRange(1, 3).Draw(t, "weight")), strings.Count(path, "/"))
		name := fmt.Sprintf("q%d", i)
		w.Set(at(name, path, weights))
		for k := range rapid.IntRange(1, 2).Draw(t, "jobs") {
			w.Set(wanting(fmt.Sprintf("%s-j%d", name, k), name, rapid.IntRange(0, 4).Draw(t, "pods"),
				rapid.SampledFrom([]string{"cpu=1", "memory=1Gi", "cpu=1 memory=2Gi", "nvidia.com/gpu=1 cpu=500m"}).Draw(t, "asks")))
		}
	}
	return w
}

// place places some pods at random, and now and then takes one back.
func place(t *rapid.T, w *harness.Model, s *framework.Session) {
	for range rapid.IntRange(0, 12).Draw(t, "placements") {
		if len(s.Queues()) == 0 {
			return
		}
		pending := s.Pending(rapid.SampledFrom(s.Jobs(rapid.SampledFrom(s.Queues()).Draw(t, "queue"))).Draw(t, "job"))
		if len(pending) == 0 || !w.Node("n").Room(pending[0].Request()) {
			continue
		}
		x := s.Begin()
		x.Place(pending[0], w.Node("n"))
		if rapid.Bool().Draw(t, "taken back") {
			x.Undo()
		}
	}
}

func TestTheOrderOfQueuesIsAStrictWeakOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, t)
		s := w.Open()
		place(r, w, s)
		h := &hierarchical{}
		h.OpenSession(s)
		queues := s.Queues()
		for _, a := range queues {
			for _, b := range queues {
				if h.CompareQueues(a, b) != -h.CompareQueues(b, a) {
					r.Fatalf("%s and %s: %d one way, %d the other", a.Name, b.Name, h.CompareQueues(a, b), h.CompareQueues(b, a))
				}
				for _, c := range queues {
					if h.CompareQueues(a, b) <= 0 && h.CompareQueues(b, c) <= 0 && h.CompareQueues(a, c) > 0 {
						r.Fatalf("%s, %s and %s go round in a circle", a.Name, b.Name, c.Name)
					}
				}
			}
		}
	})
}

func TestATreeThatFollowedPlacementsEqualsOneMadeAfterwards(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, t)
		s := w.Open()
		if len(s.Queues()) == 0 {
			return
		}
		s.CompareQueues(s.Queues()[0], s.Queues()[0]) // makes the tree
		for range 3 {
			place(r, w, s)
			fresh := &hierarchical{}
			fresh.OpenSession(s)
			for _, a := range s.Queues() {
				for _, b := range s.Queues() {
					want := fresh.CompareQueues(a, b)
					if want == 0 {
						want = cluster.CompareQueues(a, b)
					}
					if got := s.CompareQueues(a, b); got != want {
						r.Fatalf("%s and %s: %d, should be %d", a.Name, b.Name, got, want)
					}
				}
			}
		}
	})
}

func BenchmarkReorderingAfterAPlacementAmongAThousandQueues(b *testing.B) {
	w := treeOf(b, []runtime.Object{fixture.Node("n", "cpu=100000 memory=1000Ti pods=1000000")})
	for i := range 1000 {
		name := fmt.Sprintf("q%d", i)
		w.Set(at(name, fmt.Sprintf("root/d%d/g%d/%s", i/100, i/10, name), "1/1/2/3"))
		for k := range 10 {
			w.Set(wanting(fmt.Sprintf("%s-j%d", name, k), name, 1, "cpu=1 memory=1Gi"))
		}
	}
	s := w.Open()
	first, second := w.Queue("q1"), w.Queue("q999")
	s.CompareQueues(first, second)
	t := w.TaskNamed("q1-j1-0")
	b.ReportAllocs()
	for b.Loop() {
		x := s.Begin()
		x.Place(t, w.Node("n"))
		s.CompareQueues(first, second)
		x.Undo()
		s.CompareQueues(first, second)
	}
}

func BenchmarkMakingTheTreeOfAThousandQueuesAndTenThousandJobs(b *testing.B) {
	w := treeOf(b, []runtime.Object{fixture.Node("n", "cpu=100000 memory=1000Ti pods=1000000")})
	for i := range 1000 {
		name := fmt.Sprintf("q%d", i)
		w.Set(at(name, fmt.Sprintf("root/d%d/g%d/%s", i/100, i/10, name), "1/1/2/3"))
		for k := range 10 {
			w.Set(wanting(fmt.Sprintf("%s-j%d", name, k), name, 1, "cpu=1 memory=1Gi"))
		}
	}
	s := w.Open()
	h := &hierarchical{}
	b.ReportAllocs()
	for b.Loop() {
		h.OpenSession(s)
		h.CompareQueues(w.Queue("q1"), w.Queue("q999"))
	}
}
