package forecast

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// holder is what holds nodes now: a job with how much longer it runs, or a pod that leaves.
type holder struct {
	job  *cluster.Job
	task *cluster.Task
	// until is when the pod is gone at the latest, or when the job starts for which victims are leaving; zero if it
	// runs.
	until time.Time
	left  span
}

// collectHolders finds what holds nodes.
func (f *Forecaster) collectHolders(s *framework.Session) {
	c := s.Cluster
	add := func(j *cluster.Job) {
		ran := max(f.now.Sub(f.startOf(j)), 0)
		f.holders = append(f.holders, holder{job: j, left: f.left(j, ran)})
	}
	c.EachJob(func(j *cluster.Job) {
		switch {
		case j.Staying() == 0:
		case j.Plan != nil:
			f.holders = append(f.holders, holder{job: j, until: f.vacated(j.Plan), left: f.left(j, 0)})
		default:
			add(j)
		}
	})
	hasWorkloads := s.Policy.AdmitsWorkloads()
	seen := map[*cluster.Job]bool{}
	for _, n := range c.Nodes() {
		if n.Releasing.IsZero() && !hasWorkloads {
			continue
		}
		for _, t := range n.Tasks() {
			switch {
			case t.Status.Leaves():
				f.holders = append(f.holders, holder{task: t, until: f.gone(t)})
			case t.Job != nil && t.Job.Group == nil && t.Job.Workload != nil && !seen[t.Job]:
				seen[t.Job] = true
				add(t.Job)
			}
		}
	}
}

// startOf is since when a job holds nodes.
func (f *Forecaster) startOf(j *cluster.Job) time.Time {
	if at := f.history.Started(j); !at.IsZero() {
		return at
	}
	started := f.now
	for _, t := range j.Tasks() {
		if t.Node != nil && t.Status.Counts() {
			if at := t.Started(); at.Before(started) {
				started = at
			}
		}
	}
	return started
}

// gone is when a pod that leaves is gone at the latest.
func (f *Forecaster) gone(t *cluster.Task) time.Time {
	if due := t.Due(); !due.IsZero() {
		return due
	}
	return f.now.Add(t.Grace() + lag)
}

// vacated is when the victims of a plan are gone at the latest.
func (f *Forecaster) vacated(p *cluster.Plan) time.Time {
	last := f.now
	for _, t := range p.Victims {
		if at := f.gone(t); at.After(last) {
			last = at
		}
	}
	return last
}

// whole is how long a job runs that has not started.
func (f *Forecaster) whole(j *cluster.Job) *span {
	s, ok := f.spans[j]
	if !ok {
		found := f.left(j, 0)
		s = &found
		f.spans[j] = s
	}
	return s
}
