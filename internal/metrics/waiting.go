package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

var (
	pendingJobs   = prometheus.NewDesc(hekla+"_queue_pending_jobs", "Jobs of the queue that wait, by the reason.", []string{"queue", "reason"}, nil)
	pendingPods   = prometheus.NewDesc(hekla+"_queue_pending_pods", "Pods of the queue that have no node.", []string{"queue"}, nil)
	oldestPending = prometheus.NewDesc(hekla+"_queue_oldest_pending_seconds", "Age of the oldest pod of the queue that has no node.", []string{"queue"}, nil)
	fairnessError = prometheus.NewDesc(hekla+"_queue_fairness_error",
		"Largest part of its share that the queue requests and does not hold, from 0 to 1.", []string{"queue"}, nil)

	waitingSeries = []*prometheus.Desc{pendingJobs, pendingPods, oldestPending, fairnessError}
)

// waiting reads how many jobs of each queue wait, why, and how long its pods do.
func (r *reader) waiting(c *model.Cluster, now time.Time) {
	backlogs := survey.Backlogs(c)
	for _, q := range c.Queues() {
		b := backlogs[q.Name]
		if delete(backlogs, q.Name); b == nil {
			b = &survey.Backlog{}
		}
		if q.Object != nil {
			r.backlog(q.Name, b, now)
		}
	}
	for name, b := range backlogs {
		r.backlog(name, b, now) // of queues that do not exist
	}
	ungrouped := map[string]int{}
	c.EachWithoutGroup(func(j *cluster.Job) {
		reason, _, _ := j.WhyPodsWait()
		ungrouped[reason]++
	})
	for reason, jobs := range ungrouped {
		r.add(pendingJobs, float64(jobs), "", reason) // the PodGroup would say the queue
	}
}

func (r *reader) backlog(queue string, b *survey.Backlog, now time.Time) {
	for reason, jobs := range b.Reasons {
		r.add(pendingJobs, float64(jobs), queue, reason)
	}
	r.add(pendingPods, float64(b.Pods), queue)
	age := time.Duration(0)
	if !b.OldestPod.IsZero() {
		age = max(now.Sub(b.OldestPod), 0)
	}
	r.add(oldestPending, age.Seconds(), queue)
}

// fairness shows the largest part of what a queue deserves that it requests and does not hold. It is 0 for a queue that
// holds what it deserves or requests no more, and there is none for a queue that deserves nothing in particular.
func (r *reader) fairness(q *cluster.Queue, share *framework.Share) {
	worst, isAny := 0.0, false
	for i := range share.Deserved.Len() {
		d := resources.Dim(i)
		deserved, ok := share.Deserved.At(d)
		if !ok || deserved <= 0 || deserved == resources.Unlimited {
			continue
		}
		isAny = true
		claim := min(deserved, q.Subtree.Request.At(d))
		worst = max(worst, float64(claim-q.Subtree.Allocated.At(d))/float64(deserved))
	}
	if isAny {
		r.add(fairnessError, worst, q.Name)
	}
}

// promise is when room was promised to a job for which pods are evicted.
type promises map[cluster.JobID]time.Time

// follow notes plans with evictions that have begun, and drops those that were cancelled. A plan that goes on after a
// restart is not timed again.
func (p promises) follow(started []decision.PlanStart, ended []decision.PlanEnd) {
	for i := range ended {
		delete(p, ended[i].Job)
	}
	for i := range started {
		if s := &started[i]; len(s.Evictions) > 0 && s.Job != (cluster.JobID{}) {
			p[s.Job] = s.Since
		}
	}
}

// kept returns how long it took until a job got its nodes since pods were evicted for it. ok is false if none were, or
// if that is timed already.
func (p promises) kept(job cluster.JobID, now time.Time) (took time.Duration, ok bool) {
	since, ok := p[job]
	if ok {
		delete(p, job)
	}
	return max(now.Sub(since), 0), ok
}
