package discovery

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// Name is the name of this part of the hypernode controller in logs and metrics.
const Name = "hypernode-discovery"

const (
	// settle is how long changes are gathered before all nodes are looked at: many come, go or get their labels at
	// once.
	settle = 200 * time.Millisecond
)

// all is the one thing there is to reconcile.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Add puts the discovery into the manager; the ConfigMap is where it is told what to do.
func Add(mgr manager.Manager, configMap client.ObjectKey) error {
	// A cache of its own, which watches this one ConfigMap: there is no right to list others.
	configMaps, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
			configMap.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", configMap.Name)},
		}}},
	})
	if err != nil {
		return fmt.Errorf("preparing to watch ConfigMap %s: %w", configMap, err)
	}
	if err := mgr.Add(configMaps); err != nil {
		return err
	}
	r := &Reconciler{client: mgr.GetClient(), configMaps: configMaps, configMap: configMap, events: recorder.For(mgr, Name)}
	// Statuses are written often, and nothing here depends on them.
	specs := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		WatchesRawSource(source.Kind(configMaps, &corev1.ConfigMap{}, wakeSoon[*corev1.ConfigMap]())).
		Watches(&topologyv1alpha1.HyperNode{}, wakeSoon[client.Object](), specs).
		WatchesMetadata(&corev1.Node{}, wakeSoon[client.Object](), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(work.Options(1)).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeSoon makes the controller reconcile everything in a moment.
func wakeSoon[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[T], queue queue) { queue.AddAfter(all, settle) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[T], queue queue) { queue.AddAfter(all, settle) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[T], queue queue) { queue.AddAfter(all, settle) },
	}
}
