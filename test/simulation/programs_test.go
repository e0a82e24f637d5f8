package simulation_test

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/job"

	controllers "hekla.sh/hekla/cmd/controllers/app"
	scheduler "hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/test/simulation"
)

// programs are ours, and those of a cluster that our work depends on.
var programs = []simulation.Program{
	{Name: "hekla-scheduler", HasCopies: true, Start: startScheduler},
	{Name: "hekla-controllers", HasCopies: true, Start: startControllers},
	{Name: "kube-job-controller", Start: startJobController},
}

// resync is after which time the controllers of Kubernetes look at everything again, which is half a day by default.
// The Job controller needs that: when its watch was cut, and a pod that it had made was deleted before it saw it, it
// waits for that pod, for five minutes, and looks at the Job only when something else happens to it.
const resync = 4 * time.Minute

func startScheduler(ctx context.Context, connection *rest.Config, logger logr.Logger) error {
	return scheduler.Run(ctx, connection, logger, []string{
		"--scheduler-configmap=volcano-system/volcano-scheduler-configmap", "--leader-elect-resource-name=hekla-scheduler",
	})
}

func startControllers(ctx context.Context, connection *rest.Config, logger logr.Logger) error {
	return controllers.Run(ctx, connection, logger, []string{"--allow-unchecked-queue-commands", "--worker-threads=4"})
}

// startJobController runs the controller of batch/v1 Jobs, as kube-controller-manager does.
func startJobController(ctx context.Context, connection *rest.Config, logger logr.Logger) error {
	ctx = klog.NewContext(ctx, logger)
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, resync)
	c, err := job.NewController(ctx, client, factory.Core().V1().Pods(), factory.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	c.Run(ctx, 3)
	factory.Shutdown()
	return nil
}
