package scheduler

import (
	"context"
	"time"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/framework"
)

// SurveyStory is the state of the cluster, and the latest evictions.
type SurveyStory struct {
	Survey    survey.Survey
	Evictions []journal.Entry
	// ClusterQueues are those of kueue.x-k8s.io.
	ClusterQueues []queued.ClusterQueue
	// Holders say who holds the resources of which least is free.
	Holders []holders.Holders
	// AdmitsWorkloads says that Workloads are admitted at all, by the configuration in force.
	AdmitsWorkloads bool
}

// maxEvictions is the number of evictions in a survey.
const maxEvictions = 20

// Survey describes the whole cluster, and says how many of some gangs could start now.
func (q *Questions) Survey(ctx context.Context, gangs []survey.Gang) (SurveyStory, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (SurveyStory, error) {
		answer := SurveyStory{Evictions: s.journal.Evictions(maxEvictions), ClusterQueues: m.ClusterQueues(), AdmitsWorkloads: s.policy.AdmitsWorkloads()}
		m.Session(now, func(session *framework.Session) { answer.Survey = survey.Of(session, gangs) })
		answer.Holders = s.holders(m, now)
		return answer, nil
	})
}

// Holders says who holds the resources of which least is free on the nodes.
func (q *Questions) Holders(ctx context.Context) ([]holders.Holders, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) ([]holders.Holders, error) {
		return s.holders(m, now), nil
	})
}

// holders are none if that takes too long.
func (s *Scheduler) holders(m *explain.Model, now time.Time) (found []holders.Holders) {
	_ = m.Attempt(func() { found = m.HoldersOfNodes(s.forecaster(now).Ends) })
	return found
}
