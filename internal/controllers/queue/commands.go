package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// commandsByQueue is the index of Commands by the name of the Queue they are for.
const commandsByQueue = "commandedQueue"

// CommandNamespace is the namespace whose Commands for queues are followed: the one that vcctl puts them into.
const CommandNamespace = metav1.NamespaceDefault

// Reasons of the Events about Commands.
const (
	// ReasonCommandIgnored: the action of a Command is not possible for the queue.
	ReasonCommandIgnored = "CommandIgnored"

	// ReasonOpensWithParent: a queue was to be opened while its parent is closed.
	ReasonOpensWithParent = "OpensWithParent"
)

func indexCommand(object client.Object) []string {
	command, is := object.(*bus.Command)
	if !is || command.TargetObject == nil {
		return nil
	}
	target := command.TargetObject
	if target.Kind != "Queue" || target.APIVersion != scheduling.GroupVersion.String() || target.Name == "" {
		return nil
	}
	return []string{target.Name}
}

func wakeCommanded(_ context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range indexCommand(object) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return requests
}

// commandFor returns the oldest Command for the queue that has not been followed yet, or nil. Those after it have their
// turn when it is deleted.
func (r *Reconciler) commandFor(ctx context.Context, queue string) (*bus.Command, error) {
	list := &bus.CommandList{}
	if err := r.client.List(ctx, list, client.MatchingFields{commandsByQueue: queue}); err != nil {
		return nil, fmt.Errorf("listing Commands: %w", err)
	}
	slices.SortFunc(list.Items, byAge)
	for i := range list.Items {
		cached := &list.Items[i]
		// The cache may still have one that was followed and deleted a moment ago.
		command := &bus.Command{}
		err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), command)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Command %s/%s: %w", cached.Namespace, cached.Name, err)
		}
		if err == nil && command.UID == cached.UID && command.DeletionTimestamp == nil {
			return command, nil
		}
	}
	return nil, nil
}

// byAge puts older Commands first. Creation times are whole seconds, in which a queue may well be closed and opened
// again.
func byAge(a, b bus.Command) int {
	version, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	if err != nil {
		version = 0
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), version, cmp.Compare(a.UID, b.UID))
}

// eventText is the text of an Event about a Command; the empty value is none.
type eventText struct {
	reason, message string
}

// orderOf returns the order of a Command, which may be nil, and the Event about it. unchecked says why it is not known
// that the user of the Command may update the queue; it is "" if that is known.
func orderOf(command *bus.Command, queue *scheduling.Queue, underClosed bool, unchecked string) (Order, eventText) {
	if command == nil {
		return NoOrder, eventText{}
	}
	name, action := command.Namespace+"/"+command.Name, bus.Action(command.Action)
	ignored := func(format string, arguments ...any) (Order, eventText) {
		return NoOrder, eventText{ReasonCommandIgnored, "Command " + name + ": " + fmt.Sprintf(format, arguments...)}
	}
	switch uid := command.TargetObject.UID; {
	case command.Namespace != CommandNamespace:
		return ignored("Commands for queues are followed in namespace %s only", CommandNamespace)
	case uid == "":
		return ignored("target.uid is empty; it must be that of the queue, %s", queue.UID)
	case uid != queue.UID:
		return ignored("it is for an earlier queue of this name, with UID %s", uid)
	case unchecked != "":
		return ignored("it was not checked that its author may update the queue: %s", unchecked)
	case action == bus.OpenQueueAction && underClosed:
		return OrderOpen, eventText{ReasonOpensWithParent,
			fmt.Sprintf("queue %s opens when its parent %s does, which is closed; open that one", queue.Name, queue.Spec.Parent)}
	case action == bus.OpenQueueAction:
		return OrderOpen, eventText{}
	case action == bus.CloseQueueAction && queue.Name == scheduling.RootQueue:
		return ignored("queue %s cannot be closed; close the queues below it", queue.Name)
	case action == bus.CloseQueueAction:
		return OrderClose, eventText{}
	}
	return ignored("%q is not an action of queues; those are %s and %s", command.Action, bus.OpenQueueAction, bus.CloseQueueAction)
}

// drop deletes a Command, which may be nil, that has been followed or never will be.
func (r *Reconciler) drop(ctx context.Context, command *bus.Command) error {
	if command == nil {
		return nil
	}
	err := r.client.Delete(ctx, command, client.Preconditions{UID: &command.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Command %s/%s: %w", command.Namespace, command.Name, err)
	}
	return nil
}
