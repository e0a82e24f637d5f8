package lifecycle

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// Demand is an action that a policy or a Command asks for, for the whole Job, a task, or one pod.
type Demand struct {
	Action          bus.Action
	task, index     int
	reason, Message string
}

// Commanded is what a Command demands, of the whole Job.
func Commanded(action bus.Action, message string) Demand {
	return Demand{action, None, None, batch.CommandIssuedReason, message}
}

// IsPartial says whether the action is for a part of the Job.
func IsPartial(action bus.Action) bool {
	return action == bus.RestartTaskAction || action == bus.RestartPartitionAction || action == bus.RestartPodAction
}

// Transition returns the phase an action takes a Job to, and false if the action means nothing to a Job in this phase.
//
//	"", Pending, Running   AbortJob → Aborting, TerminateJob → Terminating, CompleteJob → Completing, Restart… → Restarting
//	Restarting             the same but Restart…
//	Aborting, Aborted      ResumeJob → Restarting, TerminateJob → Terminating
//
// Completing, Terminating and the final phases follow no action.
func Transition(from batch.JobPhase, action bus.Action) (to batch.JobPhase, follows bool) {
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

// answer returns the policy for an occurrence, nil if there is none: the first that fits of the task's, then of the
// Job's.
func answer(job *batch.Job, o *Occurrence) *batch.LifecyclePolicy {
	if o.Task != None {
		if policy := firstFit(job.Spec.Tasks[o.Task].Policies, o); policy != nil {
			return policy
		}
	}
	return firstFit(job.Spec.Policies, o)
}

func firstFit(policies batch.LifecyclePolicies, o *Occurrence) *batch.LifecyclePolicy {
	for i := range policies {
		if fits(&policies[i], o) {
			return &policies[i]
		}
	}
	return nil
}

// fits reports whether the policy is for the occurrence. That a pod is pending only counts with a timeout. Otherwise
// every new pod would trigger the policy.
func fits(policy *batch.LifecyclePolicy, o *Occurrence) bool {
	if policy.ExitCode != nil && slices.Contains(o.exitCodes, *policy.ExitCode) {
		return true
	}
	if o.Event == bus.PodPendingEvent && policy.Delay() == 0 {
		return false
	}
	events := policy.AllEvents()
	return slices.Contains(events, o.Event) || slices.Contains(events, bus.AnyEvent)
}

// Demands returns what the policies ask for now, and how long it is until the next delayed one is due, 0 if there is
// none. Since says when an occurrence with a delayed answer began.
func Demands(job *batch.Job, found []Occurrence, since func(*Occurrence) time.Time, now time.Time) (due []Demand, wait time.Duration) {
	for i := range found {
		o := &found[i]
		policy := answer(job, o)
		if policy == nil {
			continue
		}
		message := fmt.Sprintf("%s: %s", o.What, policy.Action)
		if delay := policy.Delay(); delay > 0 {
			if left := since(o).Add(delay).Sub(now); left > 0 {
				if wait == 0 || left < wait {
					wait = left
				}
				continue
			}
			message = fmt.Sprintf("%s, for more than %s: %s", o.What, delay, policy.Action)
		}
		due = append(due, widened(Demand{policy.Action, o.Task, o.Index, string(o.Event), message}))
	}
	return due, wait
}

// widened makes an action for a pod or partition one for the task, or the Job, if the pod or task is not known.
func widened(d Demand) Demand {
	switch {
	case !IsPartial(d.Action):
		d.task, d.index = None, None
	case d.task == None:
		d.Action = bus.RestartJobAction
	case d.index == None:
		d.Action = bus.RestartTaskAction
	}
	return d
}

// Chosen returns those of the demands to follow in the given phase: the most final one, or all that are for parts.
func Chosen(phase batch.JobPhase, asked []Demand) []Demand {
	var partial []Demand
	for _, action := range validation.JobActions() {
		if _, follows := Transition(phase, action); !follows {
			continue
		}
		for _, d := range asked {
			switch {
			case d.Action != action:
			case IsPartial(action):
				partial = append(partial, d)
			default:
				return []Demand{d}
			}
		}
	}
	return partial
}

// Targets returns the pods that the demands want replaced. Demands for the whole Job have none: raising its version
// makes all of its pods outdated.
func Targets(job *batch.Job, pods []*corev1.Pod, asked []Demand) []*corev1.Pod {
	var hit []*corev1.Pod
	for t, members := range MembersByTask(job, pods) {
		for _, member := range members {
			if slices.ContainsFunc(asked, func(d Demand) bool { return concerns(&job.Spec.Tasks[t], d, t, member.index) }) {
				hit = append(hit, member.Pod)
			}
		}
	}
	return hit
}

func concerns(task *batch.TaskSpec, d Demand, t, index int) bool {
	if d.task != t {
		return false
	}
	switch d.Action {
	case bus.RestartTaskAction:
		return true
	case bus.RestartPartitionAction:
		return task.Partition(d.index) == task.Partition(index)
	case bus.RestartPodAction:
		return d.index == index
	}
	return false
}

// Follow returns the status of a Job that follows the demands, of which there is at least one, with pods that have had
// their targets marked. A resumed Job is not charged a retry: it was not the Job that failed.
func Follow(job *batch.Job, pods []*corev1.Pod, asked []Demand, now time.Time) *batch.JobStatus {
	status := job.Status.DeepCopy()
	count(status, pods)
	status.MinAvailable = job.Spec.MinAvailable
	status.ObservedGeneration = job.Generation
	to, _ := Transition(status.State.Phase, asked[0].Action)
	if to == batch.Restarting && asked[0].Action != bus.ResumeJobAction {
		status.RetryCount++
	}
	if !IsPartial(asked[0].Action) {
		status.Version++
	}
	enter(job, status, verdict{phase: to}, now)
	status.State.Reason, status.State.Message = asked[0].reason, asked[0].Message
	if pause := pause(status); pause > 0 && !isExhausted(job, status) {
		status.State.Message += fmt.Sprintf("; restart %d of %d, pods are made again at %s, after a pause of %s",
			status.RetryCount, job.Spec.MaxRetry, status.State.LastTransitionTime.Add(pause).UTC().Format(time.TimeOnly), pause)
	}
	return status
}
