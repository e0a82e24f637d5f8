package jobflow

import (
	"context"
	"fmt"
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
	"hekla.sh/hekla/internal/controllers/metrics"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "jobflow-controller"

const (
	// jobsByFlow is the index of Jobs by the UID of the JobFlow that controls them.
	jobsByFlow = "controllingJobFlow"

	// podsByJob is the index of pods by the UID of the Job that controls them.
	podsByJob = "controllingJobOfFlow"

	// flowsByTemplate is the index of JobFlows by the JobTemplates that they name.
	flowsByTemplate = "jobTemplate"
)

// jobEventsSettle is how long events of Jobs are gathered before their JobFlow is looked at: while its pods start and
// end, a Job changes with each of them.
const jobEventsSettle = 50 * time.Millisecond

// Options of the controller.
type Options struct {
	// Workers is how many JobFlows are worked on at a time.
	Workers int

	// Metrics are the numbers of all controllers.
	Metrics *metrics.Metrics
}

// Add puts the controller into the manager.
func Add(mgr manager.Manager, options Options) error {
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: recorder.For(mgr, Name),
		prober: newProber(), specs: newSpecs(), metrics: options.Metrics,
	}
	ctx := context.Background()
	for _, index := range []struct {
		object  client.Object
		field   string
		extract client.IndexerFunc
	}{
		{&batch.Job{}, jobsByFlow, uidOf(controllingFlow)},
		{&corev1.Pod{}, podsByJob, uidOf(controllingJob)},
		{&flowapi.JobFlow{}, flowsByTemplate, templatesOf},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.field, index.extract); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	// Asked for here so that a process that says it is ready has them.
	for _, object := range []client.Object{&flowapi.JobFlow{}, &flowapi.JobTemplate{}, &batch.Job{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, object); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	if err := mgr.Add(r.prober); err != nil {
		return err
	}
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&flowapi.JobFlow{}).
		Watches(&batch.Job{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) { wakeFlow(e.Object, queue) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) { wakeFlow(e.ObjectNew, queue) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) { wakeFlow(e.Object, queue) },
		}).
		Watches(&flowapi.JobTemplate{}, handler.EnqueueRequestsFromMapFunc(r.namers)).
		Watches(&corev1.Namespace{}, handler.Funcs{
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { r.metrics.NamespaceGone(e.Object.GetName()) },
		}).
		WatchesRawSource(source.Channel(r.prober.wake, &handler.EnqueueRequestForObject{})).
		WithOptions(work.Options(options.Workers)).
		Complete(r)
}

func controllingFlow(object metav1.Object) *metav1.OwnerReference {
	return controllerOf(object, "JobFlow", flowapi.GroupVersion.String())
}

func controllingJob(object metav1.Object) *metav1.OwnerReference {
	return controllerOf(object, "Job", batch.GroupVersion.String())
}

// controllerOf returns the reference to the controller of an object, if it is of a kind, or nil.
func controllerOf(object metav1.Object, kind, version string) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != kind || owner.APIVersion != version {
		return nil
	}
	return owner
}

func uidOf(controlling func(metav1.Object) *metav1.OwnerReference) client.IndexerFunc {
	return func(object client.Object) []string {
		if owner := controlling(object); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
}

func templatesOf(object client.Object) []string {
	jobFlow, is := object.(*flowapi.JobFlow)
	if !is {
		return nil
	}
	names := make([]string, len(jobFlow.Spec.Flows))
	for i := range jobFlow.Spec.Flows {
		names[i] = jobFlow.Spec.Flows[i].Name
	}
	return names
}

// namers returns the JobFlows that name a template.
func (r *Reconciler) namers(ctx context.Context, template client.Object) []reconcile.Request {
	flows := &flowapi.JobFlowList{}
	// The list is read from the index in memory, and fails only when the process ends.
	_ = r.client.List(ctx, flows, client.InNamespace(template.GetNamespace()),
		client.MatchingFields{flowsByTemplate: template.GetName()}, client.UnsafeDisableDeepCopy)
	requests := make([]reconcile.Request, len(flows.Items))
	for i := range flows.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&flows.Items[i])
	}
	return requests
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeFlow wakes the JobFlow that a Job belongs to.
func wakeFlow(job client.Object, queue queue) {
	if owner := controllingFlow(job); owner != nil {
		name := types.NamespacedName{Namespace: job.GetNamespace(), Name: owner.Name}
		queue.AddAfter(reconcile.Request{NamespacedName: name}, jobEventsSettle)
	}
}
