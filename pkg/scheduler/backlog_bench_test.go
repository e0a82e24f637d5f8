package scheduler_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// evicting is a configuration with all five actions and the plugins that most users have.
const evicting = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
`

// busyCluster is a cluster whose nodes are full of pods, each of 4 CPU and of a job of ten.
type busyCluster struct {
	nodes, perNode int
	queues         int   // 0 counts as 1
	priorities     int   // of the jobs that run; 0 counts as 1
	minimum        int32 // of their pods
	preemptable    bool
	labels         int      // of nodes that pods may select, 0: none
	sizes          []int    // of the pods on a node in CPU, nil: 4 each
	protected      int      // one in so many pods is not preemptable, 0: none
	budgets        int      // disruption budgets, each of as many jobs, that allow half of their pods to be evicted; 0: none
	shares         string   // the plugin by which queues have shares, "" is proportion
	capped         bool     // no queue may hold more than it does
	others         []string // queues of which no pod runs
	othersRun      bool     // one job in fifty is of one of them
	racked         bool     // a hundred nodes are a rack, and each gang that waits has to be in one
}

// queue is the queue of the i-th job.
func (c *busyCluster) queue(i int) string { return fmt.Sprintf("q%d", i%max(c.queues, 1)) }

// fill makes the cluster, and takes it in.
func (c *busyCluster) fill(tb testing.TB) *loop.Loop {
	w := loop.New(tb, c.configuration())
	for i := range max(c.queues, 1) {
		w.Set(fixture.Queue(c.queue(i), append(c.deserving(), c.capability)...))
	}
	for _, name := range c.others {
		w.Set(fixture.Queue(name, c.deserving()...))
	}
	for i := range c.budgets {
		w.Set(fixture.Budget(fmt.Sprintf("budget-%d", i), fmt.Sprintf("app-%d", i), int32(c.nodes*c.perNode/c.budgets/2)))
	}
	for i := range max(c.priorities, 1) {
		w.Set(fixture.PriorityClass(fmt.Sprintf("p%d", i), int32(i)))
	}
	w.Set(fixture.PriorityClass("high", 1000))
	for i := range c.nodes {
		w.Set(fixture.Node(fmt.Sprintf("node-%04d", i), fmt.Sprintf("cpu=%d memory=256Gi", 4*c.perNode), func(n *corev1.Node) {
			if c.labels > 0 {
				n.Labels["pool"] = fmt.Sprintf("pool-%d", i%c.labels)
			}
		}))
	}
	const size = 10
	for i := range c.nodes * c.perNode {
		job := i / size
		name := fmt.Sprintf("runs-%05d", job)
		if i%size == 0 {
			queue := c.queue(job)
			if c.othersRun && job%50 == 0 {
				queue = c.others[job/50%len(c.others)]
			}
			group := fixture.Group(name, queue, c.minimum)
			group.Spec.PriorityClassName = fmt.Sprintf("p%d", job%max(c.priorities, 1))
			group.Status.Phase = schedulingv1beta1.PodGroupRunning
			w.Set(group)
		}
		// The pods of a job stand on ten nodes, and those of a node are of as many jobs as it has pods.
		w.Set(fixture.Pod(fmt.Sprintf("run-%06d", i), fixture.In(name), fixture.As("worker", i%size), fixture.On(fmt.Sprintf("node-%04d", i%c.nodes)),
			fixture.Asks(fmt.Sprintf("cpu=%d memory=1Gi", c.cpus(i/c.nodes))), func(p *corev1.Pod) {
				started := metav1.NewTime(fixture.Birth.Add(time.Duration(i*7919%100_003) * time.Millisecond))
				p.Status.StartTime = &started
				if c.budgets > 0 {
					p.Labels["app"] = fmt.Sprintf("app-%d", job%c.budgets)
				}
				if c.preemptable && (c.protected == 0 || (i+i/c.nodes)%c.protected != 0) {
					p.Annotations[schedulingv1beta1.PreemptableKey] = "true"
				}
			}))
	}
	w.Scheduler.Cycle(w.Now, nil)
	return w
}

// configuration is the configuration of all five actions with the plugin that gives the shares.
func (c *busyCluster) configuration() string {
	text := evicting
	if c.shares != "" {
		text = strings.Replace(text, "- name: proportion", "- name: "+c.shares, 1)
	}
	if c.racked {
		text += "  - name: network-topology-aware\n"
	}
	return text
}

// deserving gives each queue the same part of the cluster, for a plugin that reads it from the queue.
func (c *busyCluster) deserving() []fixture.QueueOption {
	if c.shares != "capacity" {
		return nil
	}
	queues := max(c.queues, 1) + len(c.others)
	return []fixture.QueueOption{fixture.Deserving(fmt.Sprintf("cpu=%d memory=%dGi", 4*c.perNode*c.nodes/queues, 256*c.nodes/queues))}
}

// capability keeps a queue from holding more than its part of the pods that run, but for half a pod.
func (c *busyCluster) capability(q *schedulingv1beta1.Queue) {
	if c.capped {
		q.Spec.Capability = fixture.List(fmt.Sprintf("cpu=%d", 4*c.perNode*c.nodes/max(c.queues, 1)+2))
	}
}

// cpus is what the i-th pod of a node asks for.
func (c *busyCluster) cpus(i int) int {
	if c.sizes == nil {
		return 4
	}
	return c.sizes[i%len(c.sizes)]
}

// waitingGangs are gangs of ten that wait, of so many kinds. wanting says that their PodGroups name what they want.
func (c *busyCluster) waitingGangs(count, kinds int, class string, wanting bool) []cache.Event {
	var objects []runtime.Object
	for i := range count {
		name := fmt.Sprintf("waits-%05d", i)
		group := fixture.Group(name, c.queue(i), 10, fixture.PendingAdmission)
		group.Spec.PriorityClassName = class
		if wanting {
			fixture.Wanting(fmt.Sprintf("cpu=%dm memory=%dMi", 10*(3000+10*(i%kinds)), 10*(512+i%kinds)))(group)
		}
		objects = append(objects, group)
		for k := range 10 {
			objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, k), fixture.In(name), fixture.As("worker", k), c.ofKind(i%kinds)))
		}
	}
	return loop.Events(objects)
}

// ofKind makes a pod ask for what all pods of a kind do.
func (c *busyCluster) ofKind(kind int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		fixture.Asks(fmt.Sprintf("cpu=%dm memory=%dMi", 3000+10*(kind%100), 512+kind))(p)
		p.Spec.Containers[0].Image = fmt.Sprintf("image-%d", kind)
		if c.labels > 0 {
			fixture.Selecting("pool", fmt.Sprintf("pool-%d", kind%c.labels))(p)
		}
	}
}

// BenchmarkBacklog measures cycles with gangs of ten that wait in front of a full cluster, of 100 kinds unless there
// are others.
func BenchmarkBacklog(b *testing.B) {
	for _, test := range []struct {
		name    string
		gangs   int
		kinds   int // 0 counts as 100
		class   string
		wanting bool
		busyCluster
	}{
		{"1000 gangs", 1000, 0, "p0", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true}},
		{"10000 gangs", 10_000, 0, "p0", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true}},
		{"10000 gangs of higher priority before protected pods", 10_000, 0, "high", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10}},
		{"10000 gangs at admission", 10_000, 0, "p0", true, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true}},
		{"10000 gangs in ten queues", 10_000, 0, "p0", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true, queues: 10}},
		{"10000 gangs in ten queues at their capability", 10_000, 0, "p0", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true, queues: 10, capped: true}},
		{"10000 gangs of as many kinds", 10_000, 10_000, "p0", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true}},
		{"10000 gangs of as many kinds in ten queues", 10_000, 10_000, "p0", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true, queues: 10}},
		{"10000 gangs in 200 queues", 10_000, 0, "p0", false, busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true, queues: 200}},
	} {
		var w *loop.Loop
		var spent time.Duration // CPU time of cycles since it was set to 0
		cycle := func(b *testing.B, events []cache.Event) {
			w.Now = w.Now.Add(time.Second)
			from := cpuTime(b)
			if result := w.Scheduler.Cycle(w.Now, events); result.Panic != "" {
				b.Fatal(result.Panic)
			}
			spent += cpuTime(b) - from
		}
		report := func(b *testing.B) { b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/1000, "cpu-ms/op") }
		begin := func(b *testing.B) []cache.Event {
			w = test.fill(b)
			return test.waitingGangs(test.gangs, cmp.Or(test.kinds, 100), test.class, test.wanting)
		}
		// finished are some pods that run, as done.
		at := 0
		finished := func(count int) (events []cache.Event) {
			for range count {
				pod := w.Task(fixture.Key(fmt.Sprintf("run-%06d", at*7919%(test.nodes*test.perNode)))).Pod.DeepCopy()
				pod.Status.Phase = corev1.PodSucceeded
				events = append(events, cache.Set{Object: pod})
				at++
			}
			return events
		}
		b.Run(test.name+"/first cycle", func(b *testing.B) {
			spent = 0
			for range b.N {
				b.StopTimer()
				events := begin(b)
				w.Scheduler.Cache().Apply(events...)
				b.StartTimer()
				cycle(b, nil)
			}
			report(b)
		})
		b.Run(test.name+"/second cycle", func(b *testing.B) {
			sum := time.Duration(0)
			for range b.N {
				b.StopTimer()
				cycle(b, begin(b))
				spent = 0
				b.StartTimer()
				cycle(b, nil)
				sum += spent
			}
			spent = sum
			report(b)
		})
		again := func(name string, before int, events func() []cache.Event) {
			b.Run(test.name+"/"+name, func(b *testing.B) {
				b.StopTimer()
				at = 0
				waiting := begin(b)
				cycle(b, waiting)
				cycle(b, finished(before))
				cycle(b, nil)
				spent = 0
				for range b.N {
					events := events()
					b.StartTimer()
					cycle(b, events)
					b.StopTimer()
				}
				report(b)
			})
		}
		again("nothing new", 0, func() []cache.Event { return nil })
		again("one pod finished", 0, func() []cache.Event { return finished(1) })
		again("1000 pods finished", 0, func() []cache.Event { return finished(1000) })
		again("one pod finished after 1000", 1000, func() []cache.Event { return finished(1) })
	}
}
