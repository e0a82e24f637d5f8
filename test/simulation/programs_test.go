package simulation_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"

	controllers "hekla.sh/hekla/cmd/controllers/app"
	scheduler "hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/test/simulation"
)

// programs are ours, and those of a cluster that our work depends on.
var programs = []simulation.Program{
	{Name: "hekla-scheduler", HasCopies: true, Start: startScheduler},
	{Name: "hekla-controllers", HasCopies: true, Start: startControllers},
	{Name: "kube-controllers", Start: startKubeControllers},
}

// resync is after which time the controllers of Kubernetes look at everything again, which is half a day by default.
// The Job controller needs that: when its watch was cut, and a pod that it had made was deleted before it saw it, it
// waits for that pod, for five minutes, and looks at the Job only when something else happens to it.
const resync = 4 * time.Minute

// notAgain are the kinds that are not looked at again. When the controller of claims of devices looks at a pod that has
// ended, it makes the claim again that it has deleted, and deletes it: each time, as long as the pod is there.
var notAgain = map[metav1.Object]time.Duration{&corev1.Pod{}: 0, &resourcev1.ResourceClaim{}: 0, &resourcev1.ResourceClaimTemplate{}: 0}

func startScheduler(ctx context.Context, connection *rest.Config, logger logr.Logger) error {
	return scheduler.Run(ctx, connection, logger, []string{
		"--scheduler-configmap=volcano-system/volcano-scheduler-configmap", "--leader-elect-resource-name=hekla-scheduler",
	})
}

func startControllers(ctx context.Context, connection *rest.Config, logger logr.Logger) error {
	return controllers.Run(ctx, connection, logger, []string{"--allow-unchecked-queue-commands", "--worker-threads=4"})
}

// startKubeControllers runs controllers of Kubernetes in one process, as kube-controller-manager does.
func startKubeControllers(ctx context.Context, connection *rest.Config, logger logr.Logger) error {
	ctx = klog.NewContext(ctx, logger)
	client, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(connection)
	if err != nil {
		return err
	}
	k := &kubeControllers{client: client, metadata: metadataClient, factory: informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithCustomResyncConfig(notAgain))}
	for _, add := range []func(context.Context, *rest.Config) error{k.addWorkloads, k.addClaims, k.addNamespaces, k.addGarbageCollector} {
		if err := add(ctx, connection); err != nil {
			return err
		}
	}
	k.factory.StartWithContext(ctx)
	var running sync.WaitGroup
	for _, run := range k.run {
		running.Go(func() { run(ctx) })
	}
	running.Wait()
	k.factory.Shutdown()
	return nil
}

// kubeControllers are controllers of Kubernetes that share informers.
type kubeControllers struct {
	client   *kubernetes.Clientset
	metadata metadata.Interface
	factory  informers.SharedInformerFactory
	run      []func(context.Context)
}

// addWorkloads adds the controllers of Jobs, of what runs in a number of pods, and of budgets for them.
func (k *kubeControllers) addWorkloads(ctx context.Context, connection *rest.Config) error {
	kinds := memory.NewMemCacheClient(k.client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(kinds)
	scales, err := scale.NewForConfig(connection, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(kinds))
	if err != nil {
		return err
	}
	core, apps := k.factory.Core().V1(), k.factory.Apps().V1()
	jobs, err := job.NewController(ctx, k.client, core.Pods(), k.factory.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return err
	}
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), k.client)
	if err != nil {
		return err
	}
	replicaSets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), k.client, replicaset.BurstReplicas)
	statefulSets := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(), apps.ControllerRevisions(), k.client)
	budgets := disruption.NewDisruptionController(ctx, core.Pods(), k.factory.Policy().V1().PodDisruptionBudgets(), core.ReplicationControllers(),
		apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), k.client, mapper, scales, k.client.Discovery())
	k.run = append(k.run,
		func(ctx context.Context) { jobs.Run(ctx, 3) },
		func(ctx context.Context) { deployments.Run(ctx, 1) },
		func(ctx context.Context) { replicaSets.Run(ctx, 1) },
		func(ctx context.Context) { statefulSets.Run(ctx, 1) },
		budgets.Run)
	return nil
}

// addClaims adds the controllers that make claims of devices and volumes for pods, and those that let them go.
func (k *kubeControllers) addClaims(ctx context.Context, _ *rest.Config) error {
	core, resource := k.factory.Core().V1(), k.factory.Resource().V1()
	claims, err := resourceclaim.NewController(klog.FromContext(ctx), resourceclaim.Features{PrioritizedList: true}, k.client, core.Pods(),
		k.factory.Scheduling().V1alpha2().PodGroups(), resource.ResourceClaims(), resource.ResourceClaimTemplates())
	if err != nil {
		return err
	}
	volumes, err := ephemeral.NewController(ctx, k.client, core.Pods(), core.PersistentVolumeClaims())
	if err != nil {
		return err
	}
	protection, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(), core.Pods(), k.client)
	if err != nil {
		return err
	}
	k.run = append(k.run,
		func(ctx context.Context) { claims.Run(ctx, 1) },
		func(ctx context.Context) { volumes.Run(ctx, 1) },
		func(ctx context.Context) { protection.Run(ctx, 1) })
	return nil
}

// addNamespaces adds the controller that empties namespaces that are deleted.
func (k *kubeControllers) addNamespaces(ctx context.Context, _ *rest.Config) error {
	// The controller ends its process when it starts and is told of no kind. That would be the process of the test.
	known, err := k.client.Discovery().ServerPreferredNamespacedResources()
	if len(known) == 0 {
		return fmt.Errorf("the API server serves no kinds in namespaces: %w", err)
	}
	discover := func() ([]*metav1.APIResourceList, error) {
		found, err := k.client.Discovery().ServerPreferredNamespacedResources()
		if len(found) > 0 {
			known = found
		}
		return known, err
	}
	namespaces := namespace.NewNamespaceController(ctx, k.client, k.metadata, discover,
		k.factory.Core().V1().Namespaces(), resync, corev1.FinalizerKubernetes)
	k.run = append(k.run, func(ctx context.Context) { namespaces.Run(ctx, 1) })
	return nil
}

// discoveryPeriod is how often the garbage collector asks which kinds there are.
const discoveryPeriod = 30 * time.Second

// addGarbageCollector adds the garbage collector.
func (k *kubeControllers) addGarbageCollector(ctx context.Context, _ *rest.Config) error {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(k.client.Discovery()))
	started := make(chan struct{})
	close(started)
	ignored := map[schema.GroupResource]struct{}{}
	for resource := range garbagecollector.DefaultIgnoredResources() {
		ignored[resource] = struct{}{}
	}
	for _, resource := range unowned {
		ignored[resource] = struct{}{}
	}
	shared := informerfactory.NewInformerFactory(k.factory, metadatainformer.NewSharedInformerFactory(k.metadata, resync))
	collector, err := garbagecollector.NewGarbageCollector(ctx, k.client, k.metadata, mapper, ignored, shared, started)
	if err != nil {
		return err
	}
	k.run = append(k.run,
		func(ctx context.Context) { collector.Run(ctx, 2, discoveryPeriod) },
		func(ctx context.Context) { collector.Sync(ctx, k.client.Discovery(), discoveryPeriod) })
	return nil
}

// unowned are resources of which no object is owned here. The garbage collector need not watch them.
var unowned = []schema.GroupResource{
	{Resource: "endpoints"}, {Resource: "events"}, {Resource: "limitranges"}, {Resource: "persistentvolumes"}, {Resource: "podtemplates"},
	{Resource: "replicationcontrollers"}, {Resource: "resourcequotas"}, {Resource: "serviceaccounts"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"}, {Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}, {Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"}, {Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicybindings"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, {Group: "apps", Resource: "daemonsets"}, {Group: "coordination.k8s.io", Resource: "leases"},
	{Group: "discovery.k8s.io", Resource: "endpointslices"}, {Group: "events.k8s.io", Resource: "events"}, {Group: "networking.k8s.io", Resource: "ingresses"},
	{Group: "networking.k8s.io", Resource: "ingressclasses"}, {Group: "networking.k8s.io", Resource: "ipaddresses"}, {Group: "networking.k8s.io", Resource: "servicecidrs"},
	{Group: "node.k8s.io", Resource: "runtimeclasses"}, {Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}, {Group: "rbac.authorization.k8s.io", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, {Group: "resource.k8s.io", Resource: "deviceclasses"},
	{Group: "scheduling.k8s.io", Resource: "priorityclasses"}, {Group: "storage.k8s.io", Resource: "csidrivers"}, {Group: "storage.k8s.io", Resource: "csinodes"},
	{Group: "storage.k8s.io", Resource: "csistoragecapacities"}, {Group: "storage.k8s.io", Resource: "storageclasses"}, {Group: "storage.k8s.io", Resource: "volumeattachments"},
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}, {Group: "kueue.x-k8s.io", Resource: "admissionchecks"},
	{Group: "kueue.x-k8s.io", Resource: "resourceflavors"}, {Group: "kueue.x-k8s.io", Resource: "workloadpriorityclasses"},
	{Group: "kueue.x-k8s.io", Resource: "clusterqueues"}, {Group: "kueue.x-k8s.io", Resource: "cohorts"}, {Group: "kueue.x-k8s.io", Resource: "localqueues"},
	{Group: "topology.volcano.sh", Resource: "hypernodes"},
}
