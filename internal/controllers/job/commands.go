package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// commandsByJob is the index of Commands by the name of the Job they are for.
const commandsByJob = "commandedJob"

// ReasonCommandIgnored: the action of a Command is not possible in the phase of the Job.
const ReasonCommandIgnored = "CommandIgnored"

// commandedJob is the name of the Job that the Command is for, empty if it is for something else.
func commandedJob(command *bus.Command) string {
	target := command.TargetObject
	if target == nil || target.Kind != "Job" || target.APIVersion != batch.GroupVersion.String() {
		return ""
	}
	return target.Name
}

func indexCommand(object client.Object) []string {
	if command, is := object.(*bus.Command); is && commandedJob(command) != "" {
		return []string{commandedJob(command)}
	}
	return nil
}

func wakeCommanded(_ context.Context, object client.Object) []reconcile.Request {
	name := indexCommand(object)
	if name == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name[0]}}}
}

// maxCommands is how many Commands for a Job are looked at in one reconcile, so that a user who creates thousands does
// not delay other Jobs. Deleting a Command wakes the Job again.
const maxCommands = 50

// commandsFor returns the Commands for the name of a Job that are not carried out yet, the oldest first, at most
// maxCommands.
func (r *Reconciler) commandsFor(ctx context.Context, name types.NamespacedName) ([]*bus.Command, error) {
	list := &bus.CommandList{}
	if err := r.client.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{commandsByJob: name.Name}); err != nil {
		return nil, err
	}
	present := sets.New[types.UID]()
	for i := range list.Items {
		present.Insert(list.Items[i].UID)
	}
	r.memory.keepFollowed(name, present)
	var commands []*bus.Command
	for i := range list.Items {
		if command := &list.Items[i]; command.DeletionTimestamp == nil && !r.memory.followed(name, command.UID) {
			commands = append(commands, command)
		}
	}
	slices.SortFunc(commands, func(a, b *bus.Command) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return commands[:min(len(commands), maxCommands)], nil
}

// commanded returns the oldest Command that is possible in the phase of the Job, and its demand. Older ones are dropped
// with an Event.
func (r *Reconciler) commanded(ctx context.Context, job *batch.Job) (*bus.Command, []lifecycle.Demand, error) {
	name := client.ObjectKeyFromObject(job)
	commands, err := r.commandsFor(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for _, command := range commands {
		ignored := whyIgnored(job, command)
		if ignored == "" {
			return command, []lifecycle.Demand{lifecycle.Commanded(bus.Action(command.Action), commandMessage(command))}, nil
		}
		if err := r.drop(ctx, name, command); err != nil {
			return nil, nil, err
		}
		// The action tells the Events apart, because the events API merges those with equal reason and action.
		r.events.Eventf(job, nil, corev1.EventTypeWarning, ReasonCommandIgnored, command.Name, "%s", clip(ignored))
	}
	return nil, nil, nil
}

// whyIgnored says why a Command is not possible, "" if it is.
func whyIgnored(job *batch.Job, command *bus.Command) string {
	action, phase := bus.Action(command.Action), job.Status.State.Phase
	if uid := command.TargetObject.UID; uid != "" && uid != job.UID {
		return fmt.Sprintf("Command %s is for an earlier Job of this name, with UID %s", command.Name, uid)
	}
	if !slices.Contains(validation.JobActions(), action) {
		return fmt.Sprintf("Command %s: %q is not an action of Jobs; those are %v", command.Name, command.Action, validation.JobActions())
	}
	if lifecycle.IsPartial(action) {
		return fmt.Sprintf("Command %s: %s is for lifecycle policies; a Command cannot say which task or pod it means", command.Name, action)
	}
	if _, follows := lifecycle.Transition(phase, action); !follows {
		return fmt.Sprintf("Command %s: %s means nothing to a Job that is %s", command.Name, action, phase)
	}
	return ""
}

func commandMessage(command *bus.Command) string {
	message := fmt.Sprintf("Command %s: %s", command.Name, command.Action)
	for _, part := range []string{command.Reason, command.Message} {
		if part != "" {
			message += ": " + part
		}
	}
	return clip(message)
}

// drop deletes a Command that is carried out, or never will be.
func (r *Reconciler) drop(ctx context.Context, name types.NamespacedName, command *bus.Command) error {
	err := r.client.Delete(ctx, command, client.Preconditions{UID: &command.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Command %s/%s: %w", command.Namespace, command.Name, err)
	}
	r.memory.follow(name, command.UID)
	return nil
}

// dropVoid deletes the Commands for a Job that does not exist. The cache may not show the Job yet, so the API server is
// asked.
func (r *Reconciler) dropVoid(ctx context.Context, name types.NamespacedName) error {
	commands, err := r.commandsFor(ctx, name)
	if err != nil || len(commands) == 0 {
		return err
	}
	if err := r.live.Get(ctx, name, &batch.Job{}); !apierrors.IsNotFound(err) {
		return err
	}
	for _, command := range commands {
		if err := r.drop(ctx, name, command); err != nil {
			return err
		}
	}
	r.memory.forget(name)
	return nil
}
