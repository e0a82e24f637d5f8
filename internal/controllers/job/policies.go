package job

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// demand is an action that a policy or a Command asks for, of the whole Job, a task of it, or one pod.
type demand struct {
	action          bus.Action
	task, index     int
	reason, message string
}

// commanded is what a Command demands, of the whole Job.
func commanded(action bus.Action, message string) demand {
	return demand{action, none, none, batch.CommandIssuedReason, message}
}

// isPartial says whether the action is for a part of the Job.
func isPartial(action bus.Action) bool {
	return action == bus.RestartTaskAction || action == bus.RestartPartitionAction || action == bus.RestartPodAction
}

// transition returns the phase an action takes a Job to, and false if the action means nothing to a Job in this phase.
//
//	"", Pending, Running   AbortJob → Aborting, TerminateJob → Terminating, CompleteJob → Completing, Restart… → Restarting
//	Restarting             the same but Restart…
//	Aborting, Aborted      ResumeJob → Restarting, TerminateJob → Terminating
//
// Completing, Terminating and the final phases follow no action.
func transition(from batch.JobPhase, action bus.Action) (to batch.JobPhase, follows bool) {
	switch from {
	case "", batch.Pending, batch.Running, batch.Restarting:
		switch action {
		case bus.AbortJobAction:
			return batch.Aborting, true
		case bus.TerminateJobAction:
			return batch.Terminating, true
		case bus.CompleteJobAction:
			return batch.Completing, true
		case bus.RestartJobAction, bus.RestartTaskAction, bus.RestartPartitionAction, bus.RestartPodAction:
			return batch.Restarting, from != batch.Restarting
		}
	case batch.Aborting, batch.Aborted:
		switch action {
		case bus.ResumeJobAction:
			return batch.Restarting, true
		case bus.TerminateJobAction:
			return batch.Terminating, true
		}
	}
	return "", false
}

// answer returns the policy that answers the occurrence, nil if there is none: the first that fits of the task's, and
// only then of the Job's.
func answer(job *batch.Job, o *occurrence) *batch.LifecyclePolicy {
	if o.task != none {
		if policy := firstFit(job.Spec.Tasks[o.task].Policies, o); policy != nil {
			return policy
		}
	}
	return firstFit(job.Spec.Policies, o)
}

func firstFit(policies batch.LifecyclePolicies, o *occurrence) *batch.LifecyclePolicy {
	for i := range policies {
		if fits(&policies[i], o) {
			return &policies[i]
		}
	}
	return nil
}

// fits says whether the policy answers the occurrence. That a pod is pending is news only after a time: without a
// timeout it would be answered the moment the pod is made.
func fits(policy *batch.LifecyclePolicy, o *occurrence) bool {
	if policy.ExitCode != nil && slices.Contains(o.exitCodes, *policy.ExitCode) {
		return true
	}
	if o.event == bus.PodPendingEvent && policy.Delay() == 0 {
		return false
	}
	events := policy.AllEvents()
	return slices.Contains(events, o.event) || slices.Contains(events, bus.AnyEvent)
}

// demands returns what the policies ask for now, and how long it is until the next delayed one is due, 0 if there is
// none. Since says when an occurrence with a delayed answer began.
func demands(job *batch.Job, found []occurrence, since func(*occurrence) time.Time, now time.Time) (due []demand, wait time.Duration) {
	for i := range found {
		o := &found[i]
		policy := answer(job, o)
		if policy == nil {
			continue
		}
		message := fmt.Sprintf("%s: %s", o.what, policy.Action)
		if delay := policy.Delay(); delay > 0 {
			if left := since(o).Add(delay).Sub(now); left > 0 {
				if wait == 0 || left < wait {
					wait = left
				}
				continue
			}
			message = fmt.Sprintf("%s, for more than %s: %s", o.what, delay, policy.Action)
		}
		due = append(due, widened(demand{policy.Action, o.task, o.index, string(o.event), message}))
	}
	return due, wait
}

// widened makes an action for a pod or partition one for the task, or the Job, where no less is known.
func widened(d demand) demand {
	switch {
	case !isPartial(d.action):
		d.task, d.index = none, none
	case d.task == none:
		d.action = bus.RestartJobAction
	case d.index == none:
		d.action = bus.RestartTaskAction
	}
	return d
}

// chosen returns those of the demands to follow in the given phase: the most final one, or all that are for parts.
func chosen(phase batch.JobPhase, asked []demand) []demand {
	var partial []demand
	for _, action := range validation.JobActions() {
		if _, follows := transition(phase, action); !follows {
			continue
		}
		for _, d := range asked {
			switch {
			case d.action != action:
			case isPartial(action):
				partial = append(partial, d)
			default:
				return []demand{d}
			}
		}
	}
	return partial
}

// targets returns the pods that the demands want replaced. Demands for the whole Job have none: raising its version
// makes all of its pods outdated.
func targets(job *batch.Job, pods []*corev1.Pod, asked []demand) []*corev1.Pod {
	var hit []*corev1.Pod
	for t, members := range membersByTask(job, pods) {
		for _, member := range members {
			if slices.ContainsFunc(asked, func(d demand) bool { return concerns(&job.Spec.Tasks[t], d, t, member.index) }) {
				hit = append(hit, member.Pod)
			}
		}
	}
	return hit
}

func concerns(task *batch.TaskSpec, d demand, t, index int) bool {
	if d.task != t {
		return false
	}
	switch d.action {
	case bus.RestartTaskAction:
		return true
	case bus.RestartPartitionAction:
		return task.Partition(d.index) == task.Partition(index)
	case bus.RestartPodAction:
		return d.index == index
	}
	return false
}

// follow returns the status of a Job that follows the demands, of which there is at least one, with pods that have had
// their targets marked. A resumed Job is not charged a retry: it was not the Job that failed.
func follow(job *batch.Job, pods []*corev1.Pod, asked []demand, now time.Time) *batch.JobStatus {
	status := job.Status.DeepCopy()
	count(status, pods)
	status.MinAvailable = job.Spec.MinAvailable
	status.ObservedGeneration = job.Generation
	to, _ := transition(status.State.Phase, asked[0].action)
	if to == batch.Restarting && asked[0].action != bus.ResumeJobAction {
		status.RetryCount++
	}
	if !isPartial(asked[0].action) {
		status.Version++
	}
	enter(job, status, verdict{phase: to}, now)
	status.State.Reason, status.State.Message = asked[0].reason, asked[0].message
	if pause := pause(status); pause > 0 && !isExhausted(job, status) {
		status.State.Message += fmt.Sprintf("; restart %d of %d, pods are made again at %s, after a pause of %s",
			status.RetryCount, job.Spec.MaxRetry, status.State.LastTransitionTime.Add(pause).UTC().Format(time.TimeOnly), pause)
	}
	return status
}
