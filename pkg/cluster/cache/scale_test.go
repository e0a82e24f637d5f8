package cache_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/test/fixture"
)

// The size of the cluster that the model must hold in little memory.
const (
	liveNodes  = 5_000
	livePods   = 150_000
	liveInJob  = 20
	liveOnNode = livePods / liveNodes
)

// liveHeap is the size of what is reachable, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func newLiveCluster() *cache.Cache {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	c.Apply(cache.Set{Object: fixture.Queue("default")})
	var texts pods.Texts
	for i := range liveNodes {
		node := fixture.LiveNode(i)
		for _, image := range node.Status.Images { // as the watches do
			for k, name := range image.Names {
				image.Names[k] = texts.One(name)
			}
		}
		c.Apply(cache.Set{Object: node})
	}
	return c
}

// BenchmarkHeap says how many bytes are reachable that were not before 5,000 nodes and 150,000 running pods were taken
// in, as the watches give them: nothing else holds the objects.
func BenchmarkHeap(b *testing.B) {
	for name, made := range map[string]func(i int) *corev1.Pod{
		// One container, one label and one annotation.
		"small pods of gangs": func(i int) *corev1.Pod {
			job := fmt.Sprintf("training-%05d", i/liveInJob)
			return fixture.Pod(fmt.Sprintf("%s-%d", job, i%liveInJob), fixture.In(job), func(p *corev1.Pod) {
				p.Spec.NodeName, p.Status.Phase = fmt.Sprintf("node-%04d.cluster.example.com", i%liveNodes), corev1.PodRunning
			})
		},
		"pods of gangs": func(i int) *corev1.Pod { return livePod(i, i/liveInJob, i%liveInJob) },
		"each its own kind": func(i int) *corev1.Pod {
			pod := livePod(i, i/liveInJob, i%liveInJob)
			pod.Labels["example.com/own"] = fmt.Sprint("value-", i)
			pod.Spec.Containers[0].Env[0].Value = fmt.Sprint("value-", i)
			return pod
		},
	} {
		b.Run(name, func(b *testing.B) {
			var held uint64
			for b.Loop() {
				before := liveHeap()
				c, table := newLiveCluster(), pods.NewTable()
				table.OwnsObjects = true // as that of the watches
				for i := range livePods {
					if pod := made(i); true {
						if i%liveInJob == 0 {
							c.Apply(cache.Set{Object: liveGroup(pod.Namespace, i/liveInJob)})
						}
						c.Apply(cache.Set{Object: table.Of(pod, nil)})
					}
				}
				c.Settle()
				held = liveHeap() - before
				runtime.KeepAlive(c)
			}
			b.ReportMetric(float64(held)/1e6, "MB")
			b.ReportMetric(float64(held)/livePods, "B/pod")
		})
	}
}

func liveGroup(namespace string, job int) *schedulingv1beta1.PodGroup {
	group := fixture.Group(fmt.Sprintf("training-%05d", job), "default", liveInJob)
	group.Namespace = namespace
	return group
}

func livePod(i, job, index int) *corev1.Pod {
	pod := fixture.LivePod(job, index)
	return fixture.LiveRunning(fixture.LiveOn(pod, fmt.Sprintf("node-%04d.cluster.example.com", i%liveNodes)))
}

// BenchmarkEvents applies what a cluster tells of pods that come, are bound, run and go, while 50,000 others run. Every
// pod is shown six times and deleted. Two of the six change nothing that a decision reads. Nodes send heartbeats
// between. It counts the CPU time of the process, so that other work on the machine matters less.
func BenchmarkEvents(b *testing.B) {
	c, table := newLiveCluster(), pods.NewTable()
	for i := range 50_000 {
		c.Apply(cache.Set{Object: table.Of(livePod(i, i/liveInJob, i%liveInJob), nil)})
	}
	c.Settle()
	for name, made := range map[string]func() []cache.Event{
		"of objects":   func() []cache.Event { return wave(5_000) },       // as a simulation has them
		"of kept pods": func() []cache.Event { return kept(wave(5_000)) }, // as the watches give them
	} {
		b.Run(name, func(b *testing.B) {
			events := made()
			b.ReportAllocs()
			runtime.GC()
			begun := cpuTime(b)
			for b.Loop() {
				for i := 0; i < len(events); i += 1000 {
					c.Apply(events[i:min(i+1000, len(events))]...)
					c.Settle()
				}
			}
			b.ReportMetric(float64(len(events))*float64(b.N)/(cpuTime(b)-begun).Seconds(), "events/s")
		})
	}
}

// kept replaces objects by what is kept of them.
func kept(events []cache.Event) []cache.Event {
	table, known := pods.NewTable(), map[types.UID]*pods.Pod{}
	for i, e := range events {
		set, _ := e.(cache.Set)
		if pod, ok := set.Object.(*corev1.Pod); ok {
			known[pod.UID] = table.Of(pod, known[pod.UID])
			events[i] = cache.Set{Object: known[pod.UID]}
		}
	}
	return events
}

// cpuTime is the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// wave are the events of pods that come and go, of many at a time.
func wave(pods int) (events []cache.Event) {
	set := func(o *corev1.Pod) *corev1.Pod { events = append(events, cache.Set{Object: o}); return o }
	const atATime = 1000
	states := make([]*corev1.Pod, atATime)
	each := func(step func(i int, pod *corev1.Pod) *corev1.Pod) {
		for i := range states {
			states[i] = step(i, states[i])
		}
	}
	for first := 0; first < pods; first += atATime {
		job := func(i int) int { return 50_000 + (first+i)/liveInJob }
		each(func(i int, _ *corev1.Pod) *corev1.Pod {
			if i%liveInJob == 0 {
				pod := fixture.LivePod(job(i), 0)
				events = append(events, cache.Set{Object: liveGroup(pod.Namespace, job(i))})
			}
			return set(fixture.LivePod(job(i), i%liveInJob))
		})
		each(func(i int, pod *corev1.Pod) *corev1.Pod {
			return set(fixture.LiveOn(pod, fmt.Sprintf("node-%04d.cluster.example.com", (first+i)*7%liveNodes)))
		})
		each(func(_ int, pod *corev1.Pod) *corev1.Pod { return set(fixture.LiveRunning(pod)) })
		each(func(_ int, pod *corev1.Pod) *corev1.Pod { return set(fixture.LiveBeat(pod)) })
		for i := range atATime {
			events = append(events, cache.Set{Object: fixture.LiveNodeBeat(fixture.LiveNode((first + i) % liveNodes))})
		}
		each(func(_ int, pod *corev1.Pod) *corev1.Pod { return set(fixture.LiveBeat(pod)) })
		each(func(_ int, pod *corev1.Pod) *corev1.Pod { return set(fixture.LiveLeaving(pod)) })
		for i := range states {
			events = append(events, cache.Delete{Object: states[i]})
			if i%liveInJob == 0 {
				events = append(events, cache.Delete{Object: liveGroup(states[i].Namespace, job(i))})
			}
		}
	}
	return events
}
