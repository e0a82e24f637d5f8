package scheduler

import (
	"time"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// busy is why an answer has no forecast if there are too many questions.
const busy = "the scheduler answers many questions now; ask again in some seconds"

// ETA says when a job will start, nil if it does not wait. Only the goroutine that uses the scheduler may call it,
// between cycles.
func (s *Scheduler) ETA(now time.Time, id cluster.JobID) (*forecast.ETA, error) {
	m, err := s.Reader()
	if err != nil {
		return nil, err
	}
	cause := m.Cause(now, id)
	if cause == nil {
		return nil, explain.NotFound{Kind: "PodGroup", Name: id.String()}
	}
	return s.eta(m, now, id, cause), nil
}

// eta says when a job will start that waits for a cause.
func (s *Scheduler) eta(m *explain.Model, now time.Time, id cluster.JobID, c *explain.Cause) (answer *forecast.ETA) {
	j := s.cache.Job(id)
	switch {
	case !c.Waits || j == nil:
		return nil
	case c.Never:
		return forecast.Impossible(c.Message)
	case forecast.Awaits(c.Code) != "":
		return forecast.Unknown(forecast.Awaits(c.Code))
	}
	f := s.forecaster(now)
	m.Trial(func(open func(at time.Time) *framework.Session) { answer = f.Job(j, open) })
	return answer
}

// workloadETA says when a Workload will be admitted, nil if it does not wait in a ClusterQueue.
func (s *Scheduler) workloadETA(now time.Time, w *queued.Workload, c *explain.Cause) *forecast.ETA {
	switch {
	case c.Never:
		return forecast.Impossible(c.Message)
	case w == nil || w.State == queued.Finished || w.State == queued.Admitted || w.State == queued.Reserved || w.State == queued.Leaving:
		return nil
	case w.State == queued.NotQueued:
		return forecast.Unknown("it is in no ClusterQueue")
	case w.State == queued.Promised:
		return forecast.Unknown("others must leave before it, and when they are gone is up to them")
	}
	return s.forecaster(now).Workload(w.ClusterQueue, max(w.Place, 1), w.Of)
}

func (s *Scheduler) forecaster(now time.Time) *forecast.Forecaster {
	return forecast.New(s.history, now, func(j *cluster.Job) int64 {
		if e := s.cache.Workloads.Of(j.Workload); e != nil && e.Object.Spec.MaximumExecutionTimeSeconds != nil {
			return int64(*e.Object.Spec.MaximumExecutionTimeSeconds)
		}
		return 0
	})
}
