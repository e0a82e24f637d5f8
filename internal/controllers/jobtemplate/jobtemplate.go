package jobtemplate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "jobtemplate-controller"

// jobsByTemplate is the index of Jobs by the annotation that names their template.
const jobsByTemplate = "createdByJobTemplate"

// jobEventsSettle is how long Jobs that come and go are gathered before their template is written: a template may be
// used by many at a time.
const jobEventsSettle = 100 * time.Millisecond

// Options of the controller.
type Options struct {
	// Workers is how many JobTemplates are worked on at a time.
	Workers int
}

// Reconciler writes the status of one JobTemplate at a time. Add puts it to work.
type Reconciler struct {
	client client.Client
	events events.EventRecorder
}

// Add puts the controller into the manager.
func Add(mgr manager.Manager, options Options) error {
	r := &Reconciler{client: mgr.GetClient(), events: recorder.For(mgr, Name)}
	ctx := context.Background()
	err := mgr.GetFieldIndexer().IndexField(ctx, &batch.Job{}, jobsByTemplate, func(job client.Object) []string {
		if origin := job.GetAnnotations()[flowapi.CreatedByJobTemplateKey]; origin != "" {
			return []string{origin}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing Jobs by JobTemplate: %w", err)
	}
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&flowapi.JobTemplate{}).
		Watches(&batch.Job{}, jobEvents()).
		WithOptions(work.Options(options.Workers)).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// jobEvents wakes the template of a Job that comes or goes.
func jobEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) { wake(e.Object, queue) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			if before[flowapi.CreatedByJobTemplateKey] != after[flowapi.CreatedByJobTemplateKey] {
				wake(e.ObjectOld, queue)
				wake(e.ObjectNew, queue)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) { wake(e.Object, queue) },
	}
}

// wake wakes the template that a Job was made from, in the Job's own namespace.
func wake(job client.Object, queue queue) {
	name, isOurs := strings.CutPrefix(job.GetAnnotations()[flowapi.CreatedByJobTemplateKey], job.GetNamespace()+".")
	if !isOurs {
		return
	}
	template := types.NamespacedName{Namespace: job.GetNamespace(), Name: name}
	queue.AddAfter(reconcile.Request{NamespacedName: template}, jobEventsSettle)
}

// Reconcile writes the list if it differs.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	template := &flowapi.JobTemplate{}
	err := r.client.Get(ctx, request.NamespacedName, template)
	if err != nil || template.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if work.LeavesAlone(r.events, template) {
		return reconcile.Result{}, nil
	}
	jobs := &batch.JobList{}
	err = r.client.List(ctx, jobs, client.InNamespace(request.Namespace),
		client.MatchingFields{jobsByTemplate: request.Namespace + "." + request.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("listing Jobs: %w", err)
	}
	var names []string
	for i := range jobs.Items {
		names = append(names, jobs.Items[i].Name)
	}
	slices.Sort(names)
	if slices.Equal(names, template.Status.JobDependsOnList) {
		return reconcile.Result{}, nil
	}
	updated := template.DeepCopy()
	updated.Status.JobDependsOnList = names
	err = r.client.Status().Patch(ctx, updated, client.MergeFrom(template))
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}
