package app_test

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/cmd/controllers/app"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// watcher logs which queues there are.
type watcher struct{ client client.Client }

func (w watcher) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	queue := &scheduling.Queue{}
	if err := w.client.Get(ctx, request.NamespacedName, queue); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("Queue", "name", queue.Name, "pods", queue.Status.Allocated[corev1.ResourcePods])
	return reconcile.Result{}, nil
}

// A program that runs Hekla's controllers and one of its own.
func ExampleNewCommand() {
	setup := func(mgr manager.Manager) error {
		return builder.ControllerManagedBy(mgr).Named("queue-watcher").For(&scheduling.Queue{}).Complete(watcher{mgr.GetClient()})
	}
	if err := app.NewCommand(setup).ExecuteContext(context.Background()); err != nil {
		os.Exit(1)
	}
}
