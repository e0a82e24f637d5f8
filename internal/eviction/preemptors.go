package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Preemptors returns the jobs of a queue that may look for victims, in the order of service: those that are admitted,
// have pending tasks, have no plan in force, and do not pause.
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

// AsksForMore reports whether a job that has its minimum asks for room for its further pods, by the rules of guaranteed
// shares.
func AsksForMore(s *framework.Session, j *cluster.Job) bool { return rules.AsksForMore(s, j) }

// InTurn calls look for the jobs that want more pods, such as those that are starving. Each time it takes the first
// queue by the order of queues, and in it the first job by the order of jobs. A plan counts when the next queue is
// chosen, as a placement does in allocate. So of two queues that are otherwise equal, the one that holds less is next.
// A job whose plan is displaced by that has its turn, too. It gets what any action can do for it, since what is left of
// its room must not go to jobs behind it (rule S6). InTurn returns all other preemptors in the order of their turns,
// also those that want no more.
func InTurn(s *framework.Session, wantsMore func(j *cluster.Job) bool, look func(j *cluster.Job)) (preemptors []*cluster.Job) {
	t := newTurns(s)
	for t.queues.Len() > 0 {
		j, before := t.next(), s.Decided()
		if p := t.displaced[j]; p != nil {
			plans.Resume(s, p)
		} else {
			preemptors = append(preemptors, j)
			if wantsMore(j) {
				s.LookAt(j, func() { look(j) })
			}
		}
		if s.Decided() != before {
			t.addDisplaced()
			t.queues.Reorder() // a plan changes what its queue and the queues of its victims hold
		}
	}
	return preemptors
}

// turns are the preemptors that are still to be looked at.
type turns struct {
	session   *framework.Session
	queues    *framework.Heap[*cluster.Queue] // that have some
	left      map[*cluster.Queue][]*cluster.Job
	displaced map[*cluster.Job]*cluster.Plan // the last plan of those whose plan another has displaced
}

func newTurns(s *framework.Session) *turns {
	t := &turns{session: s, left: map[*cluster.Queue][]*cluster.Job{}, displaced: map[*cluster.Job]*cluster.Plan{}}
	var queues []*cluster.Queue
	for _, q := range s.Queues() {
		if t.left[q] = Preemptors(s, q); len(t.left[q]) > 0 {
			queues = append(queues, q)
		}
	}
	t.queues = framework.NewHeap(queues, s.CompareQueues)
	return t
}

// next removes the next job.
func (t *turns) next() *cluster.Job {
	q := t.queues.First()
	j := t.left[q][0]
	if t.left[q] = t.left[q][1:]; len(t.left[q]) == 0 {
		t.queues.Pop()
	}
	return j
}

// addDisplaced adds the jobs whose plans have ended since.
func (t *turns) addDisplaced() {
	for _, p := range t.session.Cluster.Plans().TakeInterrupted() {
		q := p.Job.Queue
		if len(t.left[q]) == 0 {
			t.queues.Push(q)
		}
		t.displaced[p.Job] = p
		t.left[q] = append(t.left[q], p.Job)
		slices.SortStableFunc(t.left[q], t.session.CompareJobs)
	}
}
