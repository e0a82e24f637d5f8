package podgroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/workload"
	"hekla.sh/hekla/internal/queueing"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "pg-controller"

const (
	// podsByGroup is the index of pods by the name of the PodGroup that this controller keeps for them.
	podsByGroup = "keptPodGroup"

	// podsByFamily is the index of pods of all schedulers by the Deployment that their ReplicaSet should be of.
	podsByFamily = "family"

	// groupsByRelation is the index of PodGroups with a minimum by what tells which pods it depends on.
	groupsByRelation = "relation"
)

const (
	// podEventsSettle is how long the pods of one controller are gathered before their PodGroup is made, so that a
	// Deployment of a hundred replicas is looked at a few times and not a hundred.
	podEventsSettle = 20 * time.Millisecond

	// minimumSettle is how long changes of pods are gathered before the minimum of PodGroups is counted again.
	minimumSettle = 200 * time.Millisecond

	// idleGrace is how long a PodGroup outlives its last pod: a controller that replaces its only pod keeps its place.
	idleGrace = 10 * time.Second
)

// Options of the controller.
type Options struct {
	// Workers is how many PodGroups are worked on at a time.
	Workers int

	// SchedulerNames are the schedulers whose pods get PodGroups.
	SchedulerNames []string

	// InheritOwnerAnnotations says whether annotations of a pod's owner count as the pod's own.
	InheritOwnerAnnotations bool

	// YuniKornLabels says whether the labels and annotations by which users of YuniKorn name applications and queues
	// count.
	YuniKornLabels bool

	// DefaultQueue is the queue of pods for which nothing names one.
	DefaultQueue string

	// Workloads says whether Workloads of kueue.x-k8s.io are served; nil if they never are.
	Workloads *workload.Holder
}

// Add puts the controller into the manager.
func Add(mgr manager.Manager, options Options) error {
	r := &Reconciler{
		client:            mgr.GetClient(),
		live:              mgr.GetAPIReader(),
		events:            recorder.For(mgr, Name),
		inheritFromOwners: options.InheritOwnerAnnotations,
		readsYuniKorn:     options.YuniKornLabels,
		defaultQueue:      options.DefaultQueue,
		workloads:         options.Workloads,
	}
	kept := func(object client.Object) string {
		return keptGroup(object, options.SchedulerNames, options.YuniKornLabels)
	}
	ctx := context.Background()
	if err := addIndices(ctx, mgr.GetFieldIndexer(), kept); err != nil {
		return err
	}
	namespaces := &metav1.PartialObjectMetadata{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	// Asked for here so that a process that says it is ready has them, and the first pod finds its namespace.
	watched := []client.Object{&scheduling.PodGroup{}, namespaces}
	if options.YuniKornLabels {
		if err := addPathIndex(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		watched = append(watched, &scheduling.Queue{})
	}
	for _, object := range watched {
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	controller := builder.ControllerManagedBy(mgr).
		Named(Name).
		Watches(&corev1.Pod{}, r.podEvents(kept)).
		Watches(&scheduling.PodGroup{}, groupEvents())
	if options.Workloads != nil {
		controller = controller.WatchesRawSource(source.Channel(options.Workloads.Changes(Name), r.allQueued(kept)))
	}
	return controller.WithOptions(work.Options(options.Workers)).Complete(r)
}

// isQueued reports whether a pod belongs to a Workload, or waits for that. The Workload is what is admitted, so a
// PodGroup would only take room in a queue of Volcano.
func isQueued(pod *corev1.Pod) bool {
	return pod.Annotations[v1beta2.WorkloadAnnotation] != "" || queueing.IsGated(pod)
}

// allQueued wakes the PodGroups of all queued pods: Workloads are served from now on, or are not any more.
func (r *Reconciler) allQueued(kept func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) (requests []reconcile.Request) {
		list := &corev1.PodList{}
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil // what cannot be listed now is looked at when it changes
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if name := kept(pod); name != "" && isQueued(pod) {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}})
			}
		}
		return requests
	})
}

func addIndices(ctx context.Context, indexer client.FieldIndexer, kept func(client.Object) string) error {
	for _, index := range []struct {
		of    client.Object
		name  string
		value func(client.Object) string
	}{
		{&corev1.Pod{}, podsByGroup, kept},
		{&corev1.Pod{}, podsByFamily, familyOfPod},
		{&scheduling.PodGroup{}, groupsByRelation, func(object client.Object) string {
			if group, is := object.(*scheduling.PodGroup); is && hasMinimum(group) {
				return relation(group)
			}
			return ""
		}},
	} {
		err := indexer.IndexField(ctx, index.of, index.name, func(object client.Object) []string {
			if value := index.value(object); value != "" {
				return []string{value}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.of, index.name, err)
		}
	}
	return nil
}

// keptGroup returns the name of the PodGroup that this controller makes for the pod. It is "" for pods of another
// scheduler or of a batch Job, and for pods that a user has put into a PodGroup. A pod that was put into the PodGroup
// of its application, or into one of its own, stays there when the labels of YuniKorn begin or cease to count. So does
// one in a PodGroup that may be that of an owner further up: whether it is, that owner says.
func keptGroup(object client.Object, schedulerNames []string, readsYuniKorn bool) string {
	pod, is := object.(*corev1.Pod)
	if !is || !slices.Contains(schedulerNames, pod.Spec.SchedulerName) {
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil &&
		owner.Kind == "Job" && owner.APIVersion == batch.GroupVersion.String() {
		return ""
	}
	name, application := groupbuilder.PodGroupName(pod), groupbuilder.ApplicationGroupName(pod)
	switch named := pod.Annotations[scheduling.KubeGroupNameAnnotationKey]; {
	case named == "" && readsYuniKorn && application != "":
		return application
	case named == "":
		return name
	case named == name || named == application:
		return named
	case mayBeOfOwnerAbove(pod, named):
		return named
	}
	return ""
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents wakes the PodGroup kept for a pod: soon when the pod appears or changes, after idleGrace when it is gone.
// It wakes those whose minimum depends on the pod, too, when the pod begins or ceases to count.
func (r *Reconciler) podEvents(kept func(client.Object) string) handler.EventHandler {
	wake := func(object client.Object, queue queue, after time.Duration) {
		if name := kept(object); name != "" {
			key := types.NamespacedName{Namespace: object.GetNamespace(), Name: name}
			queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, event event.CreateEvent, queue queue) {
			wake(event.Object, queue, podEventsSettle)
			r.wakeRelatives(ctx, event.Object, "", queue)
		},
		UpdateFunc: func(ctx context.Context, event event.UpdateEvent, queue queue) {
			before, was := event.ObjectOld.(*corev1.Pod)
			after, is := event.ObjectNew.(*corev1.Pod)
			if named := event.ObjectNew.GetAnnotations()[scheduling.KubeGroupNameAnnotationKey]; named == "" || was && is && hasJoinedAbove(before, after) {
				wake(event.ObjectNew, queue, podEventsSettle)
			}
			if was && is && (isAlive(before) != isAlive(after) || before.Spec.NodeName != after.Spec.NodeName) {
				r.wakeRelatives(ctx, after, "", queue)
			}
		},
		DeleteFunc: func(ctx context.Context, event event.DeleteEvent, queue queue) {
			wake(event.Object, queue, idleGrace)
			r.wakeRelatives(ctx, event.Object, kept(event.Object), queue)
		},
	}
}

// wakeRelatives wakes the PodGroups whose minimum depends on the pod, but one.
func (r *Reconciler) wakeRelatives(ctx context.Context, pod client.Object, but string, queue queue) {
	of := relation(pod)
	if of == "" {
		return
	}
	list := &scheduling.PodGroupList{}
	err := r.client.List(ctx, list, client.InNamespace(pod.GetNamespace()),
		client.MatchingFields{groupsByRelation: of}, client.UnsafeDisableDeepCopy)
	if err != nil {
		// The cache is not full yet. Every PodGroup is looked at when it is.
		return
	}
	for i := range list.Items {
		if list.Items[i].Name != but {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}, minimumSettle)
		}
	}
}

// groupEvents wakes a PodGroup of ours when it appears, which after a restart may be one whose pods went unseen, and
// when it is deleted, because pods may still need it.
func groupEvents() handler.EventHandler {
	wake := func(object client.Object, queue queue, after time.Duration) {
		if group, is := object.(*scheduling.PodGroup); is && isOurs(group) {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(group)}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, event event.CreateEvent, queue queue) {
			wake(event.Object, queue, idleGrace)
		},
		DeleteFunc: func(_ context.Context, event event.DeleteEvent, queue queue) {
			wake(event.Object, queue, podEventsSettle)
		},
	}
}
