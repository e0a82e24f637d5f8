package lifecycle

import (
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Defaulted returns a copy of the Job in which nothing is left to be guessed. Every other function of this package that
// asks for a defaulted Job wants one of these.
func Defaulted(job *batch.Job, schedulerName string) *batch.Job {
	job = job.DeepCopy()
	if job.Spec.SchedulerName == "" {
		job.Spec.SchedulerName = schedulerName
	}
	batch.SetDefaults(job)
	return job
}
