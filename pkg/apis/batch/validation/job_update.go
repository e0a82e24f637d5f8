package validation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// The bounds of what of a Job is looked at: the first is that of the definition, which webhooks are asked before; the
// second is far more than a node could run in one pod. What is checked of tasks and containers takes time that grows
// with their squares.
const (
	maxTasks      = 256
	maxContainers = 256
)

// JobTooLarge says which list of a Job is too long for anything else to be said of it, nil if none is.
func JobTooLarge(job *batch.Job) *field.Error {
	path := field.NewPath("spec", "tasks")
	if number := len(job.Spec.Tasks); number > maxTasks {
		return field.TooMany(path, number, maxTasks)
	}
	for i := range job.Spec.Tasks {
		pod := &job.Spec.Tasks[i].Template.Spec
		if number := len(pod.InitContainers) + len(pod.Containers) + len(pod.EphemeralContainers); number > maxContainers {
			return field.TooMany(path.Index(i).Child("template", "spec", "containers"), number, maxContainers)
		}
	}
	return nil
}

// ValidateJobCreate says what keeps a defaulted Job from being created: all that ValidateJob says, and what means two
// things at once. A stored Job may have both a claim and its name, because the name of a claim that was made can be
// written down.
func ValidateJobCreate(job *batch.Job) field.ErrorList {
	problems := ValidateJob(job)
	for i := range job.Spec.Volumes {
		if volume := &job.Spec.Volumes[i]; volume.VolumeClaim != nil && volume.VolumeClaimName != "" {
			problems = append(problems, field.Invalid(field.NewPath("spec", "volumes").Index(i).Child("volumeClaimName"), volume.VolumeClaimName,
				"conflict: If you want to use an existing PVC, just specify VolumeClaimName."+
					"If you want to create a new PVC, you do not need to specify VolumeClaimName"))
		}
	}
	return problems
}

// ValidateJobUpdate says what of a change from one defaulted Job to another cannot be followed, because it is part of
// what already runs. Sizes, retries, the priority class and the time to live may change.
func ValidateJobUpdate(before, after *batch.Job) field.ErrorList {
	var problems field.ErrorList
	keep := func(path *field.Path, before, after any) {
		if !apiequality.Semantic.DeepEqual(before, after) {
			problems = append(problems, field.Forbidden(path, "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: "+
				"this one cannot be changed after creation"))
		}
	}
	was, is, spec := &before.Spec, &after.Spec, field.NewPath("spec")
	keep(spec.Child("schedulerName"), was.SchedulerName, is.SchedulerName)
	keep(spec.Child("queue"), was.Queue, is.Queue)
	keep(spec.Child("volumes"), was.Volumes, withClaimNames(was.Volumes, is.Volumes))
	keep(spec.Child("policies"), was.Policies, is.Policies)
	keep(spec.Child("plugins"), was.Plugins, is.Plugins)
	keep(spec.Child("minSuccess"), was.MinSuccess, is.MinSuccess)
	keep(spec.Child("networkTopology"), was.NetworkTopology, is.NetworkTopology)
	if len(was.Tasks) != len(is.Tasks) {
		return append(problems, field.Forbidden(spec.Child("tasks"), "job updates may not add or remove tasks: they cannot be changed after creation"))
	}
	for i := range is.Tasks {
		was, is, path := &was.Tasks[i], &is.Tasks[i], spec.Child("tasks").Index(i)
		keep(path.Child("name"), was.Name, is.Name)
		keep(path.Child("template"), was.Template, is.Template)
		keep(path.Child("policies"), was.Policies, is.Policies)
		keep(path.Child("topologyPolicy"), was.TopologyPolicy, is.TopologyPolicy)
		keep(path.Child("dependsOn"), was.DependsOn, is.DependsOn)
		keep(path.Child("partitionPolicy"), was.PartitionPolicy, is.PartitionPolicy)
	}
	return problems
}

// withClaimNames returns the volumes without the names of claims that were written down since: of those that were made
// from a volumeClaim.
func withClaimNames(before, after []batch.VolumeSpec) []batch.VolumeSpec {
	if len(before) != len(after) {
		return after
	}
	result := make([]batch.VolumeSpec, len(after))
	for i := range after {
		result[i] = after[i]
		if after[i].VolumeClaim != nil && before[i].VolumeClaimName == "" {
			result[i].VolumeClaimName = ""
		}
	}
	return result
}
