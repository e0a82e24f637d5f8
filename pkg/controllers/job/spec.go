package job

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/controllers/job/plugins"
)

// defaulted returns a copy of the Job in which nothing is left to be guessed. Every other function of this package that
// asks for a defaulted Job wants one of these.
func defaulted(job *batch.Job, schedulerName string) *batch.Job {
	job = job.DeepCopy()
	if job.Spec.SchedulerName == "" {
		job.Spec.SchedulerName = schedulerName
	}
	batch.SetDefaults(job)
	return job
}

// totalReplicas is how many pods the Job wants.
func totalReplicas(job *batch.Job) int32 {
	var total int32
	for i := range job.Spec.Tasks {
		total += job.Spec.Tasks[i].Replicas
	}
	return total
}

// totalMinAvailable is the sum of the tasks' own minimums.
func totalMinAvailable(job *batch.Job) int32 {
	var total int32
	for i := range job.Spec.Tasks {
		total += *job.Spec.Tasks[i].MinAvailable
	}
	return total
}

// Validate says what makes a defaulted Job impossible to run, with field and value. The schema of the custom resource
// refuses most of it at the door; Jobs stored before a schema was tightened, or under another schema, come in here.
func Validate(job *batch.Job) field.ErrorList {
	var problems field.ErrorList
	spec := field.NewPath("spec")
	problems = append(problems, labelValue(field.NewPath("metadata", "name"), job.Name)...)
	problems = append(problems, labelValue(spec.Child("queue"), job.Spec.Queue)...)
	if len(job.Spec.Tasks) == 0 {
		return append(problems, field.Required(spec.Child("tasks"), "a Job needs at least one task"))
	}
	names := sets.New[string]()
	var taskProblems field.ErrorList
	for i := range job.Spec.Tasks {
		task, path := &job.Spec.Tasks[i], spec.Child("tasks").Index(i)
		if names.Has(task.Name) {
			taskProblems = append(taskProblems, field.Duplicate(path.Child("name"), task.Name))
		}
		names.Insert(task.Name)
		taskProblems = append(taskProblems, validateTask(job.Name, task, path)...)
	}
	if len(taskProblems) > 0 {
		// Sums over tasks that are wrong would only add riddles.
		return append(problems, taskProblems...)
	}
	_, pluginProblems := plugins.New(job, PodName)
	problems = append(problems, pluginProblems...)
	minAvailable, replicas := job.Spec.MinAvailable, totalReplicas(job)
	switch {
	case minAvailable < 0:
		problems = append(problems, field.Invalid(spec.Child("minAvailable"), minAvailable, "must not be negative"))
	case minAvailable > replicas:
		problems = append(problems, field.Invalid(spec.Child("minAvailable"), minAvailable,
			fmt.Sprintf("the tasks have only %d replicas together", replicas)))
	}
	return problems
}

func validateTask(job string, task *batch.TaskSpec, path *field.Path) field.ErrorList {
	if messages := validation.IsDNS1123Label(task.Name); len(messages) > 0 {
		return field.ErrorList{field.Invalid(path.Child("name"), task.Name, messages[0])}
	}
	if task.Replicas < 0 {
		return field.ErrorList{field.Invalid(path.Child("replicas"), task.Replicas, "must not be negative")}
	}
	var problems field.ErrorList
	switch minAvailable := *task.MinAvailable; {
	case minAvailable < 0:
		problems = append(problems, field.Invalid(path.Child("minAvailable"), minAvailable, "must not be negative"))
	case minAvailable > task.Replicas:
		problems = append(problems, field.Invalid(path.Child("minAvailable"), minAvailable,
			fmt.Sprintf("the task has only %d replicas", task.Replicas)))
	}
	longest := PodName(job, task.Name, int(max(task.Replicas-1, 0)))
	if messages := validation.IsDNS1123Subdomain(longest); len(messages) > 0 {
		problems = append(problems, field.Invalid(path.Child("name"), task.Name,
			fmt.Sprintf("the pod name %s cannot be used: %s", longest, messages[0])))
	}
	return problems
}

// labelValue reports what keeps the value from being put on the pods as a label.
func labelValue(path *field.Path, value string) field.ErrorList {
	var problems field.ErrorList
	for _, message := range validation.IsValidLabelValue(value) {
		problems = append(problems, field.Invalid(path, value, "becomes a label of the pods: "+message))
	}
	return problems
}

// NotHonoured lists the fields that the Job sets and that this version accepts without acting on them, as paths.
func NotHonoured(job *batch.Job) []string {
	var fields []string
	used := func(path *field.Path, set bool) {
		if set {
			fields = append(fields, path.String())
		}
	}
	spec := field.NewPath("spec")
	used(spec.Child("volumes"), len(job.Spec.Volumes) > 0)
	used(spec.Child("policies"), len(job.Spec.Policies) > 0)
	used(spec.Child("runningEstimate"), job.Spec.RunningEstimate != nil)
	used(spec.Child("ttlSecondsAfterFinished"), job.Spec.TTLSecondsAfterFinished != nil)
	used(spec.Child("networkTopology"), job.Spec.NetworkTopology != nil)
	for i := range job.Spec.Tasks {
		task, path := &job.Spec.Tasks[i], spec.Child("tasks").Index(i)
		used(path.Child("policies"), len(task.Policies) > 0)
		used(path.Child("topologyPolicy"), task.TopologyPolicy != "" && task.TopologyPolicy != batch.NumaPolicyNone)
		used(path.Child("dependsOn"), task.DependsOn != nil)
		used(path.Child("partitionPolicy"), task.PartitionPolicy != nil)
	}
	return fields
}
