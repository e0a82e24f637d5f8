package queueing

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Demand is as many places as the controller of Jobs fills with pods at a time: the parallelism, as long as so many
// completions are left. A pod that has succeeded has a successor while there are more, and so has one that has failed.
// Of a Job whose end is decided no more pods are made.
func (j BatchJob) Demand() []Demand {
	parallelism := ptr.Deref(j.Spec.Parallelism, 1)
	has := j.Status.Active + ptr.Deref(j.Status.Terminating, 0)
	d := Demand{Name: v1beta2.DefaultPodSetName, Count: j.count(), Has: has}
	d.Ended = max(d.Count-min(j.left(), parallelism), 0)
	return []Demand{d}
}

// KeepsCounts reports that the parallelism of a Job is that with which it is admitted.
func (j BatchJob) KeepsCounts() bool { return false }

// left is how many pods there are still to be, at most parallelism at a time.
func (j BatchJob) left() int32 {
	switch parallelism := ptr.Deref(j.Spec.Parallelism, 1); {
	case j.isDecided():
		return 0
	case j.Spec.Completions == nil:
		return j.leftOfQueue(parallelism)
	case j.isIndexed():
		// The status may be older than the number of indexes of an elastic Job, so they are counted afresh.
		completions := *j.Spec.Completions
		return max(completions-indexes(j.Status.CompletedIndexes, completions)-indexes(ptr.Deref(j.Status.FailedIndexes, ""), completions), 0)
	default:
		return max(*j.Spec.Completions-j.succeeded(), 0)
	}
}

// leftOfQueue is for a Job without completions. Until one pod has succeeded it has all of them, and from then on no pod
// has a successor.
func (j BatchJob) leftOfQueue(parallelism int32) int32 {
	succeeded := j.succeeded()
	if succeeded == 0 {
		return parallelism
	}
	has := j.Status.Active + ptr.Deref(j.Status.Terminating, 0)
	if u := j.Status.UncountedTerminatedPods; u != nil {
		has += int32(len(u.Failed))
	}
	if has+succeeded+j.Status.Failed < parallelism {
		return max(parallelism-succeeded, 0) // some pods do not show in the status yet, or were never made
	}
	return min(has, parallelism)
}

// succeeded counts pods that the status does not count yet, too.
func (j BatchJob) succeeded() int32 {
	if u := j.Status.UncountedTerminatedPods; u != nil {
		return j.Status.Succeeded + int32(len(u.Succeeded))
	}
	return j.Status.Succeeded
}

// isDecided reports whether the Job has succeeded or failed, though its last pods may not be gone.
func (j BatchJob) isDecided() bool {
	for _, c := range j.Status.Conditions {
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget:
			if c.Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}

func (j BatchJob) isIndexed() bool {
	return ptr.Deref(j.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// indexes is how many indexes below a number a text has, such as 1,3-5,7. What cannot be read counts none.
func indexes(text string, below int32) (count int32) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 32)
		last, problem := strconv.ParseInt(to, 10, 32)
		if err != nil || problem != nil || first < 0 {
			continue
		}
		count += max(min(int32(last)+1, below)-int32(first), 0)
	}
	return count
}
