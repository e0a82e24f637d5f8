package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

var (
	pendingJobs   = prometheus.NewDesc(hekla+"_queue_pending_jobs", "Jobs of the queue that wait, by the reason.", []string{"queue", "reason"}, nil)
	pendingPods   = prometheus.NewDesc(hekla+"_queue_pending_pods", "Pods of the queue that have no node.", []string{"queue"}, nil)
	oldestPending = prometheus.NewDesc(hekla+"_queue_oldest_pending_seconds", "Age of the oldest pod of the queue that has no node.", []string{"queue"}, nil)
	fairnessError = prometheus.NewDesc(hekla+"_queue_fairness_error",
		"Largest part of its share that the queue requests and does not hold, from 0 to 1.", []string{"queue"}, nil)

	waitingSeries = []*prometheus.Desc{pendingJobs, pendingPods, oldestPending, fairnessError}
)

// notTried is the reason of jobs that no cycle has looked at yet.
const notTried = "NotTried"

// line is what waits in a queue.
type line struct {
	reasons map[verdict.Code]int
	pods    int
	oldest  time.Time // zero if no pod waits
}

// waiting reads how many jobs of each queue wait, why, and how long its pods do.
func (r *reader) waiting(c *model.Cluster, now time.Time) {
	lines := map[string]*line{}
	for _, j := range c.Waiting() {
		if j.IsForeign || j.Group == nil || j.QueueName == "" {
			continue
		}
		l := lines[j.QueueName]
		if l == nil {
			l = &line{reasons: map[verdict.Code]int{}}
			lines[j.QueueName] = l
		}
		l.add(j)
	}
	for _, q := range c.Queues() {
		l := lines[q.Name]
		if delete(lines, q.Name); l == nil {
			l = &line{}
		}
		if q.Object != nil {
			r.line(q.Name, l, now)
		}
	}
	for name, l := range lines {
		r.line(name, l, now) // of queues that do not exist
	}
}

func (l *line) add(j *cluster.Job) {
	var code verdict.Code = notTried
	if j.Verdict != nil {
		code = j.Verdict.Code
	}
	l.reasons[code]++
	l.pods += j.Count(cluster.Pending)
	for _, t := range j.Tasks() {
		if at := t.Created(); t.Status == cluster.Pending && !t.IsStandIn && (l.oldest.IsZero() || at.Before(l.oldest)) {
			l.oldest = at
		}
	}
}

func (r *reader) line(queue string, l *line, now time.Time) {
	for code, jobs := range l.reasons {
		r.add(pendingJobs, float64(jobs), queue, string(code))
	}
	r.add(pendingPods, float64(l.pods), queue)
	age := time.Duration(0)
	if !l.oldest.IsZero() {
		age = max(now.Sub(l.oldest), 0)
	}
	r.add(oldestPending, age.Seconds(), queue)
}

// fairness shows the largest part of what a queue deserves that it requests and does not hold. It is 0 for a queue that holds what it
// deserves or requests no more, and there is none for a queue that deserves nothing in particular.
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

// follow notes plans with evictions that have begun, and drops those that were cancelled. A plan that goes on after a restart is not timed anew.
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

// kept returns how long it took until a job got its nodes since pods were evicted for it. ok is false if none were, or if that is timed already.
func (p promises) kept(job cluster.JobID, now time.Time) (took time.Duration, ok bool) {
	since, ok := p[job]
	if ok {
		delete(p, job)
	}
	return max(now.Sub(since), 0), ok
}
