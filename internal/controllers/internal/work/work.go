package work

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/turns"
)

// Retries of an object that fails grow from the first delay to the second.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Options makes a controller work on so many objects at a time, of each namespace in turn.
func Options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		NewQueue: func(name string, retries workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return turns.NewQueue(name, retries, func(r reconcile.Request) string { return r.Namespace })
		},
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}
