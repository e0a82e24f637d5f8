package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Preemptors returns the jobs of a queue that may look for victims, in the order in which they are served: those that were admitted,
// have pods that wait, and have no plan in force.
func Preemptors(s *framework.Session, q *cluster.Queue) []*cluster.Job {
	var jobs []*cluster.Job
	for _, j := range s.Jobs(q) {
		if rules.MayPreempt(s, j) {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, s.CompareJobs)
	return jobs
}

// InTurn has victims looked for by the jobs that are starving: the queue whose turn it is by the order of queues has one of its jobs
// looked at, the first in the order of jobs. What is planned for that counts when the next queue is chosen, as in allocate: of queues
// that are equal otherwise the one that has less comes next, whatever their names. It returns all preemptors in the order in which
// they had their turn, those that are not starving too.
func InTurn(s *framework.Session, look func(j *cluster.Job)) (preemptors []*cluster.Job) {
	left := map[*cluster.Queue][]*cluster.Job{}
	var queues []*cluster.Queue
	for _, q := range s.Queues() {
		if left[q] = Preemptors(s, q); len(left[q]) > 0 {
			queues = append(queues, q)
		}
	}
	turn := framework.NewHeap(queues, s.CompareQueues)
	for turn.Len() > 0 {
		q := turn.First()
		j, before := left[q][0], decisions(s)
		left[q] = left[q][1:]
		preemptors = append(preemptors, j)
		if s.IsStarving(j) {
			s.LookAt(j, func() { look(j) })
		}
		if len(left[q]) == 0 {
			turn.Pop()
		}
		if decisions(s) != before {
			turn.Reorder() // a plan changes what queues hold, those of the victims too
		}
	}
	return preemptors
}
