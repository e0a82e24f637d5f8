package admission

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/admission/corerules"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/controllers/cronjob"
	"hekla.sh/hekla/pkg/controllers/job"
)

// judgeCronJob says what is wrong with a CronJob and with the Jobs that it would make. What was wrong before stays unsaid.
func judgeCronJob(_ context.Context, s *server, _ client.Reader, asked change[*batch.CronJob]) (ruling, error) {
	schedulerName := s.settings.Load().schedulerNames[0]
	problems := problemsOfCronJob(asked.after, schedulerName)
	if asked.before == nil {
		return ruling{problems: problems}, nil
	}
	return ruling{problems: without(problems, problemsOfCronJob(asked.before, schedulerName))}, nil
}

func problemsOfCronJob(cronJob *batch.CronJob, schedulerName string) field.ErrorList {
	problems := cronjob.Validate(cronJob)
	made := &batch.Job{Spec: *cronJob.Spec.JobTemplate.Spec.DeepCopy()}
	// What the name lacks to that of a Job is digits; one that is too long has been told of.
	made.Name = cronJob.Name[:min(len(cronJob.Name), cronjob.MaxNameLength)] + "-" + strings.Repeat("0", 10)
	return append(problems, below(field.NewPath("spec", "jobTemplate"), problemsOfTemplate(made, schedulerName))...)
}

// problemsOfTemplate says what would be wrong with a Job that others make from a template.
func problemsOfTemplate(made *batch.Job, schedulerName string) field.ErrorList {
	setDefaults(made, schedulerName)
	problems := job.ValidateNew(made)
	for i := range made.Spec.Tasks {
		problems = append(problems, corerules.PodTemplate(&made.Spec.Tasks[i].Template, field.NewPath("spec", "tasks").Index(i).Child("template"))...)
	}
	return problems
}

// below returns the problems of what is a part of something else, under the path of that part.
func below(path *field.Path, problems field.ErrorList) field.ErrorList {
	for _, problem := range problems {
		problem.Field = path.String() + "." + problem.Field
	}
	return problems
}

// without returns the problems that were not there before.
func without(problems, before field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(problems, func(p *field.Error) bool {
		return slices.ContainsFunc(before, func(b *field.Error) bool { return b.Error() == p.Error() })
	})
}
