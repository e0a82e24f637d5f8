package explain_test

import (
	"fmt"
	"testing"
	"time"

	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// large is a cluster of 5,000 nodes with 10,000 pods that may be evicted, at rest, in which a gang waits.
func large(b *testing.B) *asker {
	const nodes, perNode, size = 5000, 2, 20
	a := newAsker(b, evicting, fixture.PriorityClass("high", 10), fixture.Queue("other", deserved("cpu=10")))
	for i := range nodes {
		a.Set(fixture.Node(fmt.Sprintf("node-%04d", i), "cpu=4"))
	}
	for i := range nodes * perNode {
		group := fmt.Sprintf("gang-%04d", i/size)
		if i%size == 0 {
			a.Set(fixture.Group(group, "default", 1))
		}
		a.Set(fixture.Pod(fmt.Sprintf("pod-%05d", i), fixture.In(group), fixture.As("worker", i%size), fixture.Asks("cpu=2"), preemptable,
			fixture.On(fmt.Sprintf("node-%04d", i%nodes))))
	}
	group, pods := gang("waits", "other", 4, "cpu=8")
	a.Set(group)
	for _, pod := range pods {
		a.Set(pod)
	}
	a.Rest()
	return a
}

// BenchmarkAnswers is what an answer costs the loop on a large cluster.
func BenchmarkAnswers(b *testing.B) {
	a := large(b)
	m := a.model()
	var maker rows.Maker
	small, few := gang("new", "default", 4, "cpu=1")
	preemptor, many := gang("preemptor", "default", 8, "cpu=4")
	class("high")(preemptor)
	for name, ask := range map[string]func() error{
		"job":                      func() error { _, err := m.Job(a.Now, cluster.GroupID(fixture.Key("waits"))); return err },
		"why":                      func() error { _, err := m.Why(a.Now, cluster.GroupID(fixture.Key("waits")), false); return err },
		"why-with-proposals":       func() error { _, err := m.Why(a.Now, cluster.GroupID(fixture.Key("waits")), true); return err },
		"pod":                      func() error { _, err := m.Pod(a.Now, fixture.Key("waits-0")); return err },
		"queue":                    func() error { _, err := m.Queue(a.Now, "default"); return err },
		"board":                    func() error { maker.Board(m, a.Now); return nil },
		"node":                     func() error { _, err := m.Node("node-0000"); return err },
		"submission/nobody-leaves": func() error { _, err := m.Submit(a.Now, small, few); return err },
		"submission/others-leave": func() error {
			answer, err := m.Submit(a.Now, preemptor, many)
			if len(answer.Victims) == 0 {
				b.Fatalf("nobody leaves: %+v", answer)
			}
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCycleWithQuestions is a cycle after a pod has come and another has gone; asked, everything is asked about
// between two.
func BenchmarkCycleWithQuestions(b *testing.B) {
	for _, isAsked := range []bool{false, true} {
		b.Run(fmt.Sprintf("asked=%t", isAsked), func(b *testing.B) {
			a := large(b)
			small, few := gang("new", "default", 4, "cpu=1")
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				if isAsked {
					a.job("waits")
					a.submit(small, few...)
				}
				a.Remove(fixture.Pod(fmt.Sprintf("pod-%05d", i)))
				b.StartTimer()
				a.Now = a.Now.Add(time.Second)
				a.Scheduler.Cycle(a.Now, nil)
			}
		})
	}
}

// backlogged is a cluster of 5,000 nodes without room, in which 10,000 jobs of ten queues wait.
func backlogged(b *testing.B) *asker {
	const nodes, jobs, queues = 5000, 10_000, 10
	a := newAsker(b, evicting)
	for i := range queues {
		a.Set(fixture.Queue(fmt.Sprintf("queue-%d", i)))
	}
	a.Set(fixture.Group("full", "queue-0", 1))
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		a.Set(fixture.Node(name, "cpu=4"), fixture.Pod("full-"+name, fixture.In("full"), fixture.Asks("cpu=3"), fixture.On(name)))
	}
	for i := range jobs {
		name := fmt.Sprintf("job-%05d", i)
		a.Set(fixture.Group(name, fmt.Sprintf("queue-%d", i%queues), 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=2")))
	}
	a.Rest()
	return a
}

// BenchmarkAnswersInABacklog is what an answer costs the loop while 10,000 jobs wait, and how much of its time fifty of
// them take each second.
func BenchmarkAnswersInABacklog(b *testing.B) {
	a := backlogged(b)
	m := a.model()
	for name, ask := range map[string]func() error{
		"why-of-the-last":          func() error { _, err := m.Why(a.Now, cluster.GroupID(fixture.Key("job-09999")), false); return err },
		"why-with-proposals-again": func() error { _, err := m.Why(a.Now, cluster.GroupID(fixture.Key("job-09999")), true); return err },
		"why-of-the-first":         func() error { _, err := m.Why(a.Now, cluster.GroupID(fixture.Key("job-00000")), false); return err },
		"pod":                      func() error { _, err := m.Pod(a.Now, fixture.Key("job-09999-0")); return err },
		"queue":                    func() error { _, err := m.Queue(a.Now, "queue-9"); return err },
		"survey": func() error {
			m.Session(a.Now, func(s *framework.Session) { survey.Of(s, nil) })
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
			const questions = 50
			b.ReportMetric(questions*100*b.Elapsed().Seconds()/float64(b.N), "%-of-the-loop-at-50/s")
		})
	}
}
