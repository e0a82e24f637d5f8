package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// BenchmarkChanges measures a cycle after one change of a node or a queue, while 10,000 gangs of as many kinds in ten
// queues wait in front of 5,000 full nodes. Each iteration is one change. Gangs that may reclaim for it do:
// decisions/op says how many pods were bound and plans made.
func BenchmarkChanges(b *testing.B) {
	base := busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true, queues: 10}
	for _, backlog := range []struct {
		name   string
		kinds  int
		class  string
		change func(*busyCluster)
	}{
		{"10000 kinds", 10_000, "p0", nil},
		{"100 kinds", 100, "p0", nil},
		{"10000 kinds above protected pods", 10_000, "high", func(c *busyCluster) { c.preemptable = false }},
		{"100 kinds in racks", 100, "p0", func(c *busyCluster) { c.racked = true }},
	} {
		c := base
		if backlog.change != nil {
			backlog.change(&c)
		}
		var w *loop.Loop
		for _, update := range updates() {
			b.Run(backlog.name+"/"+update.name, func(b *testing.B) {
				b.StopTimer()
				if w == nil {
					w = c.fill(b)
					gangs := c.waitingGangs(10_000, backlog.kinds, backlog.class, false)
					if c.racked {
						rack(w, c.nodes, gangs)
					}
					runCycle(b, w, gangs)
				}
				for range 6 { // what the last case has changed is settled
					runCycle(b, w, nil)
				}
				decided, spent := 0, time.Duration(0)
				for i := range b.N {
					events := []cache.Event{cache.Set{Object: update.object(w, i)}}
					from := cpuTime(b)
					b.StartTimer()
					decided += runCycle(b, w, events)
					b.StopTimer()
					spent += cpuTime(b) - from
				}
				b.ReportMetric(float64(decided)/float64(b.N), "decisions/op")
				b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/1000, "cpu-ms/op")
			})
		}
	}
}

// rack puts the nodes into racks of a hundred, and lets each gang start only within one.
func rack(w *loop.Loop, nodes int, gangs []cache.Event) {
	for first := 0; first < nodes; first += 100 {
		var members []string
		for i := range 100 {
			members = append(members, fmt.Sprintf("node-%04d", first+i))
		}
		w.Set(fixture.HyperNode(fmt.Sprintf("rack-%02d", first/100), 1, members...))
	}
	tier := 1
	for _, e := range gangs {
		if group, ok := e.(cache.Set).Object.(*schedulingv1beta1.PodGroup); ok {
			group.Spec.NetworkTopology = &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.HardNetworkTopologyMode, HighestTierAllowed: &tier}
		}
	}
}

// runCycle runs the next cycle, and returns how many pods it binds and evicts.
func runCycle(tb testing.TB, w *loop.Loop, events []cache.Event) (decided int) {
	w.Now = w.Now.Add(10 * time.Millisecond) // not so much that jobs are tried again only for that
	result := w.Scheduler.Cycle(w.Now, events)
	if result.Panic != "" {
		tb.Fatal(result.Panic)
	}
	return len(result.Decisions.Binds) + len(result.Decisions.Plans)
}

// update is a change of an object: what the object is after the i-th one.
type update struct {
	name   string
	object func(w *loop.Loop, i int) runtime.Object
}

// updates are the kinds of change. Only the last may let gangs start.
func updates() []update {
	node := func(edit func(n *corev1.Node, i int)) func(w *loop.Loop, i int) runtime.Object {
		return func(w *loop.Loop, i int) runtime.Object {
			n := w.Cluster.Node(fmt.Sprintf("node-%04d", i*7919%5000)).Object.DeepCopy()
			edit(n, i)
			return n
		}
	}
	queue := func(edit func(q *schedulingv1beta1.Queue, i int)) func(w *loop.Loop, i int) runtime.Object {
		return func(w *loop.Loop, i int) runtime.Object {
			q := w.Cluster.Queue(fmt.Sprintf("q%d", i*7%10)).Object.DeepCopy()
			edit(q, i)
			return q
		}
	}
	return []update{
		{"a heartbeat", node(func(n *corev1.Node, i int) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(int64(i), 0)}}
		})},
		{"a label of a node", node(func(n *corev1.Node, i int) { n.Labels["example.com/seen"] = fmt.Sprint(i) })},
		{"an annotation of a node", node(func(n *corev1.Node, i int) {
			n.Annotations = map[string]string{"example.com/seen": fmt.Sprint(i)}
		})},
		{"an annotation of a queue", queue(func(q *schedulingv1beta1.Queue, i int) {
			q.Annotations = map[string]string{"example.com/seen": fmt.Sprint(i)}
		})},
		{"a node has one GiB more", node(func(n *corev1.Node, _ int) {
			memory := n.Status.Allocatable[corev1.ResourceMemory]
			memory.Add(resource.MustParse("1Gi"))
			n.Status.Allocatable[corev1.ResourceMemory] = memory
		})},
		{"a node has one GiB less", node(func(n *corev1.Node, _ int) {
			memory := n.Status.Allocatable[corev1.ResourceMemory]
			memory.Sub(resource.MustParse("1Gi"))
			n.Status.Allocatable[corev1.ResourceMemory] = memory
		})},
		{"a node is cordoned", node(func(n *corev1.Node, _ int) { n.Spec.Unschedulable = true })},
		{"a cordoned node has another taint", node(func(n *corev1.Node, i int) {
			n.Spec.Unschedulable = true // it is already, by the case before
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/broken", Value: fmt.Sprint(i), Effect: corev1.TaintEffectNoSchedule})
		})},
		{"a new small node", func(*loop.Loop, int) runtime.Object {
			added++
			return fixture.Node(fmt.Sprintf("small-%05d", added), "cpu=2 memory=4Gi")
		}},
		{"a weight of a queue", queue(func(q *schedulingv1beta1.Queue, i int) {
			q.Generation++
			q.Spec.Weight = q.Spec.Weight%3 + 1
		})},
	}
}

// added counts the nodes that were added.
var added int
