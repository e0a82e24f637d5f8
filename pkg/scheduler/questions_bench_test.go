package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// asking is a scheduler whose cycles follow one another without a pause, while it is asked.
type asking struct {
	*loop.Loop
	tb          testing.TB
	busyCluster busyCluster
	gangs       int
	cycles      int
	asked       int
	rows        rows.Maker
	taken       time.Duration // of CPU time, by questions
	most        time.Duration // by one
}

// cycle runs a cycle after a pod has finished.
func (a *asking) cycle() {
	pod := a.Task(fixture.Key(fmt.Sprintf("run-%06d", a.cycles*7919%(a.busyCluster.nodes*a.busyCluster.perNode)))).Pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	a.cycles++
	a.Now = a.Now.Add(time.Millisecond) // about what it takes
	if result := a.Scheduler.Cycle(a.Now, []cache.Event{cache.Set{Object: pod}}); result.Panic != "" {
		a.tb.Fatal(result.Panic)
	}
}

// ask asks what the users of a busy cluster do: mostly why a job waits. It does what the loop does for a question.
func (a *asking) ask(proposals bool) {
	m, err := a.Scheduler.Reader()
	if err != nil {
		a.tb.Fatal(err)
	}
	began := cpuTime(a.tb)
	i := a.asked * 7919 % a.gangs
	name := cluster.GroupID(fixture.Key(fmt.Sprintf("waits-%05d", i)))
	pod := fixture.Key(name.Name + "-0")
	switch a.asked++; a.asked % 10 {
	case 0:
		_, err = m.Queue(a.Now, a.busyCluster.queue(i))
		a.Scheduler.Journal().OfQueue(a.busyCluster.queue(i), 100)
	case 1, 2:
		_, err = m.Pod(a.Now, pod)
		m.Cause(a.Now, name)
		a.Scheduler.Journal().OfPod(pod, 100)
	default:
		if name, err = m.FindJob(name.Namespace, name.Name); err == nil {
			_, err = m.Why(a.Now, name, proposals)
		}
		a.Scheduler.Journal().OfJob(name, 100)
	}
	if err != nil {
		a.tb.Fatal(err)
	}
	a.took(began)
}

// board makes the rows of the web page.
func (a *asking) board() {
	m, err := a.Scheduler.Reader()
	if err != nil {
		a.tb.Fatal(err)
	}
	began := cpuTime(a.tb)
	a.rows.Board(m, a.Now)
	a.took(began)
}

func (a *asking) took(began time.Duration) {
	took := cpuTime(a.tb) - began
	a.taken, a.most = a.taken+took, max(a.most, took)
}

// pace is how many cycles are run in how much CPU time.
type pace struct {
	cycles int
	spent  time.Duration
}

func (p pace) perSecond() float64 { return float64(p.cycles) / p.spent.Seconds() }

// run runs cycles without a pause for some CPU time, and counts them. Of the questions that are asked meanwhile the
// first few look for proposals.
func (a *asking) run(p *pace, window time.Duration, questions, proposals int) {
	count := 0
	began, spent := cpuTime(a.tb), time.Duration(0)
	for ; spent < window; spent = cpuTime(a.tb) - began {
		if count < questions && spent >= window*time.Duration(count)/time.Duration(questions) {
			a.ask(count < proposals)
			count++
			continue
		}
		a.cycle()
		p.cycles++
	}
	p.spent += spent
}

// BenchmarkCyclesWithQuestions counts the cycles of a scheduler that never pauses, in seconds of CPU time without
// questions and with fifty. The two alternate every tenth of a second, because cycles become faster and slower while
// the backlog changes. In front of 5,000 full nodes 10,000 gangs wait. Of the questions none to two a second look for
// proposals, and the web page may be open.
func BenchmarkCyclesWithQuestions(b *testing.B) {
	const parts, questions, window = 10, 5, 100 * time.Millisecond
	for _, test := range []struct {
		name        string
		queues      int
		preemptable bool // what runs, of which one pod finishes before each cycle
		proposals   int
		page        bool
	}{
		{"one queue", 1, true, 0, false},
		{"ten queues", 10, false, 0, false},
		{"200 queues", 200, true, 0, false},
		{"one queue, two with proposals", 1, true, 2, false},
		{"one queue, two with proposals, and the page", 1, true, 2, true},
	} {
		b.Run(test.name, func(b *testing.B) {
			a := &asking{tb: b, gangs: 10_000, busyCluster: busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: test.preemptable, queues: test.queues}}
			a.Loop = a.busyCluster.fill(b)
			a.Scheduler.Cycle(a.Now, a.busyCluster.waitingGangs(a.gangs, 100, "p0", false))
			var alone, asked pace
			a.run(&alone, window, questions, 1)
			if test.page {
				a.board() // the first makes all rows
			}
			a.asked, a.taken, a.most, alone = 0, 0, 0, pace{}
			b.ResetTimer()
			for range b.N {
				for part := range parts {
					asked := func() {
						if test.page && part == 0 {
							began := cpuTime(b)
							a.board()
							asked.spent += cpuTime(b) - began
						}
						a.run(&asked, window, questions, min(max(test.proposals-part, 0), 1))
					}
					if part%2 == 0 { // a heap that grows favours the first
						a.run(&alone, window, 0, 0)
						asked()
					} else {
						asked()
						a.run(&alone, window, 0, 0)
					}
				}
			}
			b.ReportMetric(alone.perSecond(), "cycles/s-alone")
			b.ReportMetric(asked.perSecond(), "cycles/s-asked")
			b.ReportMetric(100*(1-asked.perSecond()/alone.perSecond()), "%-fewer")
			b.ReportMetric(100*a.taken.Seconds()/asked.spent.Seconds(), "%-of-the-time")
			b.ReportMetric(float64(a.taken.Microseconds())/float64(a.asked), "µs/question")
			b.ReportMetric(float64(a.most.Microseconds()), "µs-longest")
		})
	}
}
