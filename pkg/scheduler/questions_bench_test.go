package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// asking is a scheduler whose cycles follow one another without a pause, while it is asked.
type asking struct {
	*loop.Loop
	tb     testing.TB
	crowd  crowd
	gangs  int
	cycles int
	asked  int
	rows   rows.Maker
	taken  time.Duration // of CPU time, by questions
	most   time.Duration // by one
}

// cycle runs a cycle after a pod has finished.
func (a *asking) cycle() {
	pod := a.Task(fixture.Key(fmt.Sprintf("run-%06d", a.cycles*7919%(a.crowd.nodes*a.crowd.perNode)))).Pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	a.cycles++
	a.Now = a.Now.Add(time.Millisecond) // about what it takes
	if result := a.Scheduler.Cycle(a.Now, []cache.Event{cache.Set{Object: pod}}); result.Panic != "" {
		a.tb.Fatal(result.Panic)
	}
}

// ask asks what the users of a busy cluster do: mostly why a job waits.
func (a *asking) ask(proposals bool) {
	m, err := a.Scheduler.Reader()
	if err != nil {
		a.tb.Fatal(err)
	}
	began := cpuTime(a.tb)
	i := a.asked * 7919 % a.gangs
	name := fmt.Sprintf("waits-%05d", i)
	switch a.asked++; a.asked % 10 {
	case 0:
		_, err = m.Queue(a.Now, a.crowd.queue(i))
	case 1, 2:
		_, err = m.Pod(a.Now, fixture.Key(name+"-0"))
		m.Cause(a.Now, fixture.Key(name))
	default:
		_, err = m.Why(a.Now, fixture.Key(name), proposals)
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

// BenchmarkCyclesBesideQuestions counts the cycles of a scheduler that never pauses, for a second of CPU time without questions and for
// one with fifty. In front of 5,000 full nodes 10,000 gangs wait. Of the questions none to two look for proposals, and the web page
// may be open.
func BenchmarkCyclesBesideQuestions(b *testing.B) {
	const questions, window = 50, time.Second
	for _, test := range []struct {
		name        string
		queues      int
		preemptable bool // what runs, of which one pod finishes before each cycle
		proposals   int
		page        bool
	}{
		{"one queue", 1, true, 0, false},
		{"ten queues", 10, false, 0, false},
		{"one queue, two with proposals", 1, true, 2, false},
		{"one queue, two with proposals, and the page", 1, true, 2, true},
	} {
		b.Run(test.name, func(b *testing.B) {
			a := &asking{tb: b, gangs: 10_000, crowd: crowd{nodes: 5000, perNode: 4, minimum: 10, preemptable: test.preemptable, queues: test.queues}}
			a.Loop = a.crowd.fill(b)
			a.Scheduler.Cycle(a.Now, a.crowd.waitingGangs(a.gangs, 100, "p0", false))
			var alone, beside int
			run := func(asks bool) (cycles int) {
				due, count := time.Duration(0), 0
				for began, spent := cpuTime(b), time.Duration(0); spent < window; spent = cpuTime(b) - began {
					if asks && spent >= due {
						due += window / questions
						a.ask(count < test.proposals)
						if count++; count == questions && test.page {
							a.board()
						}
						continue
					}
					a.cycle()
					cycles++
				}
				return cycles
			}
			run(true)
			a.asked, a.taken, a.most = 0, 0, 0
			b.ResetTimer()
			for i := range b.N { // which comes first alternates, because a heap that grows favours the first
				if i%2 == 0 {
					alone += run(false)
				}
				beside += run(true)
				if i%2 == 1 {
					alone += run(false)
				}
			}
			b.ReportMetric(float64(alone)/float64(b.N), "cycles/s-alone")
			b.ReportMetric(float64(beside)/float64(b.N), "cycles/s-asked")
			b.ReportMetric(100*(1-float64(beside)/float64(alone)), "%-fewer")
			b.ReportMetric(float64(a.taken.Microseconds())/float64(a.asked), "µs/question")
			b.ReportMetric(float64(a.most.Microseconds()), "µs-longest")
		})
	}
}
