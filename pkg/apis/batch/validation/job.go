package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/internal/jobplugins"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// maxPods is how many pods a Job may have. It is more than the largest clusters run, so that no Job that could ever run
// is refused. A Job written by mistake is then no burden to others, and all sums fit into an int32.
const maxPods = 1_000_000

// ValidateJob says what makes a defaulted Job impossible to run, with field and value. The schema of the custom
// resource refuses most of it first. Jobs that were stored under another schema, such as an earlier one, come in here.
func ValidateJob(job *batch.Job) field.ErrorList {
	if problem := JobTooLarge(job); problem != nil {
		return field.ErrorList{problem}
	}
	var problems field.ErrorList
	spec := field.NewPath("spec")
	for _, problem := range labelValue(field.NewPath("metadata", "name"), job.Name) {
		problem.Detail = fmt.Sprintf("create job with name %s validate failed: %s", job.Name, problem.Detail)
		problems = append(problems, problem)
	}
	problems = append(problems, labelValue(spec.Child("queue"), job.Spec.Queue)...)
	if len(job.Spec.Tasks) == 0 {
		return append(problems, field.Required(spec.Child("tasks"), "No task specified in job spec: a Job needs at least one task"))
	}
	names := sets.New[string]()
	var taskProblems field.ErrorList
	pods := int64(0)
	for i := range job.Spec.Tasks {
		task, path := &job.Spec.Tasks[i], spec.Child("tasks").Index(i)
		if names.Has(task.Name) {
			taskProblems = append(taskProblems, duplicate(path.Child("name"), task.Name, "duplicated task name %s", task.Name))
		}
		names.Insert(task.Name)
		taskProblems = append(taskProblems, validateTask(job.Name, task, path)...)
		before := pods
		if pods += int64(max(task.Replicas, 0)); pods > maxPods && before <= maxPods {
			taskProblems = append(taskProblems, field.Invalid(path.Child("replicas"), task.Replicas,
				fmt.Sprintf("makes %d pods, and a Job may have %d", pods, maxPods)))
		}
	}
	if len(taskProblems) > 0 {
		// Sums over tasks that are wrong would only add riddles.
		return append(problems, taskProblems...)
	}
	_, pluginProblems := jobplugins.New(job, builder.PodName)
	problems = append(problems, pluginProblems...)
	minAvailable, replicas := job.Spec.MinAvailable, job.TotalReplicas()
	switch {
	case minAvailable < 0:
		problems = append(problems, field.Invalid(spec.Child("minAvailable"), minAvailable, "job 'minAvailable' must be >= 0"))
	case minAvailable > replicas:
		problems = append(problems, field.Invalid(spec.Child("minAvailable"), minAvailable,
			fmt.Sprintf("job 'minAvailable' should not be greater than total replicas in tasks, which is %d", replicas)))
	}
	if estimate := job.Spec.RunningEstimate; estimate != nil && estimate.Duration < 0 {
		problems = append(problems, field.Invalid(spec.Child("runningEstimate"), estimate.Duration.String(), "must not be negative"))
	}
	problems = append(problems, validateTopology(job.Spec.NetworkTopology, spec.Child("networkTopology"))...)
	problems = append(problems, validatePolicies(job.Spec.Policies, spec.Child("policies"))...)
	problems = append(problems, validateVolumes(job, spec.Child("volumes"))...)
	return append(problems, validateDependencies(job, names, spec.Child("tasks"))...)
}

// notDAG begins what is said of dependencies that cannot be followed.
const notDAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"

// duplicate is a value that stands there a second time, with a sentence.
func duplicate(path *field.Path, value, format string, arguments ...any) *field.Error {
	problem := field.Duplicate(path, value)
	problem.Detail = fmt.Sprintf(format, arguments...)
	return problem
}

// inTask names a task in a message.
func inTask(job string, task *batch.TaskSpec) string {
	return fmt.Sprintf("in task: %s, job: %s", task.Name, job)
}

// validateDependencies reports tasks that wait for a task that does not exist, or for each other.
func validateDependencies(job *batch.Job, names sets.Set[string], path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i := range job.Spec.Tasks {
		if job.Spec.Tasks[i].DependsOn == nil {
			continue
		}
		for n, name := range job.Spec.Tasks[i].DependsOn.Name {
			if !names.Has(name) {
				problem := field.NotFound(path.Index(i).Child("dependsOn", "name").Index(n), name)
				problem.Detail = notDAG + ": there is no task of this name"
				problems = append(problems, problem)
			}
		}
	}
	if cycle := dependencyCycle(job); cycle != nil {
		problems = append(problems, field.Invalid(path, strings.Join(cycle, " → "), notDAG+": these tasks wait for each other and could never start"))
	}
	return problems
}

// ValidateJobVocabulary reports some of what ValidateJob does: what the schema of the custom resource refuses as well,
// which is asked before validating webhooks are, in words of its own where scripts know those of Volcano.
func ValidateJobVocabulary(job *batch.Job) field.ErrorList {
	spec := field.NewPath("spec")
	problems := append(validateMountPaths(job), validateVocabulary(job.Spec.Policies, spec.Child("policies"))...)
	for i := range job.Spec.Tasks {
		problems = append(problems, validateVocabulary(job.Spec.Tasks[i].Policies, spec.Child("tasks").Index(i).Child("policies"))...)
	}
	return problems
}

func validateMountPaths(job *batch.Job) field.ErrorList {
	var problems field.ErrorList
	paths := sets.New[string]()
	for i := range job.Spec.Volumes {
		mountPath := job.Spec.Volumes[i].MountPath
		if mountPath != "" && paths.Has(mountPath) {
			problems = append(problems, duplicate(field.NewPath("spec", "volumes").Index(i).Child("mountPath"), mountPath, "duplicated mountPath: %s", mountPath))
		}
		paths.Insert(mountPath)
	}
	return problems
}

func validateVolumes(job *batch.Job, path *field.Path) field.ErrorList {
	problems := validateMountPaths(job)
	for i := range job.Spec.Volumes {
		volume, path := &job.Spec.Volumes[i], path.Index(i)
		if volume.MountPath == "" {
			problems = append(problems, field.Required(path.Child("mountPath"), "mountPath is required"))
		}
		if volume.VolumeClaim == nil && volume.VolumeClaimName == "" {
			problems = append(problems, field.Required(path, "either VolumeClaim or VolumeClaimName must be specified: one to be made, or one that exists"))
			continue
		}
		for _, message := range validation.IsDNS1123Subdomain(builder.ClaimName(job, i)) {
			problems = append(problems, field.Invalid(path.Child("volumeClaimName"), builder.ClaimName(job, i),
				fmt.Sprintf("invalid VolumeClaimName %s : [%s]", builder.ClaimName(job, i), message)))
		}
	}
	return problems
}

func validatePartitions(job string, task *batch.TaskSpec, path *field.Path) field.ErrorList {
	partitions, where := task.PartitionPolicy, inTask(job, task)
	switch {
	case partitions == nil:
		return nil
	case partitions.TotalPartitions <= 0:
		return field.ErrorList{field.Invalid(path.Child("totalPartitions"), partitions.TotalPartitions, "'TotalPartitions' must be greater than 0 "+where)}
	case partitions.PartitionSize <= 0:
		return field.ErrorList{field.Invalid(path.Child("partitionSize"), partitions.PartitionSize, "'PartitionSize' must be greater than 0 "+where)}
	case int64(partitions.TotalPartitions)*int64(partitions.PartitionSize) != int64(task.Replicas):
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("%d × %d", partitions.TotalPartitions, partitions.PartitionSize),
			fmt.Sprintf("'Replicas' are not equal to TotalPartitions*PartitionSize %s: they are %d", where, task.Replicas))}
	case partitions.MinPartitions < 0:
		return field.ErrorList{field.Invalid(path.Child("minPartitions"), partitions.MinPartitions, "must not be negative")}
	case partitions.MinPartitions > 0 && int64(partitions.MinPartitions)*int64(partitions.PartitionSize) != int64(*task.MinAvailable):
		return field.ErrorList{field.Invalid(path.Child("minPartitions"), partitions.MinPartitions,
			fmt.Sprintf("'MinAvailable' is not equal to MinPartitions*PartitionSize %s: it is %d", where, *task.MinAvailable))}
	}
	return nil
}

func validateTask(job string, task *batch.TaskSpec, path *field.Path) field.ErrorList {
	if messages := validation.IsDNS1123Label(task.Name); len(messages) > 0 {
		return field.ErrorList{field.Invalid(path.Child("name"), task.Name, messages[0])}
	}
	if task.Replicas < 0 {
		return field.ErrorList{field.Invalid(path.Child("replicas"), task.Replicas, "'replicas' < 0 "+inTask(job, task))}
	}
	var problems field.ErrorList
	switch minAvailable := *task.MinAvailable; {
	case minAvailable < 0:
		problems = append(problems, field.Invalid(path.Child("minAvailable"), minAvailable, "'minAvailable' < 0 "+inTask(job, task)))
	case minAvailable > task.Replicas:
		problems = append(problems, field.Invalid(path.Child("minAvailable"), minAvailable,
			fmt.Sprintf("'minAvailable' is greater than 'replicas' %s: it has only %d", inTask(job, task), task.Replicas)))
	}
	longest := builder.PodName(job, task.Name, int(max(task.Replicas-1, 0)))
	if messages := validation.IsDNS1123Subdomain(longest); len(messages) > 0 {
		problems = append(problems, field.Invalid(path.Child("name"), task.Name,
			fmt.Sprintf("create pod with name %s validate failed [%s]", longest, messages[0])))
	}
	problems = append(problems, validatePartitions(job, task, path.Child("partitionPolicy"))...)
	if task.PartitionPolicy != nil {
		problems = append(problems, validateTopology(task.PartitionPolicy.NetworkTopology, path.Child("partitionPolicy", "networkTopology"))...)
	}
	if task.TopologyPolicy != "" && task.TopologyPolicy != batch.NumaPolicyNone {
		problems = append(problems, validateWholeCPUs(&task.Template.Spec, path.Child("template", "spec", "containers"))...)
	}
	return append(problems, validatePolicies(task.Policies, path.Child("policies"))...)
}

// validateTopology reports a network bound that names its highest tier in two ways.
func validateTopology(topology *batch.NetworkTopologySpec, path *field.Path) field.ErrorList {
	if topology == nil || topology.HighestTierAllowed == nil || topology.HighestTierName == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, topology.HighestTierName, "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other")}
}

// validateWholeCPUs reports containers without CPUs of their own, which cannot be kept on a NUMA node.
func validateWholeCPUs(pod *corev1.PodSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i := range pod.Containers {
		cpu, requests := pod.Containers[i].Resources.Requests[corev1.ResourceCPU]
		if !requests {
			// As for the API server, what is limited and not requested is requested up to the limit.
			cpu = pod.Containers[i].Resources.Limits[corev1.ResourceCPU]
		}
		if millis := cpu.MilliValue(); millis < 1000 || millis%1000 != 0 {
			problems = append(problems, field.Invalid(path.Index(i).Child("resources", "requests").Key(string(corev1.ResourceCPU)), cpu.String(),
				"the cpu request isn't  an integer: a task with a topologyPolicy needs whole CPUs, at least 1 for each container")) // Volcano's two spaces
		}
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

// dependencyCycle returns the names of tasks that wait for each other, in order, nil if there are none.
func dependencyCycle(job *batch.Job) []string {
	const inProgress, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		switch state[name] {
		case inProgress:
			return append(slices.Clone(path[slices.Index(path, name):]), name)
		case done:
			return nil
		}
		state[name] = inProgress
		path = append(path, name)
		if task := job.Task(name); task != nil && task.DependsOn != nil {
			for _, other := range task.DependsOn.Name {
				if cycle := visit(other); cycle != nil {
					return cycle
				}
			}
		}
		path = path[:len(path)-1]
		state[name] = done
		return nil
	}
	for t := range job.Spec.Tasks {
		if cycle := visit(job.Spec.Tasks[t].Name); cycle != nil {
			return cycle
		}
	}
	return nil
}
