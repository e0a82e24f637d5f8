package builder

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/podspec"
	"hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// PodGroupName is the name of the PodGroup of a Job.
func PodGroupName(job *batch.Job) string {
	return job.Name + "-" + string(job.UID)
}

// PodGroup makes the PodGroup of a defaulted Job. priority gives the value of a PriorityClass, 0 for one that is not
// known. specOf gives the complete spec of the pods of a task, as [FromTemplate] does. Labels and annotations of the
// Job are carried over, so that whatever the scheduler's plugins read on a PodGroup can be said on the Job.
func PodGroup(job *batch.Job, priority func(class string) int32, specOf func(*batch.TaskSpec) *corev1.PodSpec) *scheduling.PodGroup {
	minTaskMember := make(map[string]int32, len(job.Spec.Tasks))
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		minTaskMember[task.Name] = *task.MinAvailable
	}
	annotations := maps.Clone(job.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[scheduling.SchedulerNameKey] = schedulerOf(job)
	if estimate := job.Spec.RunningEstimate; estimate != nil {
		annotations[scheduling.RunningEstimateKey] = estimate.Duration.String()
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	minResources := minResources(job, priority, specOf)
	return &scheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            PodGroupName(job),
			Namespace:       job.Namespace,
			Labels:          maps.Clone(job.Labels),
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*OwnerReference(job)},
		},
		Spec: scheduling.PodGroupSpec{
			MinMember:         job.Spec.MinAvailable,
			MinTaskMember:     minTaskMember,
			MinResources:      &minResources,
			Queue:             job.Spec.Queue,
			PriorityClassName: job.Spec.PriorityClassName,
			NetworkTopology:   networkTopology(job.Spec.NetworkTopology),
			SubGroupPolicy:    subGroupPolicies(job),
		},
	}
}

// FromTemplate is the spec of the pods of a task where no LimitRange adds to it, and no RuntimeClass.
func FromTemplate(task *batch.TaskSpec) *corev1.PodSpec {
	return podspec.Completed(&task.Template.Spec, podspec.Given{})
}

// schedulerOf names the scheduler that is to admit the Job and start its pods: the one that all templates name, else
// the Job's. It is written on the PodGroup because there are no pods to tell it from before the PodGroup is admitted.
func schedulerOf(job *batch.Job) string {
	name := job.Spec.SchedulerName
	for i := range job.Spec.Tasks {
		switch named := cmp.Or(job.Spec.Tasks[i].Template.Spec.SchedulerName, job.Spec.SchedulerName); {
		case i == 0:
			name = named
		case named != name:
			return job.Spec.SchedulerName
		}
	}
	return name
}

// subGroupPolicies tells the scheduler of the partitions of the tasks.
func subGroupPolicies(job *batch.Job) []scheduling.SubGroupPolicySpec {
	var policies []scheduling.SubGroupPolicySpec
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if task.PartitionPolicy == nil {
			continue
		}
		policies = append(policies, scheduling.SubGroupPolicySpec{
			Name:            task.Name,
			NetworkTopology: networkTopology(task.PartitionPolicy.NetworkTopology),
			SubGroupSize:    &task.PartitionPolicy.PartitionSize,
			MinSubGroups:    &task.PartitionPolicy.MinPartitions,
			LabelSelector:   &metav1.LabelSelector{MatchLabels: map[string]string{batch.TaskSpecKey: task.Name}},
			MatchLabelKeys:  []string{batch.TaskPartitionIDKey},
		})
	}
	return policies
}

func networkTopology(spec *batch.NetworkTopologySpec) *scheduling.NetworkTopologySpec {
	if spec == nil {
		return nil
	}
	// As the API server fills it in, so that nothing seems to differ.
	mode := cmp.Or(scheduling.NetworkTopologyMode(spec.Mode), scheduling.HardNetworkTopologyMode)
	return &scheduling.NetworkTopologySpec{
		Mode:               mode,
		HighestTierAllowed: spec.HighestTierAllowed,
		HighestTierName:    spec.HighestTierName,
	}
}

// minResources is what the first minAvailable pods request together, and what quotas count of them. Each task's own
// minimum comes first if all of them fit into minAvailable, because then the gang cannot start without them. The rest
// of minAvailable is filled with the tasks of highest priority, in the order of the spec among equals.
func minResources(job *batch.Job, priority func(class string) int32, specOf func(*batch.TaskSpec) *corev1.PodSpec) corev1.ResourceList {
	order := make([]*batch.TaskSpec, len(job.Spec.Tasks))
	for i := range job.Spec.Tasks {
		order[i] = &job.Spec.Tasks[i]
	}
	slices.SortStableFunc(order, func(a, b *batch.TaskSpec) int {
		return cmp.Compare(priority(classOf(job, b)), priority(classOf(job, a)))
	})
	left := job.Spec.MinAvailable
	taken := make(map[string]int32, len(order))
	if job.TotalMinAvailable() <= left {
		for _, task := range order {
			taken[task.Name] = *task.MinAvailable
			left -= *task.MinAvailable
		}
	}
	for _, task := range order {
		more := min(left, task.Replicas-taken[task.Name])
		taken[task.Name] += more
		left -= more
	}
	total := corev1.ResourceList{}
	for _, task := range order {
		builder.AddUsage(total, specOf(task), taken[task.Name])
	}
	return total
}
