package protection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Serving says who serves Workloads.
type Serving int

const (
	// Unknown: it is not known yet, or Kueue itself does. Objects stay as they are.
	Unknown Serving = iota
	// Served: Workloads are served here, and what is in use is kept.
	Served
	// NotServed: Workloads are not served, and what is deleted goes.
	NotServed
)

// Options of the controllers.
type Options struct {
	// Name begins the names of the controllers.
	Name string

	// Serving says who serves Workloads now.
	Serving func() Serving

	// HoldersByCluster is the index of Workloads by the ClusterQueue whose quota they hold, and HeldIn is how it is
	// made.
	HoldersByCluster string
	HeldIn           func(*v1beta2.Workload) string

	// Wake is a source that queues all objects of a list when the answer of Serving has changed. It is asked
	// once for each list.
	Wake func(name string, list client.ObjectList) source.Source
}

// Reconciler protects the objects of one kind.
type Reconciler struct {
	client  client.Client
	serving func() Serving
	wrap    func() client.Object

	// isUsed is nil for objects that other controllers keep and let go while Workloads are served.
	isUsed func(ctx context.Context, name string) (bool, error)
}

// Add puts the controllers into the manager.
func Add(mgr manager.Manager, options Options) error {
	api := mgr.GetClient()
	users := func(named func(*v1beta2.ClusterQueue) []string) func(context.Context, string) (bool, error) {
		return func(ctx context.Context, name string) (bool, error) {
			queues := &v1beta2.ClusterQueueList{}
			if err := api.List(ctx, queues, client.UnsafeDisableDeepCopy); err != nil {
				return false, fmt.Errorf("listing ClusterQueues: %w", err)
			}
			return slices.ContainsFunc(queues.Items, func(q v1beta2.ClusterQueue) bool { return slices.Contains(named(&q), name) }), nil
		}
	}
	holders := func(ctx context.Context, name string) (bool, error) {
		workloads := &v1beta2.WorkloadList{}
		if err := api.List(ctx, workloads, client.MatchingFields{options.HoldersByCluster: name}, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing Workloads: %w", err)
		}
		return slices.ContainsFunc(workloads.Items, func(w v1beta2.Workload) bool { return !conditions.Is(&w, v1beta2.Finished) }), nil
	}
	return errors.Join(
		protect(mgr, &options, "clusterqueues", &v1beta2.ClusterQueueList{}, func() client.Object { return &v1beta2.ClusterQueue{} }, holders,
			&v1beta2.Workload{}, func(o client.Object) []string { return []string{options.HeldIn(o.(*v1beta2.Workload))} }),
		protect(mgr, &options, "resourceflavors", &v1beta2.ResourceFlavorList{}, func() client.Object { return &v1beta2.ResourceFlavor{} }, users(flavorsOf),
			&v1beta2.ClusterQueue{}, func(o client.Object) []string { return flavorsOf(o.(*v1beta2.ClusterQueue)) }),
		protect(mgr, &options, "admissionchecks", &v1beta2.AdmissionCheckList{}, func() client.Object { return &v1beta2.AdmissionCheck{} }, users(checksOf),
			&v1beta2.ClusterQueue{}, func(o client.Object) []string { return checksOf(o.(*v1beta2.ClusterQueue)) }),
		protect(mgr, &options, "workloads", &v1beta2.WorkloadList{}, func() client.Object { return &v1beta2.Workload{} }, nil, nil, nil),
	)
}

// protect adds the controller of one kind. used says what an object of the kind user uses, if any does.
func protect(mgr manager.Manager, options *Options, kind string, list client.ObjectList, wrap func() client.Object, isUsed func(context.Context, string) (bool, error),
	user client.Object, used func(client.Object) []string) error {
	name := "protected-" + kind
	controller := builder.ControllerManagedBy(mgr).Named(options.Name + "-" + name).WithOptions(work.Options(1)).
		For(wrap()).
		WatchesRawSource(options.Wake(name, list))
	if user != nil {
		controller = controller.Watches(user, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request { return requests(used(o)) }))
	}
	return controller.Complete(&Reconciler{client: mgr.GetClient(), serving: options.Serving, wrap: wrap, isUsed: isUsed})
}

// requests are for the objects of some names.
func requests(names []string) (all []reconcile.Request) {
	for _, name := range names {
		if name != "" {
			all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return all
}

// flavorsOf are the flavors that a ClusterQueue names.
func flavorsOf(o *v1beta2.ClusterQueue) (names []string) {
	for i := range o.Spec.ResourceGroups {
		for j := range o.Spec.ResourceGroups[i].Flavors {
			names = append(names, o.Spec.ResourceGroups[i].Flavors[j].Name)
		}
	}
	return names
}

// checksOf are the AdmissionChecks that a ClusterQueue names, in either spelling.
func checksOf(o *v1beta2.ClusterQueue) (names []string) {
	for _, check := range settings.OfClusterQueue(o).Checks {
		names = append(names, check.Name)
	}
	return names
}

// Reconcile gives an object the finalizer, or takes it away from one that is being deleted and not used any more.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	serving := r.serving()
	if serving == Unknown || serving == Served && r.isUsed == nil {
		return reconcile.Result{}, nil
	}
	object := r.wrap()
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := object.DeepCopyObject().(client.Object)
	isDeleted, isServed := object.GetDeletionTimestamp() != nil, serving == Served
	var changes bool
	switch {
	case !isDeleted && isServed:
		changes = controllerutil.AddFinalizer(object, v1beta2.ResourceInUseFinalizer)
	case isDeleted && controllerutil.ContainsFinalizer(object, v1beta2.ResourceInUseFinalizer):
		if isServed {
			if isUsed, err := r.isUsed(ctx, object.GetName()); isUsed || err != nil {
				return reconcile.Result{}, err // the end of the use wakes it
			}
		}
		changes = controllerutil.RemoveFinalizer(object, v1beta2.ResourceInUseFinalizer)
	}
	if !changes {
		return reconcile.Result{}, nil
	}
	err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return work.UnlessConflict(fmt.Errorf("writing the finalizer of %s: %w", object.GetName(), err))
	}
	return reconcile.Result{}, nil
}
