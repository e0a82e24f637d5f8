package hypernode

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
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "hypernode-controller"

const (
	// settle is how long changes are gathered before all HyperNodes are looked at: many nodes come and go at once.
	settle = 200 * time.Millisecond
)

// all is the one thing there is to reconcile: what a HyperNode is worth depends on all others.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Add puts the controller into the manager.
func Add(mgr manager.Manager) error {
	r := &Reconciler{client: mgr.GetClient(), events: recorder.For(mgr, Name)}
	// Of nodes only names and labels matter; whole ones would take megabytes.
	nodes := &metav1.PartialObjectMetadata{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	ctx := context.Background()
	// Asked for here so that a process that says it is ready has them.
	for _, kind := range []client.Object{&topologyv1alpha1.HyperNode{}, nodes} {
		if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		Watches(&topologyv1alpha1.HyperNode{}, wakeSoon()).
		WatchesMetadata(&corev1.Node{}, wakeSoon(), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(work.Options(1)).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeSoon makes the controller reconcile everything in a moment.
func wakeSoon() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, queue queue) { queue.AddAfter(all, settle) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, queue queue) { queue.AddAfter(all, settle) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, queue queue) { queue.AddAfter(all, settle) },
	}
}
