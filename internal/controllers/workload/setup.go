package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
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
	"hekla.sh/hekla/internal/controllers/workload/protection"
	"hekla.sh/hekla/internal/controllers/workload/steering"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Name is the name of these controllers in flags, logs and metrics.
const Name = "workload-controller"

const (
	// localsByCluster is the index of LocalQueues by their ClusterQueue.
	localsByCluster = "clusterQueue"

	// workloadsByQueue is the index of Workloads by their LocalQueue.
	workloadsByQueue = "queueName"

	// workloadsByHolder is the index of Workloads by the ClusterQueue whose quota they hold.
	workloadsByHolder = "heldIn"

	// workloadsByOwner is the index of Workloads by the UID of their job.
	workloadsByOwner = "ownerUID"

	// workloadsByClass is the index of Workloads by their WorkloadPriorityClass.
	workloadsByClass = "priorityClass"
)

// countsSettle is how long changes of Workloads are gathered before their queues are counted: a count reads them all.
const countsSettle = 500 * time.Millisecond

// Options of the controllers.
type Options struct {
	// Workers is how many jobs, and how many Workloads, are worked on at a time.
	Workers int

	// Configuration is the ConfigMap with the configuration of the scheduler.
	Configuration client.ObjectKey

	// SchedulerNames are the names of our scheduler. Pods of others are sent to the nodes that their workload holds.
	SchedulerNames []string

	// Metrics are the numbers of all controllers.
	Metrics *metrics.Metrics

	// Kinds are the kinds of jobs that Workloads are made of. Jobs of those in Without are left alone: nothing here
	// makes their pods.
	Kinds   queueing.Kinds
	Without queueing.Kinds
}

// setup puts the controllers together.
type setup struct {
	client client.Client
	wakes  map[string]chan event.GenericEvent // by controller: what queues all of its objects
}

// Add puts the controllers into the manager, and returns what the controller of Jobs of batch.volcano.sh asks. In a
// cluster without the definitions there is nothing to serve, and it is nil.
func Add(mgr manager.Manager, options Options) (*Holder, error) {
	if is, err := AreDefined(mgr.GetRESTMapper()); err != nil || !is {
		return nil, errors.Join(err, mgr.Add(&absent{mapper: mgr.GetRESTMapper, log: mgr.GetLogger().WithName(Name)}))
	}
	ctx := context.Background()
	for _, i := range []struct {
		object  client.Object
		field   string
		extract func(client.Object) string
	}{
		{&v1beta2.LocalQueue{}, localsByCluster, func(o client.Object) string { return o.(*v1beta2.LocalQueue).Spec.ClusterQueue }},
		{&v1beta2.Workload{}, workloadsByQueue, func(o client.Object) string { return o.(*v1beta2.Workload).Spec.QueueName }},
		{&v1beta2.Workload{}, workloadsByHolder, func(o client.Object) string { return heldIn(o.(*v1beta2.Workload)) }},
		{&v1beta2.Workload{}, workloadsByOwner, ownerOf},
		{&v1beta2.Workload{}, workloadsByClass, classOf},
		{&corev1.Pod{}, podsByGroup, groupNameOf},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.object, i.field, func(o client.Object) []string {
			if value := i.extract(o); value != "" {
				return []string{value}
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	// Asked for here so that a process that says it is ready has them.
	watched := []client.Object{&v1beta2.Workload{}, &v1beta2.ResourceFlavor{}, &v1beta2.Cohort{}, &v1beta2.AdmissionCheck{},
		&v1beta2.WorkloadPriorityClass{}, &schedulingv1.PriorityClass{}}
	served := slices.DeleteFunc(slices.Clone(options.Kinds), func(k *queueing.Kind) bool { return slices.Contains(options.Without, k) })
	for _, kind := range served {
		watched = append(watched, kind.New().Object())
	}
	for _, object := range watched {
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return nil, fmt.Errorf("watching %T: %w", object, err)
		}
	}
	events := recorder.For(mgr, Name)
	s := &setup{client: mgr.GetClient(), wakes: map[string]chan event.GenericEvent{}}
	state := &state{live: mgr.GetAPIReader(), events: events, configuration: options.Configuration, now: time.Now, changed: s.wakeAll}
	api, r := mgr.GetClient(), queues{client: mgr.GetClient(), state: state, metrics: options.Metrics}
	w := writer{client: api, events: events, state: state, metrics: options.Metrics, schedulers: options.SchedulerNames,
		owners: queueing.NewOwnerFinder(mgr.GetAPIReader()), told: cache.NewLRUExpireCache(keptTold)}
	err := errors.Join(
		s.controller(mgr, "pods", options.Workers).
			Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(groupOfPod)).
			Watches(&v1beta2.Workload{}, handler.EnqueueRequestsFromMapFunc(groupOfWorkload)).
			Watches(&v1beta2.WorkloadPriorityClass{}, s.ofClass(&corev1.PodList{}), comes).
			Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(s.podsOfEnding)).
			WatchesRawSource(s.wake("pods", &corev1.PodList{})).
			Complete(&pods{writer: w, live: mgr.GetAPIReader()}),
		s.controller(mgr, "unserved", 1).Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(podOfUnserved), comes).
			Complete(&unserved{w}),
		s.controller(mgr, "workloads", options.Workers).For(&v1beta2.Workload{}).
			Watches(&v1beta2.LocalQueue{}, handler.EnqueueRequestsFromMapFunc(s.workloadsOfLocal), specChanges).
			Watches(&v1beta2.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(s.workloadsOfCluster), specChanges).
			Watches(&v1beta2.WorkloadPriorityClass{}, handler.EnqueueRequestsFromMapFunc(s.workloadsOfClass)).
			WatchesRawSource(s.wake("workloads", &v1beta2.WorkloadList{})).
			Complete(&lives{client: api, reader: mgr.GetAPIReader(), events: events, state: state, owners: w.owners, kinds: options.Kinds, told: w.told}),
		s.controller(mgr, "clusterqueues", 1).For(&v1beta2.ClusterQueue{}, specChanges).
			Watches(&v1beta2.Workload{}, settled(s.clusterOf)).
			Watches(&v1beta2.Workload{}, counted(options.Metrics, state)).
			Watches(&v1beta2.LocalQueue{}, settled(clusterOfLocal)).
			Watches(&v1beta2.ResourceFlavor{}, handler.EnqueueRequestsFromMapFunc(s.allClusters)).
			Watches(&v1beta2.AdmissionCheck{}, handler.EnqueueRequestsFromMapFunc(s.allClusters)).
			Watches(&v1beta2.Cohort{}, handler.EnqueueRequestsFromMapFunc(s.allClusters)).
			WatchesRawSource(s.wake("clusterqueues", &v1beta2.ClusterQueueList{})).
			Complete(clusterQueues{r}),
		s.controller(mgr, "localqueues", 1).For(&v1beta2.LocalQueue{}, specChanges).
			Watches(&v1beta2.Workload{}, settled(localOf)).
			Watches(&v1beta2.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(s.localsOf)).
			WatchesRawSource(s.wake("localqueues", &v1beta2.LocalQueueList{})).
			Complete(localQueues{r}),
		s.controller(mgr, "admissionchecks", 1).For(&v1beta2.AdmissionCheck{}).
			WatchesRawSource(s.wake("admissionchecks", &v1beta2.AdmissionCheckList{})).
			Complete(checks{client: api, state: state}),
		s.controller(mgr, "shares", 1).
			Watches(&v1beta2.ClusterQueue{}, settled(theShares)).
			Watches(&v1beta2.Cohort{}, settled(theShares)).
			WatchesRawSource(s.wake("shares", &v1beta2.CohortList{})).
			Complete(&shares{client: api, state: state, metrics: options.Metrics}),
		steering.Add(mgr, Name+"-steering", options.Workers, state.isOn),
		protection.Add(mgr, protection.Options{Name: Name, Serving: state.serving, HoldersByCluster: workloadsByHolder, HeldIn: heldIn, Wake: s.wake}),
		mgr.Add(state),
	)
	for _, kind := range served {
		err = errors.Join(err, s.jobs(mgr, kind, options.Workers, w))
	}
	return &Holder{client: api, state: state, setup: s, schedulers: options.SchedulerNames, owners: w.owners}, err
}

// jobs puts the controller of a kind of jobs into the manager.
func (s *setup) jobs(mgr manager.Manager, kind *queueing.Kind, workers int, w writer) error {
	return s.controller(mgr, kind.Controller, workers).For(kind.New().Object()).Owns(&v1beta2.Workload{}).
		Watches(&v1beta2.Workload{}, s.thatName(kind)).
		Watches(&v1beta2.WorkloadPriorityClass{}, s.ofClass(kind.NewList()), comes).
		WatchesRawSource(s.wake(kind.Controller, kind.NewList())).
		Complete(&jobs{writer: w, kind: kind})
}

func (s *setup) controller(mgr manager.Manager, of string, workers int) *builder.Builder {
	return builder.ControllerManagedBy(mgr).Named(Name + "-" + of).WithOptions(work.Options(workers))
}

// specChanges leaves out changes of the status. Queues get a new one with each Workload that comes or goes, and what
// follows from their spec is looked at for all of their Workloads.
var specChanges = builder.WithPredicates(predicate.GenerationChangedPredicate{})

// wake is a source that queues all objects of a list when wakeAll is called.
func (s *setup) wake(name string, list client.ObjectList) source.Source {
	return source.Channel(s.wakeOf(name), handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		all := list.DeepCopyObject().(client.ObjectList)
		return s.list(ctx, all)
	}))
}

// wakeOf is a channel that gets an event when wakeAll is called.
func (s *setup) wakeOf(name string) <-chan event.GenericEvent {
	events := make(chan event.GenericEvent, 1)
	s.wakes[name] = events
	return events
}

// wakeAll queues every object again: the controllers were switched on or off.
func (s *setup) wakeAll() {
	for _, events := range s.wakes {
		select {
		case events <- event.GenericEvent{Object: &v1beta2.ClusterQueue{}}:
		default: // it is woken already
		}
	}
}

// list returns requests for the objects of a list. What cannot be listed now is looked at when it changes.
func (s *setup) list(ctx context.Context, all client.ObjectList, options ...client.ListOption) []reconcile.Request {
	if err := s.client.List(ctx, all, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	_ = apimeta.EachListItem(all, func(o runtime.Object) error {
		switch o := o.(type) {
		case *corev1.Pod:
			requests = append(requests, groupOfPod(ctx, o)...)
		case *v1beta2.Cohort:
			requests = []reconcile.Request{allShares}
		default:
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))})
		}
		return nil
	})
	return requests
}

func (s *setup) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	return s.list(ctx, &v1beta2.ClusterQueueList{})
}

// localsOf are the LocalQueues that point to a ClusterQueue.
func (s *setup) localsOf(ctx context.Context, object client.Object) []reconcile.Request {
	return s.list(ctx, &v1beta2.LocalQueueList{}, client.MatchingFields{localsByCluster: object.GetName()})
}

// workloadsOfLocal are the Workloads of a LocalQueue.
func (s *setup) workloadsOfLocal(ctx context.Context, object client.Object) []reconcile.Request {
	return s.list(ctx, &v1beta2.WorkloadList{}, client.InNamespace(object.GetNamespace()), client.MatchingFields{workloadsByQueue: object.GetName()})
}

// workloadsOfCluster are the Workloads of all LocalQueues that point to a ClusterQueue.
func (s *setup) workloadsOfCluster(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, local := range s.localsOf(ctx, object) {
		requests = append(requests, s.list(ctx, &v1beta2.WorkloadList{}, client.InNamespace(local.Namespace), client.MatchingFields{workloadsByQueue: local.Name})...)
	}
	return requests
}

// thatName queues the jobs of a kind that wait for a Workload which is made for them by another client.
func (s *setup) thatName(kind *queueing.Kind) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		if metav1.GetControllerOfNoCopy(object) != nil || len(object.GetName()) > validation.LabelValueMaxLength {
			return nil
		}
		return s.list(ctx, kind.NewList(), client.InNamespace(object.GetNamespace()), client.MatchingLabels{v1beta2.PrebuiltWorkloadLabel: object.GetName()})
	})
}

// ownerOf is the UID of the controller of an object, "" if it has none.
func ownerOf(object client.Object) string {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// classOf is the WorkloadPriorityClass of a Workload, "" if it has none.
func classOf(object client.Object) string {
	if class := settings.PriorityClass(&object.(*v1beta2.Workload).Spec); class.Kind == v1beta2.WorkloadPriorityClassKind {
		return class.Name
	}
	return ""
}

// workloadsOfClass are the Workloads of a WorkloadPriorityClass.
func (s *setup) workloadsOfClass(ctx context.Context, object client.Object) []reconcile.Request {
	return s.list(ctx, &v1beta2.WorkloadList{}, client.MatchingFields{workloadsByClass: object.GetName()})
}

// ofClass queues the jobs or pods that name a WorkloadPriorityClass: their Workload is made when it exists.
func (s *setup) ofClass(list client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		if len(object.GetName()) > validation.LabelValueMaxLength {
			return nil
		}
		return s.list(ctx, list.DeepCopyObject().(client.ObjectList), client.MatchingLabels{v1beta2.PriorityClassLabel: object.GetName()})
	})
}

// comes leaves out all but new objects.
var comes = builder.WithPredicates(predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
})

// localOf is the LocalQueue of a Workload.
func localOf(_ context.Context, object client.Object) []reconcile.Request {
	w, is := object.(*v1beta2.Workload)
	if !is || w.Spec.QueueName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.QueueName}}}
}

// clusterOf is the ClusterQueue of a Workload.
func (s *setup) clusterOf(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	if w, is := object.(*v1beta2.Workload); is && heldIn(w) != "" {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: heldIn(w)}})
	}
	for _, local := range localOf(ctx, object) {
		q := &v1beta2.LocalQueue{}
		if err := s.client.Get(ctx, local.NamespacedName, q); err == nil {
			requests = append(requests, clusterOfLocal(ctx, q)...)
		}
	}
	return requests
}

// clusterOfLocal is the ClusterQueue that a LocalQueue points to.
func clusterOfLocal(_ context.Context, object client.Object) []reconcile.Request {
	q, is := object.(*v1beta2.LocalQueue)
	if !is || q.Spec.ClusterQueue == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: q.Spec.ClusterQueue}}}
}

// counted counts what becomes of Workloads, and wakes nothing.
func counted(numbers *metrics.Metrics, state *state) handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workQueue) {
		before, is := e.ObjectOld.(*v1beta2.Workload)
		after, are := e.ObjectNew.(*v1beta2.Workload)
		if is && are && state.isOn() {
			numbers.WorkloadMoved(before, after)
		}
	}}
}

type workQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// settled wakes what objects belong to, once their changes have settled.
func settled(of handler.MapFunc) handler.EventHandler {
	wake := func(ctx context.Context, object client.Object, queue workQueue) {
		for _, request := range of(ctx, object) {
			queue.AddAfter(request, countsSettle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workQueue) { wake(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workQueue) {
			wake(ctx, e.ObjectOld, queue)
			wake(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workQueue) { wake(ctx, e.Object, queue) },
	}
}
