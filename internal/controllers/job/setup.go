package job

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/controllers/workload"
	"hekla.sh/hekla/pkg/apis/batch/dependencies"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "job-controller"

// podsByJob is the index of pods by the UID of the Job that controls them.
const podsByJob = "controllingJob"

// Events of a Job's pods are collected for some time before the Job is reconciled. A gang starts within moments, and
// one status write at the end says as much as one per pod. A reconcile reads all pods of the Job, so the delay grows
// with their number. Otherwise starting a large Job would cost the square of its size.
const (
	podEventsSettle       = 50 * time.Millisecond
	podEventsSettlePerPod = 50 * time.Microsecond
	longestSettle         = time.Second
)

// settleTime is for how long events of the pods of a Job of this size are gathered.
func settleTime(pods int32) time.Duration {
	return min(podEventsSettle+time.Duration(pods)*podEventsSettlePerPod, longestSettle)
}

// Options of the controller.
type Options struct {
	// Workers is how many Jobs are worked on at a time.
	Workers int

	// SchedulerName is put into the pods of a Job when neither its spec nor the template names a scheduler.
	SchedulerName string

	// Metrics are the numbers of all controllers.
	Metrics *metrics.Metrics

	// Queues says which Jobs wait for a Workload; nil if no Workloads are served.
	Queues *workload.Holder
}

// Add puts the controller into the manager.
func Add(mgr manager.Manager, options Options) error {
	r := &Reconciler{
		client:        mgr.GetClient(),
		live:          mgr.GetAPIReader(),
		events:        recorder.For(mgr, Name),
		memory:        newMemory(),
		metrics:       options.Metrics,
		schedulerName: options.SchedulerName,
		queues:        options.Queues,
	}
	ctx := context.Background()
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, podsByJob, indexByJob); err != nil {
		return fmt.Errorf("indexing pods by Job: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &scheduling.PodGroup{}, groupsByJob, indexGroup); err != nil {
		return fmt.Errorf("indexing PodGroups by Job: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &bus.Command{}, commandsByJob, indexCommand); err != nil {
		return fmt.Errorf("indexing Commands by Job: %w", err)
	}
	// Asked for here so that a process that says it is ready has them, and the first Job finds its PriorityClass.
	for _, object := range []client.Object{&batch.Job{}, &scheduling.PodGroup{}, &schedulingv1.PriorityClass{}, &corev1.Namespace{}, &nodev1.RuntimeClass{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	controller := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&batch.Job{}).
		Owns(&scheduling.PodGroup{}).
		Watches(&corev1.Pod{}, &podEvents{memory: r.memory}).
		Watches(&bus.Command{}, handler.EnqueueRequestsFromMapFunc(wakeCommanded)).
		Watches(&corev1.LimitRange{}, handler.EnqueueRequestsFromMapFunc(wakeLimited(r.client))).
		WithOptions(work.Options(options.Workers))
	if options.Queues != nil {
		controller = controller.Owns(&v1beta2.Workload{})
	}
	return controller.Complete(r)
}

// controllingJob returns the reference to the Job that controls the object, or nil.
func controllingJob(object metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batch.GroupVersion.String() {
		return nil
	}
	return owner
}

func indexByJob(object client.Object) []string {
	if owner := controllingJob(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents wakes the Job of a pod, by name, so that a Job learns that a pod of an earlier Job has freed its name.
type podEvents struct {
	memory *memory
}

// Create wakes the Job: the pod may be one that this process has not made.
func (e *podEvents) Create(_ context.Context, event event.CreateEvent, queue queue) {
	e.wake(event.Object, queue)
}

// Update wakes the Job if the pod counts differently than before.
func (e *podEvents) Update(_ context.Context, event event.UpdateEvent, queue queue) {
	before, is := event.ObjectOld.(*corev1.Pod)
	after, are := event.ObjectNew.(*corev1.Pod)
	if is && are && before.UID == after.UID && before.Status.Phase == after.Status.Phase &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		dependencies.HasStarted(before) == dependencies.HasStarted(after) && lifecycle.ContainerRestarts(before) == lifecycle.ContainerRestarts(after) &&
		controllingJob(before) != nil {
		return
	}
	e.wake(event.ObjectNew, queue)
}

// Delete wakes the Job, which may have to make the pod again.
func (e *podEvents) Delete(_ context.Context, event event.DeleteEvent, queue queue) {
	e.wake(event.Object, queue)
}

// Generic does nothing: no such events are sent.
func (e *podEvents) Generic(context.Context, event.GenericEvent, queue) {}

func (e *podEvents) wake(pod client.Object, queue queue) {
	owner := controllingJob(pod)
	if owner == nil {
		return
	}
	job := types.NamespacedName{Namespace: pod.GetNamespace(), Name: owner.Name}
	size := e.memory.settle(job, owner.UID, pod.GetName(), pod.GetUID())
	queue.AddAfter(reconcile.Request{NamespacedName: job}, settleTime(size))
}
