package scheduler

import "fmt"

// What the tests outside of the package hold the scheduler to.
const (
	ArrivalPause    = arrivalPause
	GroupingPause   = groupingPause
	UngroupedPause  = ungroupedPause
	UngroupedAtOnce = ungroupedAtOnce
	MaxPanics       = maxPanics
)

// Remembered is of how many jobs, queues and pods the scheduler remembers what it wrote.
func (s *Scheduler) Remembered() int {
	m := &s.writer.memory
	return len(m.jobs) + len(m.queues) + len(m.pods)
}

// Stale says of which objects the scheduler remembers what it wrote though the model holds them no more.
func (s *Scheduler) Stale() (stale []string) {
	m := &s.writer.memory
	for j := range m.jobs {
		if s.cluster.Job(j.ID) != j {
			stale = append(stale, fmt.Sprint("job ", j.ID))
		}
	}
	for q := range m.queues {
		if s.cluster.Queue(q.Name) != q {
			stale = append(stale, "queue "+q.Name)
		}
	}
	for t := range m.pods {
		if s.cluster.Task(t.Key()) != t {
			stale = append(stale, fmt.Sprint("pod ", t.Key()))
		}
	}
	return stale
}
