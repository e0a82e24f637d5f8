package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/internal/jobplugins"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// IgnoredJobFields lists the fields that the Job sets and that this version accepts without acting on them, as paths.
// Of arguments of job plugins it is those that the plugin does not know, or no longer.
func IgnoredJobFields(job *batch.Job) []string {
	var fields []string
	used := func(path *field.Path, set bool) {
		if set {
			fields = append(fields, path.String())
		}
	}
	// Policies are asked only while a Job runs, or is about to, when there is nothing to resume.
	inert := func(path *field.Path, policies batch.LifecyclePolicies) {
		for i := range policies {
			used(path.Index(i).Child("action"), policies[i].Action == bus.ResumeJobAction)
			// Every pod is pending at first: what Volcano accepts would restart the Job over and over, or end it at
			// once.
			if slices.Contains(policies[i].AllEvents(), bus.PodPendingEvent) && policies[i].Delay() == 0 {
				fields = append(fields, fmt.Sprintf("%s (%s without a timeout)", path.Index(i).Child("event"), bus.PodPendingEvent))
			}
		}
	}
	spec := field.NewPath("spec")
	inert(spec.Child("policies"), job.Spec.Policies)
	for i := range job.Spec.Tasks {
		task, path := &job.Spec.Tasks[i], spec.Child("tasks").Index(i)
		inert(path.Child("policies"), task.Policies)
		used(path.Child("topologyPolicy"), task.TopologyPolicy != "" && task.TopologyPolicy != batch.NumaPolicyNone)
	}
	set, _ := jobplugins.New(job, builder.PodName)
	return append(fields, set.Ignored()...)
}
