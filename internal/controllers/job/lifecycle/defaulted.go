package lifecycle

import (
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Defaulted returns a copy of the Job with all defaults filled in. Other functions of this package need it where they
// ask for a defaulted Job.
func Defaulted(job *batch.Job, schedulerName string) *batch.Job {
	job = job.DeepCopy()
	if job.Spec.SchedulerName == "" {
		job.Spec.SchedulerName = schedulerName
	}
	batch.SetDefaults(job)
	return job
}
