package simulation_test

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"

	controllers "hekla.sh/hekla/cmd/controllers/app"
	scheduler "hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/test/simulation"
)

// programs are ours, and those of a cluster that our work depends on.
var programs = []simulation.Program{
	{Name: "hekla-scheduler", HasCopies: true, Start: startScheduler},
	{Name: "hekla-controllers", HasCopies: true, Start: startControllers},
	{Name: "kube-job-controller", Start: startJobController},
	{Name: "kube-controllers", Start: startControllersOfReplicas},
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

// startControllersOfReplicas runs the controllers of what runs in a number of pods, and of budgets for them.
func startControllersOfReplicas(ctx context.Context, connection *rest.Config, logger logr.Logger) error {
	ctx = klog.NewContext(ctx, logger)
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return err
	}
	kinds := memory.NewMemCacheClient(client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(kinds)
	scales, err := scale.NewForConfig(connection, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(kinds))
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, resync)
	core, apps := factory.Core().V1(), factory.Apps().V1()
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	if err != nil {
		return err
	}
	replicaSets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas)
	statefulSets := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), client)
	budgets := disruption.NewDisruptionController(ctx, core.Pods(), factory.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, mapper, scales, client.Discovery())
	factory.StartWithContext(ctx)
	var running sync.WaitGroup
	running.Go(func() { deployments.Run(ctx, 1) })
	running.Go(func() { replicaSets.Run(ctx, 1) })
	running.Go(func() { statefulSets.Run(ctx, 1) })
	running.Go(func() { budgets.Run(ctx) })
	running.Wait()
	factory.Shutdown()
	return nil
}
