package v1alpha1

import (
	"math"
	"time"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// TotalReplicas is how many pods the Job wants.
func (j *Job) TotalReplicas() int32 {
	var total int32
	for i := range j.Spec.Tasks {
		total = sum(total, j.Spec.Tasks[i].Replicas)
	}
	return total
}

// TotalMinAvailable is the sum of the tasks' own minimums. It is asked of a defaulted Job, whose tasks all have one.
func (j *Job) TotalMinAvailable() int32 {
	var total int32
	for i := range j.Spec.Tasks {
		total = sum(total, *j.Spec.Tasks[i].MinAvailable)
	}
	return total
}

// Task returns the task of a name, nil if there is none.
func (j *Job) Task(name string) *TaskSpec {
	for i := range j.Spec.Tasks {
		if j.Spec.Tasks[i].Name == name {
			return &j.Spec.Tasks[i]
		}
	}
	return nil
}

// Partition is the number of the partition that the index-th pod of the task is in. A task that is not divided is one
// partition.
func (t *TaskSpec) Partition(index int) int {
	if t.PartitionPolicy == nil {
		return 0
	}
	return index / int(t.PartitionPolicy.PartitionSize)
}

// AllEvents are the events that the policy answers, from both of its fields.
func (p *LifecyclePolicy) AllEvents() []bus.Event {
	if p.Event == "" {
		return p.Events
	}
	return append([]bus.Event{p.Event}, p.Events...)
}

// Delay is how long the policy waits before it acts.
func (p *LifecyclePolicy) Delay() time.Duration {
	if p.Timeout == nil {
		return 0
	}
	return p.Timeout.Duration
}

// sum adds two numbers of pods. It is the largest number where theirs is larger.
func sum(a, b int32) int32 {
	return bounded(int64(a) + int64(b))
}

// product multiplies without overflow, as sum adds.
func product(a, b int32) int32 { return bounded(int64(a) * int64(b)) }

func bounded(n int64) int32 { return int32(max(min(n, math.MaxInt32), math.MinInt32)) }
