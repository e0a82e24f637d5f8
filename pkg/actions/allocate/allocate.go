package allocate

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/actions/backfill"
	"hekla.sh/hekla/pkg/actions/enqueue"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the action in the configuration.
const Name = "allocate"

// Factory makes the action.
func Factory() framework.ActionFactory {
	return framework.ActionFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{framework.RefusalCache()}},
		New:  func(conf.Arguments) (framework.Action, error) { return action{}, nil },
	}
}

type action struct{}

func (action) Name() string { return Name }

// PlaceFirst places pods as the action would in the turn of their job.
func (action) PlaceFirst(s *framework.Session, j *cluster.Job, pods int) {
	r, waiting := newRun(s), j.Count(cluster.Pending)
	for !j.IsPendingAdmission() && r.isCandidate(j, false) && waiting-j.Count(cluster.Pending) < pods {
		if v := s.Overused(j.Queue); v != nil {
			s.AddVerdict(j, s.WaitForQuota(j, v))
			return
		}
		if !r.place(j) {
			return
		}
	}
}

// run is one run of the action.
type run struct {
	session *framework.Session
	jobs    map[*cluster.Queue]*framework.Heap[*cluster.Job]
	pending map[*cluster.Job][]*cluster.Task // the tasks still to place, of the jobs that had a turn
	refused map[shape]refusal
}

func newRun(s *framework.Session) *run {
	return &run{session: s, jobs: map[*cluster.Queue]*framework.Heap[*cluster.Job]{}, pending: map[*cluster.Job][]*cluster.Task{},
		refused: map[shape]refusal{}}
}

func (action) Execute(s *framework.Session) {
	r := newRun(s)
	jobs := map[*cluster.Queue][]*cluster.Job{}
	for _, q := range s.Queues() {
		jobs[q] = r.candidates(s.FirstJobs(q))
	}
	queues := r.addPlanned(jobs)
	for _, q := range queues {
		r.jobs[q] = framework.NewHeap(jobs[q], s.CompareJobs)
	}
	turn := framework.NewHeap(queues, s.CompareQueues)
	for turn.Len() > 0 {
		if !r.serve(turn.First()) {
			turn.Pop()
		}
		if s.Policy.Hierarchical {
			turn.Reorder()
		} else if turn.Len() > 0 {
			turn.FixFirst()
		}
	}
}

// candidates returns those of a queue's jobs that have something to place.
func (r *run) candidates(of []*cluster.Job) []*cluster.Job {
	s := r.session
	admits := !s.Policy.Has(enqueue.Name)
	var jobs []*cluster.Job
	of = slices.Clone(of)
	for i := 0; i < len(of); i++ {
		if j := of[i]; r.isCandidate(j, admits) {
			jobs = append(jobs, j)
		} else {
			of = append(of, s.JoinBehind(j)...)
		}
	}
	return jobs
}

func (r *run) isCandidate(j *cluster.Job, admits bool) bool {
	s := r.session
	if j.Plan != nil {
		return false // see addPlanned
	}
	if j.IsPendingAdmission() {
		if !admits {
			return false
		}
		s.Admit(j)
	}
	// A job that was admitted in this cycle may have no pods yet.
	if v := s.Validate(j); v != nil {
		s.AddVerdict(j, v)
		return false
	}
	return j.Count(cluster.Pending) > 0
}

// addPlanned adds the jobs with a plan in force. In their turn they too are placed on nodes that have become free. It
// returns the queues that have jobs, by name.
func (r *run) addPlanned(jobs map[*cluster.Queue][]*cluster.Job) []*cluster.Queue {
	s := r.session
	for _, p := range s.Cluster.Plans().InOrder() {
		if j := p.Job; j != nil && s.Cluster.Plans().HasChanged(p) && s.Validate(j) == nil {
			jobs[j.Queue] = append(jobs[j.Queue], j)
		}
	}
	var queues []*cluster.Queue
	for q := range jobs {
		if len(jobs[q]) > 0 {
			queues = append(queues, q)
		}
	}
	slices.SortFunc(queues, cluster.CompareQueues)
	return queues
}

// serve serves one job of a queue. It reports whether the queue has more to place.
func (r *run) serve(q *cluster.Queue) bool {
	s, jobs := r.session, r.jobs[q]
	if v := s.Overused(q); v != nil {
		for jobs.Len() > 0 {
			j := jobs.Pop()
			if j.Plan == nil && !s.LacksRoom(j) {
				s.AddVerdict(j, s.WaitForQuota(j, v))
			}
			r.addBehind(j)
		}
		return false
	}
	more := false
	s.LookAt(jobs.First(), func() { more = r.place(jobs.First()) })
	if more {
		jobs.FixFirst()
	} else {
		r.addBehind(jobs.Pop())
	}
	return jobs.Len() > 0
}

// addBehind adds the jobs that wait for the same room as one that has had its turn, if the room is still there.
func (r *run) addBehind(j *cluster.Job) {
	for _, next := range r.candidates(r.session.JoinBehind(j)) {
		r.jobs[j.Queue].Push(next)
	}
}

// place places the next part of a job and reports whether there is more to place.
func (r *run) place(j *cluster.Job) bool {
	s := r.session
	if takePlaces(s, j) && j.Count(cluster.Pending) == 0 {
		s.AddVerdict(j, nil)
		return false
	}
	if s.LacksRoom(j) {
		return false
	}
	if v := s.HeldUp(j); v != nil {
		if j.Plan == nil {
			s.AddVerdict(j, v)
		}
		return false
	}
	if j.Plan != nil {
		return r.placePlanned(j)
	}
	tasks, known := r.pending[j]
	if !known {
		tasks = s.Pending(j)
	}
	x := s.Begin()
	if !s.IsReady(j) {
		if v := s.StillRefused(j); v != nil && gang.WouldRepeat(s, tasks[0], v) {
			s.AddVerdict(j, v)
			return false
		}
		if v := r.placeGang(j, tasks); v != nil {
			s.NoteRefused(j, v)
			s.AddVerdict(j, s.WaitForQuota(j, v))
			return false
		}
		tasks = remaining(tasks)
	} else {
		var v *verdict.Verdict
		if tasks, v = r.placeNext(x, tasks); v != nil {
			s.AddVerdict(j, s.WaitForQuota(j, v))
			return false
		}
	}
	if !plans.KeepPromises(s, x.Tasks(), j.Plan) {
		x.Undo()
		s.AddVerdict(j, plans.BreaksPromises())
		return false
	}
	x.Commit()
	r.pending[j] = tasks
	s.AddVerdict(j, nil)
	return len(tasks) > 0
}

// placePlanned places all tasks of a job's plan on free nodes. That ends the plan, and victims that are not evicted yet
// stay. If not all of them fit, the plan stays in force, and a job that has started may place one of its other tasks.
func (r *run) placePlanned(j *cluster.Job) (more bool) {
	s, p := r.session, j.Plan
	if _, isNext := r.pending[j]; !isNext {
		x := s.Begin()
		if plans.PlaceElsewhere(s, x, p, r.placeAll) {
			x.Commit()
			plans.Fulfil(s, p)
			s.AddVerdict(j, nil)
			r.pending[j] = remaining(s.Pending(j))
			return len(r.pending[j]) > 0
		}
		x.Undo()
		r.pending[j] = remaining(s.Pending(j))
	}
	if !s.IsReady(j) || len(r.pending[j]) == 0 {
		return false
	}
	x := s.Begin()
	tasks, v := r.placeNext(x, r.pending[j])
	if v != nil || !plans.KeepPromises(s, x.Tasks(), nil) {
		x.Undo()
		return false
	}
	x.Commit()
	r.pending[j] = tasks
	return len(tasks) > 0
}

// placeAll places all of some tasks of a job, and with them as many as the job needs to start.
func (r *run) placeAll(x framework.Transaction, tasks []*cluster.Task) bool {
	s := r.session
	if len(tasks) == 0 || !s.Cluster.DependsOnPods(tasks[0].Class) && s.Placer.Best(tasks[0]) == nil {
		return false // usually there is no room at all; but with affinity, other tasks of the gang may make nodes fit
	}
	if j := tasks[0].Job; !s.IsReady(j) && gang.Place(s, j, tasks) != nil {
		return false
	}
	for _, t := range tasks {
		if t.Status == cluster.Pending && gang.PlaceNext(s, x, t, tasks) != nil {
			return false
		}
	}
	return true
}

// placeNext places the first of the tasks that fits, and returns those after it. Tasks that do not fit now are left for
// a later cycle. If none fits, the verdict covers all of them. There is none if only pods are left that the action
// backfill places.
func (r *run) placeNext(x framework.Transaction, tasks []*cluster.Task) ([]*cluster.Task, *verdict.Verdict) {
	var why *verdict.Verdict
	var failed []*cluster.Task
	var incomplete []*cluster.Subgroup
	for i, t := range tasks {
		if t.BestEffort() || gang.HasFailedAlike(r.session, failed, t) || t.Subgroup != nil && slices.Contains(incomplete, t.Subgroup) {
			continue
		}
		v := gang.PlaceNext(r.session, x, t, tasks)
		switch {
		case v == nil && t.Subgroup == nil:
			return tasks[i+1:], nil
		case v == nil:
			return remaining(tasks), nil // others of its subgroup may have been placed with it
		case t.Subgroup == nil:
			failed = append(failed, t)
		default:
			incomplete = append(incomplete, t.Subgroup) // what keeps one subgroup waiting may not concern another
		}
		why = why.With(v)
	}
	if why == nil && !r.session.Policy.Has(backfill.Name) {
		why = &verdict.Verdict{Code: verdict.Refused, Subject: "the configuration of the scheduler",
			Help:   verdict.HelpJob | verdict.HelpQueue | verdict.HelpPod | verdict.HelpPlaces, // they ask for evictions when others have taken their room
			Detail: "it lacks the action backfill, which places pods that request nothing"}
	}
	return nil, why
}

// remaining returns the tasks still to place. The action backfill places BestEffort tasks beyond the minimum.
func remaining(tasks []*cluster.Task) []*cluster.Task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t *cluster.Task) bool {
		return t.Status != cluster.Pending || t.BestEffort()
	})
}
