package rules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// loop is a story from the field in which other schedulers evict for ever.
type loop struct {
	source string
	build  func(*testCluster)
	// holds is how many CPUs, in thousandths, each queue has in the end; nil says that any rest will do.
	holds map[string]int64
}

// division is a queue that deserves so much.
func (w *testCluster) division(name, deserved string) {
	w.set(fixture.Queue(name, func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List(deserved) }))
}

// gang is a gang of so many pods that start together; on is where they run, "" if they wait.
func (w *testCluster) gang(name, queue string, size int, asks, on string) {
	w.set(fixture.Group(name, queue, int32(size), func(g *schedulingv1beta1.PodGroup) {
		g.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		g.CreationTimestamp = metav1.NewTime(fixture.Birth.Add(time.Duration(len(w.groups)) * time.Second))
	}))
	for i := range size {
		p := fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i), fixture.Asks(asks))
		if on != "" {
			fixture.On(on)(p)
		}
		w.identify(p)
		w.set(p)
	}
}

// loops are the five of which the field reports that they turn for ever.
var loops = []loop{
	{source: "volcano issue 4947: a queue of deserved 3 runs 4, another of deserved 5 runs 1 and waits for 4", build: func(w *testCluster) {
		w.set(fixture.Node("n1", "cpu=8"))
		w.division("q1", "cpu=3")
		w.division("q2", "cpu=5")
		w.gang("big", "q1", 1, "cpu=4", "n1")
		w.gang("small", "q2", 1, "cpu=1", "n1")
		w.gang("next", "q2", 1, "cpu=4", "")
	}},
	{source: "kueue issue 3779: who is above its share adds a pod, and another without a share runs", build: func(w *testCluster) {
		w.set(fixture.Node("n1", "cpu=300m"))
		w.division("a", "cpu=150m")
		w.division("b", "cpu=150m")
		w.division("rest", "cpu=1m")
		for i := range 5 {
			w.gang(fmt.Sprintf("a%d", i), "a", 1, "cpu=50m", "n1")
		}
		w.gang("filler", "rest", 1, "cpu=50m", "n1")
		w.gang("more", "a", 1, "cpu=50m", "")
	}, holds: map[string]int64{"a": 250, "rest": 50}},
	{source: "kueue issue 6947: a job that never fits is before one that does", build: func(w *testCluster) {
		w.set(fixture.Node("n1", "cpu=3"))
		w.division("a", "cpu=3")
		w.division("b", "")
		w.queue("b", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = corev1.ResourceList{} })
		w.gang("wl1", "b", 1, "cpu=1", "n1")
		w.gang("wl4", "a", 1, "cpu=4", "")
		w.gang("wl3", "a", 1, "cpu=3", "")
	}, holds: map[string]int64{"a": 3000, "b": 0}},
	{source: "kueue issue 13662: two victims of one queue end one after the other, and the first comes back", build: func(w *testCluster) {
		w.set(fixture.Node("n1", "cpu=2"))
		w.division("a", "cpu=2")
		w.division("b", "")
		w.gang("wa", "b", 1, "cpu=1", "n1")
		w.gang("wb", "b", 1, "cpu=1", "n1")
		w.gang("preemptor", "a", 1, "cpu=2", "")
	}, holds: map[string]int64{"a": 2000, "b": 0}},
	{source: "kueue issue 7101: gangs of 6, 5, 4 and 3 against four gangs of 2", build: func(w *testCluster) {
		for i := range 4 {
			w.set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=2"))
		}
		w.division("proj1", "cpu=4")
		w.division("proj2", "cpu=4")
		for i := range 4 {
			w.gang(fmt.Sprintf("old%d", i), "proj1", 2, "cpu=1", fmt.Sprintf("n%d", i))
		}
		for _, size := range []int{6, 5, 4, 3} {
			w.gang(fmt.Sprintf("new%d", size), "proj2", size, "cpu=1", "")
		}
	}, holds: map[string]int64{"proj1": 4000, "proj2": 4000}},
}

// Victims die late and out of order, writes are slow and refused, schedulers crash; and the wheel comes to rest.
func TestTheFiveLoopsComeToRest(t *testing.T) {
	for _, l := range loops {
		t.Run(strings.SplitN(l.source, ":", 2)[0], func(t *testing.T) {
			evictions := 0
			for seed := range uint64(100) {
				random := rand.New(rand.NewPCG(seed, 0))
				w := newTestCluster(plain, random.IntN)
				if w.willing = seed%2 == 0; seed == 0 {
					w.calm, w.choose = true, func(int) int { return 0 }
				}
				willing := w.willing
				w.makeClasses()
				l.build(w)
				w.live(seed)
				evictions += w.judge.evictions
				if len(w.judge.breaches) == 0 && w.judge.evictions > 3*len(w.pods) {
					w.judge.breach("S2", "%d evictions among %d pods", w.judge.evictions, len(w.pods))
				}
				end := take(w.setting, &w.objects, w.judge.memory, w.now)
				for name, want := range l.holds {
					if have := end.queues[name].allocated()[corev1.ResourceCPU]; have != want && willing {
						w.judge.breach("S2", "queue %s holds %d in the end, not %d", name, have, want)
					}
				}
				if o := w.outcome(); o != "" {
					t.Fatalf("%s (seed %d)\n%s", l.source, seed, string(o))
				}
			}
			t.Logf("%d evictions in 100 clusters", evictions)
		})
	}
}

// live leads a cluster for some cycles in which writes are slow and fail, and then to rest.
func (w *testCluster) live(seed uint64) {
	for i := range 12 {
		w.cycle()
		if len(w.judge.breaches) > 0 {
			return
		}
		w.goOn()
		if seed%3 == 2 && w.choose.once(4) && i > 0 {
			w.crash()
		}
	}
	w.rest()
}
