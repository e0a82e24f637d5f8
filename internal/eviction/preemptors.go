package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Preemptors returns the jobs of a queue that may look for victims, in the order of service: those that are admitted, have pending tasks,
// have no plan in force, and do not pause.
func Preemptors(s *framework.Session, q *cluster.Queue) []*cluster.Job {
	var jobs []*cluster.Job
	for _, j := range s.Jobs(q) {
		if rules.MayPreempt(s, j) && !s.LacksRoom(j) && !rules.Pauses(s, j) {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, s.CompareJobs)
	return jobs
}

// AsksForMore reports whether a job that has its minimum asks for room for its further pods, by the rules of guaranteed shares.
func AsksForMore(s *framework.Session, j *cluster.Job) bool { return rules.AsksForMore(s, j) }

// InTurn calls look for the jobs that want more pods, such as those that are starving. Each time it takes the first queue by the order of queues, and in it the first job by
// the order of jobs. A plan counts when the next queue is chosen, as a placement does in allocate. So of two queues that are otherwise
// equal, the one that holds less is next. It returns all preemptors in the order of their turns, also those that want no more.
func InTurn(s *framework.Session, wantsMore func(j *cluster.Job) bool, look func(j *cluster.Job)) (preemptors []*cluster.Job) {
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
		if wantsMore(j) {
			s.LookAt(j, func() { look(j) })
		}
		if len(left[q]) == 0 {
			turn.Pop()
		}
		if decisions(s) != before {
			turn.Reorder() // a plan changes what its queue and the queues of its victims hold
		}
	}
	return preemptors
}
