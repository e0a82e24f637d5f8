package cache

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/decision"
)

// gangs are pods in gangs of twenty of one shape each, twenty shapes.
func gangs(count int, options ...podOption) []Event {
	events := make([]Event, 0, count+count/20)
	for i := range count {
		name := fmt.Sprintf("g%d", i/20)
		if i%20 == 0 {
			events = append(events, Set{group(name, "q", needs("cpu=20"))})
		}
		events = append(events, Set{pod(fmt.Sprintf("%s-%d", name, i%20), append([]podOption{in(name),
			asks(fmt.Sprintf("cpu=%dm memory=1Gi", 1000+i/20%20))}, options...)...)})
	}
	return events
}

func machinesOf(count int) []Event {
	events := make([]Event, count)
	for i := range events {
		events[i] = Set{node(fmt.Sprintf("n%d", i), "cpu=64 memory=256Gi pods=110")}
	}
	return events
}

// threeLevels are three levels, so that every placement is added up three times.
func threeLevels() []Event {
	return []Event{Set{queue("a", "")}, Set{queue("b", "a")}, Set{queue("q", "b")}}
}

// perPod reports the time and the memory of one pod, when an iteration is over many.
func perPod(b *testing.B, pods int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pods), "ns/pod")
}

func BenchmarkTakingInPodsThatWait(b *testing.B) {
	events := gangs(10_000)
	b.ReportAllocs()
	for b.Loop() {
		c := newCluster(threeLevels()...)
		c.Apply(events...)
		c.Settle()
	}
	perPod(b, 10_000)
}

func BenchmarkTakingInPodsThatRun(b *testing.B) {
	machines := machinesOf(500)
	events := gangs(10_000, phase(corev1.PodRunning))
	for i, event := range events {
		if p, ok := event.(Set).Object.(*corev1.Pod); ok {
			on(fmt.Sprintf("n%d", i%500))(p)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c := newCluster(append(threeLevels(), machines...)...)
		c.Apply(events...)
		c.Settle()
	}
	perPod(b, 10_000)
}

func BenchmarkHearingThatAPodRuns(b *testing.B) {
	c := newCluster(append(threeLevels(), machinesOf(1)...)...)
	c.Apply(Set{group("g", "q")})
	first := func(p *corev1.Pod) { p.Generation = 1 }
	bound, running := Set{pod("p", in("g"), on("n0"), first)}, Set{pod("p", in("g"), on("n0"), first, phase(corev1.PodRunning))}
	b.ReportAllocs()
	for b.Loop() {
		c.Apply(bound)
		c.Apply(running)
	}
}

func BenchmarkAHeartbeat(b *testing.B) {
	c := newCluster(machinesOf(1)...)
	beat := machinesOf(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		c.Apply(beat)
	}
}

// placeable is a model with a gang of a hundred and a hundred nodes.
func placeable() (*Cache, []*cluster.Task) {
	c := newCluster(append(append(threeLevels(), machinesOf(100)...), gangs(100)...)...)
	var tasks []*cluster.Task
	for _, j := range c.Jobs() {
		tasks = append(tasks, j.Tasks()...)
	}
	return c, tasks
}

func BenchmarkPlacingAndUndoing(b *testing.B) {
	c, tasks := placeable()
	b.ReportAllocs()
	for b.Loop() {
		mark := c.Mark()
		for i, t := range tasks {
			c.Place(t, c.Nodes()[i])
		}
		c.Undo(mark)
	}
	perPod(b, len(tasks))
}

func BenchmarkPlacingAndCommitting(b *testing.B) {
	c, tasks := placeable()
	binds := make([]decision.Bind, len(tasks))
	for i, t := range tasks {
		binds[i] = decision.Bind{Pod: t.Key(), UID: t.UID()}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, t := range tasks {
			c.Place(t, c.Nodes()[i])
		}
		for _, t := range tasks {
			c.Commit(t)
		}
		c.Keep()
		b.StopTimer()
		c.TakeBack(binds, birth)
		b.StartTimer()
	}
	perPod(b, len(tasks))
}

func BenchmarkSettlingWhenNothingHappened(b *testing.B) {
	c := newCluster(append(append(threeLevels(), machinesOf(5_000)...), gangs(10_000)...)...)
	b.ReportAllocs()
	for b.Loop() {
		c.Settle()
	}
}

func BenchmarkTheAudit(b *testing.B) {
	c := newCluster(append(append(threeLevels(), machinesOf(500)...), gangs(10_000)...)...)
	b.ReportAllocs()
	for b.Loop() {
		if found := c.Audit(); len(found) > 0 {
			b.Fatal(found)
		}
	}
	perPod(b, 10_000)
}
