package harness

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Gang starts a job once its minimum is placed, as every configuration in use has it.
type Gang struct{}

// Name is the name in the configuration.
func (Gang) Name() string { return "gang" }

// IsReady reports whether the minimum is placed.
func (Gang) IsReady(j *cluster.Job) bool { return j.Lacks() == 0 }

// Limits keeps queues within numbers of pods, and orders queues and jobs by name, backwards if asked.
type Limits struct {
	Pods            map[string]int // what each queue may hold; absent means any number
	Overuses        map[string]int // from how many on a queue has enough
	AdmissionLimits map[string]int // how many pods a queue admits by minResources, in addition to what is booked
	Backwards       bool
	Asked           []string // which jobs were asked about
}

// Name is the name in the configuration.
func (*Limits) Name() string { return "limits" }

func held(q *cluster.Queue) int {
	return int(q.Own.Allocated.At(resources.Pods))
}

func refusal(q *cluster.Queue, code verdict.Code) *verdict.Verdict {
	return &verdict.Verdict{Code: code, Subject: q.Name, Help: verdict.HelpQueue}
}

// MayAllocate refuses what is beyond Pods.
func (l *Limits) MayAllocate(q *cluster.Queue, _ *cluster.Task) *verdict.Verdict {
	if limit, ok := l.Pods[q.Name]; ok && held(q) >= limit {
		return refusal(q, verdict.OverCapability)
	}
	return nil
}

// Overused refuses what is beyond Overuses.
func (l *Limits) Overused(q *cluster.Queue) *verdict.Verdict {
	if limit, ok := l.Overuses[q.Name]; ok && held(q) >= limit {
		return refusal(q, verdict.OverShare)
	}
	return nil
}

// MayEnqueue refuses what is beyond AdmissionLimits.
func (l *Limits) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	l.Asked = append(l.Asked, j.ID.Name)
	limit, ok := l.AdmissionLimits[j.Queue.Name]
	if ok && j.MinResources.At(resources.Pods)+j.Queue.Own.Inqueue.At(resources.Pods) > int64(limit) {
		return framework.Reject, refusal(j.Queue, verdict.OverCommitted)
	}
	return framework.Permit, nil
}

// CompareJobs orders by name.
func (l *Limits) CompareJobs(a, b *cluster.Job) int {
	return l.sign() * a.ID.Compare(b.ID)
}

// CompareQueues orders by how much a queue holds, then by name.
func (l *Limits) CompareQueues(a, b *cluster.Queue) int {
	if c := held(a) - held(b); c != 0 {
		return c
	}
	return l.sign() * cluster.CompareQueues(a, b)
}

func (l *Limits) sign() int {
	if l.Backwards {
		return -1
	}
	return 1
}
