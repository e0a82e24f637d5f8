package queue

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/metrics"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "queue-controller"

const (
	// groupsByQueue is the index of PodGroups by the queue they are in.
	groupsByQueue = "queue"

	// queuesByParent is the index of Queues by their parent.
	queuesByParent = "parent"
)

const (
	// groupEventsSettle is how long changes of PodGroups are gathered before their queue is counted.
	groupEventsSettle = 200 * time.Millisecond

	// countsPause is the time between two counts of a queue, unless more than PodGroups has changed. A busy queue
	// changes hundreds of times a second and its counts are not read that often. A write of them costs the API server
	// as much as two pods.
	countsPause = time.Second
)

// Options of the controller.
type Options struct {
	// Workers is how many Queues are worked on at a time.
	Workers int

	// AllowUncheckedCommands follows Commands for queues without a check that their author may update the queue:
	// then every user who may create Commands in CommandNamespace can close every queue.
	AllowUncheckedCommands bool

	// Metrics are the numbers of all controllers.
	Metrics *metrics.Metrics
}

// Add puts the controller into the manager.
func Add(mgr manager.Manager, options Options) error {
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), events: recorder.For(mgr, Name),
		metrics: options.Metrics, allowsUnchecked: options.AllowUncheckedCommands, counted: counted{at: map[string]time.Time{}}}
	ctx := context.Background()
	err := mgr.GetFieldIndexer().IndexField(ctx, &scheduling.PodGroup{}, groupsByQueue,
		func(object client.Object) []string { return []string{queueOf(object)} })
	if err != nil {
		return fmt.Errorf("indexing PodGroups by queue: %w", err)
	}
	err = mgr.GetFieldIndexer().IndexField(ctx, &scheduling.Queue{}, queuesByParent, indexByParent)
	if err != nil {
		return fmt.Errorf("indexing Queues by parent: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &bus.Command{}, commandsByQueue, indexCommand); err != nil {
		return fmt.Errorf("indexing Commands by queue: %w", err)
	}
	// Asked for here so that a process that says it is ready has them.
	if _, err := mgr.GetCache().GetInformer(ctx, &scheduling.Queue{}); err != nil {
		return fmt.Errorf("watching Queues: %w", err)
	}
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&scheduling.Queue{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event event.UpdateEvent) bool {
			return !onlyCountsDiffer(event.ObjectOld, event.ObjectNew)
		}})).
		Watches(&scheduling.Queue{}, handler.Funcs{UpdateFunc: r.countsChanged}).
		Watches(&scheduling.PodGroup{}, r.groupEvents()).
		Watches(&scheduling.Queue{}, r.parentEvents()).
		Watches(&bus.Command{}, handler.EnqueueRequestsFromMapFunc(wakeCommanded)).
		WatchesRawSource(source.Func(wakeBuiltIn)).
		WithOptions(work.Options(options.Workers)).
		Complete(r)
}

// queueOf is the name of the queue a PodGroup is in.
func queueOf(object client.Object) string {
	if group, is := object.(*scheduling.PodGroup); is && group.Spec.Queue != "" {
		return group.Spec.Queue
	}
	return scheduling.DefaultQueue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeBuiltIn asks for the queues that always exist, of which a fresh cluster has no event.
func wakeBuiltIn(_ context.Context, queue queue) error {
	for _, name := range []string{scheduling.RootQueue, scheduling.DefaultQueue} {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return nil
}

// wakeToCount asks for the counts of a queue, when it is time.
func (r *Reconciler) wakeToCount(name string, queue queue) {
	queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, max(groupEventsSettle, time.Until(r.counted.last(name).Add(countsPause))))
}

// countsChanged looks at a queue whose counts were written, by this process or by another.
func (r *Reconciler) countsChanged(_ context.Context, event event.UpdateEvent, queue queue) {
	if onlyCountsDiffer(event.ObjectOld, event.ObjectNew) {
		r.wakeToCount(event.ObjectNew.GetName(), queue)
	}
}

// onlyCountsDiffer reports whether a change of a queue is one of amounts and counts in its status.
func onlyCountsDiffer(before, after client.Object) bool {
	was, is := before.(*scheduling.Queue)
	now, are := after.(*scheduling.Queue)
	return is && are && was.UID == now.UID && was.ResourceVersion != now.ResourceVersion && was.Generation == now.Generation &&
		(was.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil) && was.Status.State == now.Status.State &&
		maps.Equal(was.Annotations, now.Annotations) && maps.Equal(was.Labels, now.Labels)
}

// groupEvents wakes the queues that a PodGroup is counted in, and was counted in before.
func (r *Reconciler) groupEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, event event.CreateEvent, queue queue) {
			r.wakeToCount(queueOf(event.Object), queue)
		},
		UpdateFunc: func(_ context.Context, event event.UpdateEvent, queue queue) {
			before, after := queueOf(event.ObjectOld), queueOf(event.ObjectNew)
			if before == after && phaseOf(event.ObjectOld) == phaseOf(event.ObjectNew) {
				return
			}
			r.wakeToCount(before, queue)
			r.wakeToCount(after, queue)
		},
		DeleteFunc: func(_ context.Context, event event.DeleteEvent, queue queue) {
			r.wakeToCount(queueOf(event.Object), queue)
		},
	}
}

func phaseOf(object client.Object) scheduling.PodGroupPhase {
	if group, is := object.(*scheduling.PodGroup); is {
		return group.Status.Phase
	}
	return ""
}

func indexByParent(object client.Object) []string {
	if queue, is := object.(*scheduling.Queue); is && queue.Spec.Parent != "" {
		return []string{queue.Spec.Parent}
	}
	return nil
}

// parentEvents wakes the queues below one that opens, closes, comes or goes.
func (r *Reconciler) parentEvents() handler.EventHandler {
	wake := func(ctx context.Context, parent client.Object, queue queue) {
		children := &scheduling.QueueList{}
		// The list is read from the index in memory, and fails only when the process ends.
		_ = r.client.List(ctx, children, client.MatchingFields{queuesByParent: parent.GetName()}, client.UnsafeDisableDeepCopy)
		for i := range children.Items {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: children.Items[i].Name}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, event event.CreateEvent, queue queue) {
			wake(ctx, event.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, event event.UpdateEvent, queue queue) {
			before, is := event.ObjectOld.(*scheduling.Queue)
			after, are := event.ObjectNew.(*scheduling.Queue)
			if is && are && isClosed(before.Status.State) != isClosed(after.Status.State) {
				wake(ctx, after, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, event event.DeleteEvent, queue queue) {
			wake(ctx, event.Object, queue)
		},
	}
}
