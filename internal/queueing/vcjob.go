package queueing

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// VolcanoJobs is the kind of Jobs of batch.volcano.sh.
var VolcanoJobs = &Kind{
	GroupVersionKind: batch.GroupVersion.WithKind("Job"), Controller: "volcano-jobs", KeepsPods: true,
	New: func() Job { return VolcanoJob{&batch.Job{}} }, NewList: func() client.ObjectList { return &batch.JobList{} },
}

// VolcanoJob is a Job of batch.volcano.sh.
type VolcanoJob struct{ *batch.Job }

var _ interface {
	Job
	Unserved
	Selective
} = VolcanoJob{}

// IsQueued reports whether the Job names a LocalQueue and can be queued. Tasks of one Workload are admitted together,
// so none may wait for another.
func (j VolcanoJob) IsQueued() (is bool, why string) {
	if j.Labels[v1beta2.QueueNameLabel] == "" {
		return false, ""
	}
	for i := range j.Spec.Tasks {
		if on := j.Spec.Tasks[i].DependsOn; on == nil || len(on.Name) == 0 {
			continue
		}
		if j.Status.State.Phase != "" {
			return false, ""
		}
		return false, "tasks that start after others (dependsOn) cannot be admitted together with them"
	}
	return true, ""
}

// Object is the Job itself.
func (j VolcanoJob) Object() client.Object { return j.Job }

// Kind is that of Jobs of batch.volcano.sh.
func (j VolcanoJob) Kind() *Kind { return VolcanoJobs }

// IsSuspended reports whether the Job has no pods that are alive.
func (j VolcanoJob) IsSuspended() bool { return !j.IsActive() }

// IsActive reports whether the Job has pods that have not ended.
func (j VolcanoJob) IsActive() bool {
	s := &j.Status
	return s.Pending+s.Running+s.Unknown+s.Terminating > 0
}

// PodSelector selects by the name of the Job, which its controller writes on each pod.
func (j VolcanoJob) PodSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{batch.JobNameKey: j.Name})
}

// Suspend does nothing: the controller of Jobs sees that the Workload is not admitted.
func (j VolcanoJob) Suspend() {}

// NotServed says what a Job asks for that is not served, "" if nothing. It does not start then.
func (j VolcanoJob) NotServed() string { return GrowsUnserved(j) }

// PodSets returns one podset for each task. The only task of which fewer pods are enough may be admitted with fewer, as
// far as minAvailable of the Job is kept. If there are several such tasks none may, since a Workload has one podset at
// most that can shrink.
func (j VolcanoJob) PodSets() []v1beta2.PodSet {
	job := j.DeepCopy()
	batch.SetDefaults(job)
	shrinks, least := shrinking(job)
	var sets []v1beta2.PodSet
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if task.Replicas == 0 {
			continue
		}
		set := v1beta2.PodSet{Name: task.Name, Template: task.Template, Count: task.Replicas}
		if set.Template.Spec.PriorityClassName == "" {
			set.Template.Spec.PriorityClassName = job.Spec.PriorityClassName
		}
		if set.Template.Spec.SchedulerName == "" {
			set.Template.Spec.SchedulerName = job.Spec.SchedulerName
		}
		if task == shrinks {
			set.MinCount = &least
		}
		sets = append(sets, set)
	}
	return RequestTopology(sets)
}

// shrinking is the task of a Job with its defaults of which fewer pods are enough, and how many those are; nil if there
// is none, or several. A task whose pods come in partitions is none.
func shrinking(job *batch.Job) (shrinks *batch.TaskSpec, least int32) {
	total := int32(0)
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		total += task.Replicas
		if *task.MinAvailable >= task.Replicas || task.PartitionPolicy != nil {
			continue
		}
		if shrinks != nil {
			return nil, 0
		}
		shrinks = task
	}
	if shrinks == nil {
		return nil, 0
	}
	least = max(*shrinks.MinAvailable, job.Spec.MinAvailable-(total-shrinks.Replicas), 1)
	if least >= shrinks.Replicas {
		return nil, 0
	}
	return shrinks, least
}

// KeepsCounts reports that the Job says how many pods it wants also while fewer are admitted.
func (j VolcanoJob) KeepsCounts() bool { return true }

// Run checks that the podsets can get what they are to get. The controller of Jobs gives it to their pods.
func (j VolcanoJob) Run(infos []PodSetInfo) error { return VolcanoJob{j.DeepCopy()}.Give(infos) }

// Give adds node selectors, tolerations and labels of the admitted podsets to the tasks of the Job, which has its
// defaults, and takes away the replicas that are not admitted.
func (j VolcanoJob) Give(infos []PodSetInfo) error {
	for i := range infos {
		for t := range j.Spec.Tasks {
			task := &j.Spec.Tasks[t]
			if task.Name != infos[i].Name {
				continue
			}
			if err := infos[i].Apply(&task.Template); err != nil {
				return err
			}
			task.Replicas = min(task.Replicas, infos[i].Count)
		}
	}
	return nil
}

// Restore does nothing: the template was not changed.
func (j VolcanoJob) Restore([]v1beta2.PodSet) {}

// Finished reports whether the Job has ended.
func (j VolcanoJob) Finished() (message string, succeeded, is bool) {
	state := &j.Status.State
	switch state.Phase {
	case batch.Completed:
		return state.Message, true, true
	case batch.Failed, batch.Terminated:
		return state.Message, false, true
	}
	return "", false, false
}

// PodsReady reports whether so many pods run or have succeeded.
func (j VolcanoJob) PodsReady(count int32) bool { return j.Status.Running+j.Status.Succeeded >= count }

// Demand is by task. A pod that has ended is not made again, unless a policy may restart it: then it keeps its place. A
// Job that is aborted or comes to its end makes no pods.
func (j VolcanoJob) Demand() []Demand {
	all := make([]Demand, len(j.Spec.Tasks))
	restartsAny := restarts(j.Spec.Policies, partialRestarts...) ||
		slices.ContainsFunc(j.Spec.Tasks, func(t batch.TaskSpec) bool { return restarts(t.Policies) })
	for i := range j.Spec.Tasks {
		task := &j.Spec.Tasks[i]
		count, d := j.Status.TaskStatusCount[task.Name].Phase, &all[i]
		d.Name, d.Count = task.Name, task.Replicas
		d.Has = count[corev1.PodPending] + count[corev1.PodRunning] + count[corev1.PodUnknown] +
			j.Status.Terminating // the task of a pod that terminates is not known
		switch {
		case j.isEnding():
			d.Ended = task.Replicas
		case !restartsAny && !restarts(task.Policies, partialRestarts...):
			d.Ended = count[corev1.PodSucceeded] + count[corev1.PodFailed]
		}
	}
	return all
}

// partialRestarts are the actions that restart pods of one task.
var partialRestarts = []bus.Action{bus.RestartTaskAction, bus.RestartPartitionAction, bus.RestartPodAction}

// restarts reports whether policies may ask for one of the actions, or for the restart of the whole Job.
func restarts(policies batch.LifecyclePolicies, actions ...bus.Action) bool {
	return slices.ContainsFunc(policies, func(p batch.LifecyclePolicy) bool {
		return p.Action == bus.RestartJobAction || slices.Contains(actions, p.Action)
	})
}

// isEnding reports whether the Job makes no pods any more, unless a Command resumes it.
func (j VolcanoJob) isEnding() bool {
	switch j.Status.State.Phase {
	case "", batch.Pending, batch.Running, batch.Restarting:
		return false
	}
	return true
}
