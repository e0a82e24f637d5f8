package job

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/internal/controllers/job/plugins"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
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

// maxPods is how many pods a Job may have: more than the largest clusters hold, so that no Job that could ever run is refused, and
// few enough that one that was written by mistake is no burden to others, and that all sums are within int32.
const maxPods = 1_000_000

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
	if problem := TooLarge(job); problem != nil {
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
	_, pluginProblems := plugins.New(job, PodName)
	problems = append(problems, pluginProblems...)
	minAvailable, replicas := job.Spec.MinAvailable, totalReplicas(job)
	switch {
	case minAvailable < 0:
		problems = append(problems, field.Invalid(spec.Child("minAvailable"), minAvailable, "job 'minAvailable' must be >= 0"))
	case minAvailable > replicas:
		problems = append(problems, field.Invalid(spec.Child("minAvailable"), minAvailable,
			fmt.Sprintf("job 'minAvailable' should not be greater than total replicas in tasks, which is %d", replicas)))
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

// validatePolicies reports policies that answer nothing, or of which more than one would answer the same.
func validatePolicies(policies batch.LifecyclePolicies, path *field.Path) field.ErrorList {
	problems := validateWords(policies, path)
	seen := sets.New[string]()
	once := func(path *field.Path, value, format string) {
		if seen.Has(value) {
			problems = append(problems, duplicate(path, value, format, value))
		}
		seen.Insert(value)
	}
	for i := range policies {
		policy, path := &policies[i], path.Index(i)
		events := eventsNamed(policy)
		switch {
		case policy.ExitCode != nil && len(events) > 0:
			problems = append(problems, field.Invalid(path.Child("exitCode"), *policy.ExitCode, "must not specify event and exitCode simultaneously"))
		case policy.ExitCode == nil && len(events) == 0:
			problems = append(problems, field.Required(path.Child("event"), "either event and exitCode should be specified"))
		case policy.ExitCode != nil && *policy.ExitCode == 0:
			problems = append(problems, field.Invalid(path.Child("exitCode"), 0, "0 is not a valid error code: it is success, and cannot be answered"))
		case policy.ExitCode != nil:
			once(path.Child("exitCode"), fmt.Sprint(*policy.ExitCode), "duplicate exitCode %s")
		}
		for _, event := range events {
			if !slices.Contains(answerable[:], event) {
				continue
			}
			once(path.Child("event"), string(event), "duplicate event %s  across different policy") // with Volcano's two spaces
		}
		if delay(policy) < 0 {
			problems = append(problems, field.Invalid(path.Child("timeout"), policy.Timeout.Duration.String(), "must not be negative"))
		}
	}
	if seen.Has(string(bus.AnyEvent)) && slices.ContainsFunc(answerable[1:], func(event bus.Event) bool { return seen.Has(string(event)) }) {
		problems = append(problems, field.Invalid(path, bus.AnyEvent, "if there's * here, no other policy should be here: it stands for all events"))
	}
	return problems
}

// ValidateFirst reports some of what Validate does: what the schema of the custom resource refuses as well, which is asked before
// validating webhooks are, in words of its own where scripts know those of Volcano.
func ValidateFirst(job *batch.Job) field.ErrorList {
	spec := field.NewPath("spec")
	problems := append(validateMountPaths(job), validateWords(job.Spec.Policies, spec.Child("policies"))...)
	for i := range job.Spec.Tasks {
		problems = append(problems, validateWords(job.Spec.Tasks[i].Policies, spec.Child("tasks").Index(i).Child("policies"))...)
	}
	return problems
}

// validateWords reports actions and events of policies that there are not.
func validateWords(policies batch.LifecyclePolicies, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i := range policies {
		policy, path := &policies[i], path.Index(i)
		if !slices.Contains(actions[:], policy.Action) {
			problems = append(problems, field.Invalid(path.Child("action"), policy.Action, fmt.Sprintf("invalid policy action: valid actions are %v", actions)))
		}
		for _, event := range eventsNamed(policy) {
			if !slices.Contains(answerable[:], event) {
				problems = append(problems, field.Invalid(path.Child("event"), event, fmt.Sprintf("invalid policy event: valid events are %v", answerable)))
			}
		}
	}
	return problems
}

// eventsNamed are the events that a policy names, in order. One that is named twice is meant once.
func eventsNamed(policy *batch.LifecyclePolicy) []bus.Event {
	return slices.Compact(slices.Sorted(slices.Values(eventsOf(policy))))
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
		for _, message := range validation.IsDNS1123Subdomain(ClaimName(job, i)) {
			problems = append(problems, field.Invalid(path.Child("volumeClaimName"), ClaimName(job, i),
				fmt.Sprintf("invalid VolumeClaimName %s : [%s]", ClaimName(job, i), message)))
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

// answerable are the events a policy may name; AnyEvent comes first.
var answerable = [...]bus.Event{bus.AnyEvent, bus.PodFailedEvent, bus.PodEvictedEvent, bus.PodPendingEvent,
	bus.JobUnknownEvent, bus.TaskCompletedEvent, bus.TaskFailedEvent, bus.JobUpdatedEvent}

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
	longest := PodName(job, task.Name, int(max(task.Replicas-1, 0)))
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

// NotHonoured lists the fields that the Job sets and that this version accepts without acting on them, as paths. Of arguments of
// job plugins it is those that the plugin does not know, or no longer.
func NotHonoured(job *batch.Job) []string {
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
			// Every pod is pending at first: what Volcano accepts would restart the Job over and over, or end it at once.
			if slices.Contains(eventsOf(&policies[i]), bus.PodPendingEvent) && delay(&policies[i]) == 0 {
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
	return append(fields, pluginsOf(job).Ignored()...)
}
