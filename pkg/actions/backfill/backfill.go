package backfill

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the action in the configuration.
const Name = "backfill"

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

func (action) Execute(s *framework.Session) {
	queues := slices.Clone(s.Queues())
	slices.SortFunc(queues, s.CompareQueues)
	for _, q := range queues {
		jobs := slices.DeleteFunc(slices.Clone(s.Jobs(q)), func(j *cluster.Job) bool { return j.IsPendingAdmission() || j.Plan != nil || s.LacksRoom(j) })
		slices.SortFunc(jobs, s.CompareJobs)
		for _, j := range jobs {
			s.LookAt(j, func() { fill(s, j) })
		}
	}
}

// fill places the tasks of a job that request nothing.
func fill(s *framework.Session, j *cluster.Job) {
	tasks := slices.DeleteFunc(s.Pending(j), func(t *cluster.Task) bool { return !t.BestEffort() })
	if len(tasks) == 0 {
		return
	}
	x := s.Begin()
	if !s.IsReady(j) {
		if v := gang.Place(s, j, tasks); v != nil {
			// The verdict of allocate about the whole job says more than one about a part of it.
			if !s.Judged(j) {
				s.AddVerdict(j, v)
			}
			return
		}
	}
	var failed []*cluster.Task
	for _, t := range tasks {
		if t.Status != cluster.Pending || gang.HasFailedAlike(s, failed, t) {
			continue
		}
		if v := gang.PlaceNext(s, x, t, tasks); v != nil {
			failed = append(failed, t)
			s.AddVerdict(j, v)
		}
	}
	if !plans.KeepPromises(s, x.Tasks(), nil) {
		x.Undo()
		s.AddVerdict(j, plans.BreaksPromises())
		return
	}
	x.Commit()
}
