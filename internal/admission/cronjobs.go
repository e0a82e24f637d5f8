package admission

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/internal/admission/corerules"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
)

// problemsOfCronJob says what is wrong with a CronJob and with the Jobs that it would make.
func problemsOfCronJob(cronJob *batch.CronJob, s *settings) field.ErrorList {
	problems := append(validation.ValidateCronJob(cronJob), validation.ValidateCronJobInterval(cronJob, s.shortestCronJobInterval)...)
	made := &batch.Job{Spec: *cronJob.Spec.JobTemplate.Spec.DeepCopy()}
	// What the name lacks to that of a Job is digits; one that is too long has been told of.
	made.Name = cronJob.Name[:min(len(cronJob.Name), validation.MaxCronJobNameLength)] + "-" + strings.Repeat("0", 10)
	return append(problems, below(field.NewPath("spec", "jobTemplate"), problemsOfTemplate(made, s.schedulerNames[0]))...)
}

// problemsOfTemplate says what would be wrong with a Job that others make from a template.
func problemsOfTemplate(made *batch.Job, schedulerName string) field.ErrorList {
	setDefaults(made, schedulerName)
	problems := validation.ValidateJobCreate(made)
	for i := range made.Spec.Tasks {
		problems = append(problems, corerules.PodTemplate(&made.Spec.Tasks[i].Template, field.NewPath("spec", "tasks").Index(i).Child("template"))...)
	}
	return problems
}

// Below returns the problems of what is a part of something else, under the path of that part.
func below(path *field.Path, problems field.ErrorList) field.ErrorList {
	for _, problem := range problems {
		problem.Field = path.String() + "." + problem.Field
	}
	return problems
}
