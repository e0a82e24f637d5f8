package cluster

import (
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/verdict"
)

// Reason returns the code of the reason for which a job waits, and the sentence about it, "" without a verdict. All
// that users read says this: statuses, answers, the page and the metrics.
func (j *Job) Reason() (code verdict.Code, sentence func() string) { return j.ReasonFor(j.Verdict) }

// ReasonFor returns them for a verdict that is not written into the job.
func (j *Job) ReasonFor(v *verdict.Verdict) (code verdict.Code, sentence func() string) {
	if v == nil {
		return "", func() string { return "" }
	}
	if refused := j.podsRefused(v); refused != "" {
		return verdict.FailedCreate, func() string { return refused }
	}
	return v.Reason(), v.Sentence
}

// podsRefused returns why the API server refuses the pods that a job lacks, "" if it does not, or the job waits for
// something else. The controllers have written so to the PodGroup.
func (j *Job) podsRefused(v *verdict.Verdict) string {
	if j.Group == nil || !slices.Contains(lacksPods, v.Code) {
		return ""
	}
	return j.Group.Annotations[schedulingv1beta1.PodsRefusedKey]
}

// lacksPods are the codes of jobs without enough pods.
var lacksPods = []verdict.Code{verdict.NotEnoughTasks, verdict.NotEnoughPodsOfTask}
