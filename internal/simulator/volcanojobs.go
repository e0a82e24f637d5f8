package simulator

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	"hekla.sh/hekla/pkg/apis/batch/dependencies"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	"hekla.sh/hekla/pkg/apis/podspec"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// volcanoJobs does what the controller of Jobs of batch.volcano.sh does.
type volcanoJobs struct{ *simulation }

// begin makes the PodGroup of a Job, unless it is given too, as after `kubectl get -o yaml`. [teller.leftOut]
// names the Jobs that it makes none for.
func (s volcanoJobs) begin(j *batchv1alpha1.Job) error {
	if j.Spec.SchedulerName == "" && len(s.options.SchedulerNames) > 0 {
		j.Spec.SchedulerName = s.options.SchedulerNames[0]
	}
	batchv1alpha1.SetDefaults(j)
	if problems := validation.ValidateJob(j); len(problems) > 0 {
		return fmt.Errorf("Job %s/%s: %w", j.Namespace, j.Name, problems.ToAggregate())
	}
	if !makesPods(j) || !slices.Contains(s.options.SchedulerNames, j.Spec.SchedulerName) || s.queued.HoldVolcanoJob(j) {
		return nil
	}
	group := s.groupOf(j)
	dependencies.HoldBack(group, j, dependencies.HeldBack(j, nil))
	id := groupID(group)
	s.jobs[id] = j
	s.managed[id] = true
	if s.groups[id] == nil {
		group.UID = types.UID("PodGroup " + id.String())
		group.CreationTimestamp = j.CreationTimestamp
		s.setGroup(group)
	}
	return nil
}

// groupOf makes the PodGroup of a Job none of whose tasks waits for another.
func (s volcanoJobs) groupOf(j *batchv1alpha1.Job) *schedulingv1beta1.PodGroup {
	return builder.PodGroup(j, s.priorityOf, func(task *batchv1alpha1.TaskSpec) *corev1.PodSpec {
		return podspec.Completed(&task.Template.Spec, s.input.Given(j.Namespace, &task.Template.Spec))
	})
}

// makePods makes the pods of the Jobs that have been admitted, without those of tasks that wait for others. It reports
// whether it made any.
func (s volcanoJobs) makePods() bool {
	ids := make([]cluster.JobID, 0, len(s.jobs))
	for id := range s.jobs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, cluster.JobID.Compare)
	made := false
	for _, id := range ids {
		if phase := s.groups[id].Status.Phase; phase == "" || phase == schedulingv1beta1.PodGroupPending {
			continue
		}
		j := s.jobs[id]
		held := dependencies.HeldBack(j, s.podsOf(j))
		if len(slices.DeleteFunc(slices.Clone(held), func(why string) bool { return why == "" })) == 0 {
			delete(s.jobs, id)
		}
		s.form(id, j, held)
		s.supplies.prepareJob(j)
		for i := range j.Spec.Tasks {
			if held[i] != "" {
				continue
			}
			for index := range int(j.Spec.Tasks[i].Replicas) {
				pod := builder.Pod(j, &j.Spec.Tasks[i], index)
				key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
				if s.pods[key] != nil {
					continue
				}
				pod.UID = types.UID("Pod " + key.String())
				pod.CreationTimestamp = metav1.NewTime(s.now)
				s.input.CreatePod(pod)
				s.setPod(pod)
				made = true
			}
		}
	}
	return made
}

// podsOf returns the pods of a Job that there are.
func (s volcanoJobs) podsOf(j *batchv1alpha1.Job) (all []*corev1.Pod) {
	for i := range j.Spec.Tasks {
		for index := range int(j.Spec.Tasks[i].Replicas) {
			if pod := s.pods[types.NamespacedName{Namespace: j.Namespace, Name: builder.PodName(j.Name, j.Spec.Tasks[i].Name, index)}]; pod != nil {
				all = append(all, pod)
			}
		}
	}
	return all
}

// form brings the gang of a Job up to date, some of whose tasks have waited for others.
func (s volcanoJobs) form(id cluster.JobID, j *batchv1alpha1.Job, held []string) {
	if !slices.ContainsFunc(j.Spec.Tasks, func(task batchv1alpha1.TaskSpec) bool { return task.DependsOn != nil }) {
		return
	}
	wanted := s.groupOf(j)
	dependencies.HoldBack(wanted, j, held)
	if now := s.groups[id]; now.Spec.MinMember != wanted.Spec.MinMember || !maps.Equal(now.Spec.MinTaskMember, wanted.Spec.MinTaskMember) {
		next := now.DeepCopy()
		next.Spec.MinMember, next.Spec.MinTaskMember = wanted.Spec.MinMember, wanted.Spec.MinTaskMember
		s.shown.write(next, true)
		s.setGroup(next)
	}
}
