package scheduler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/cluster"
)

// maxStory is the largest number of journal entries in the story of one job, pod or queue.
const maxStory = 100

// JobStory is why a job waits, and the latest decisions about it.
type JobStory struct {
	Why explain.Why
	// ETA is when it will start, nil if it does not wait.
	ETA   *forecast.ETA
	Story []journal.Entry
}

// Why explains a job by the name by which users call it, with the latest decisions about it. What takes trials is
// looked for if it is wanted: proposals, and when the job will start. Of a job that is gone only the story is known.
func (q *Questions) Why(ctx context.Context, namespace, name string, wantsTrials bool) (JobStory, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (JobStory, error) {
		id, err := m.FindJob(namespace, name)
		if err != nil {
			return JobStory{}, err
		}
		why, err := m.Why(now, id, wantsTrials)
		answer := JobStory{Why: why, Story: s.journal.OfJob(id, maxStory)}
		switch {
		case err != nil:
		case wantsTrials || why.Cause.Never:
			answer.addHolders(s, m, now, id)
			if err := m.Attempt(func() { answer.ETA = s.eta(m, now, id, &why.Cause) }); err != nil {
				answer.ETA = forecast.Unknown(err.Error())
			}
		case why.Cause.Waits:
			answer.ETA = forecast.Unknown(busy)
		}
		return answer, err
	})
}

// WhyWorkload explains a Workload of Kueue's API.
func (q *Questions) WhyWorkload(ctx context.Context, namespace, name string) (JobStory, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (JobStory, error) {
		why, err := m.WhyWorkload(types.NamespacedName{Namespace: namespace, Name: name})
		id := cluster.WorkloadID(namespace, name)
		answer := JobStory{Why: why, ETA: s.workloadETA(now, why.Queued, &why.Cause), Story: s.journal.OfJob(id, maxStory)}
		if err == nil {
			answer.addHolders(s, m, now, id)
		}
		return answer, err
	})
}

// addHolders adds who holds what the job waits for, unless that is too much to look at.
func (a *JobStory) addHolders(s *Scheduler, m *explain.Model, now time.Time, id cluster.JobID) {
	_ = m.Attempt(func() { a.Why.Holders = m.Holders(id, &a.Why, s.forecaster(now).Ends) })
}

// PendingWorkloads lists the Workloads that wait for a ClusterQueue, or, in a namespace, those of a LocalQueue.
func (q *Questions) PendingWorkloads(ctx context.Context, namespace, name string, page queued.Page) ([]queued.Pending, error) {
	return ask(ctx, q, func(_ *Scheduler, m *explain.Model, _ time.Time) ([]queued.Pending, error) {
		if namespace == "" {
			return m.PendingIn(name, page)
		}
		return m.PendingOf(types.NamespacedName{Namespace: namespace, Name: name}, page)
	})
}

// PodStory is the state of a pod, why its job waits while it does, and the latest decisions about the pod.
type PodStory struct {
	Pod   explain.Pod
	Cause *explain.Cause
	Story []journal.Entry
}

// WhyPod explains a pod. Of one that is gone the story is known as long as the journal has it.
func (q *Questions) WhyPod(ctx context.Context, pod types.NamespacedName) (PodStory, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (PodStory, error) {
		story := s.journal.OfPod(pod, maxStory)
		state, err := m.Pod(now, pod)
		if err != nil {
			if len(story) == 0 {
				return PodStory{}, err
			}
			return PodStory{Pod: explain.Pod{Pod: pod.String(), Status: "Gone"}, Story: story}, nil
		}
		return PodStory{Pod: state, Cause: m.PodCause(now, pod), Story: story}, nil
	})
}

// QueueStory is what a queue holds and may hold, and the latest decisions about its jobs.
type QueueStory struct {
	Queue explain.Queue
	Story []journal.Entry
}

// WhyQueue explains a queue.
func (q *Questions) WhyQueue(ctx context.Context, name string) (QueueStory, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (QueueStory, error) {
		state, err := m.Queue(now, name)
		return QueueStory{Queue: state, Story: s.journal.OfQueue(name, maxStory)}, err
	})
}
