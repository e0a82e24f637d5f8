package controllers_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hekla.sh/hekla/internal/controllers"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// heldBack returns cache options under which no pod of the namespace reaches the cache, or any handler of its events,
// until the channel is closed.
func heldBack(namespace string, until <-chan struct{}) cache.Options {
	options := controllers.CacheOptions()
	for object, by := range options.ByObject {
		if _, is := object.(*corev1.Pod); !is {
			continue
		}
		inner := by.Transform
		by.Transform = func(object any) (any, error) {
			if pod, is := object.(*corev1.Pod); is && pod.Namespace == namespace {
				<-until
			}
			return inner(object)
		}
		options.ByObject[object] = by
	}
	return options
}

// inProcess runs the job controller inside the test, in place of the process, until the test ends.
func inProcess(t *testing.T, options cache.Options) {
	t.Helper()
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	restConfig := cluster.Config()
	restConfig.UserAgent = "hekla-controllers"
	skipNameValidation := true // the name is taken when the test runs a second time
	mgr, err := manager.New(restConfig, manager.Options{
		Scheme:     api.Scheme(),
		Cache:      options,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skipNameValidation},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Add(mgr, controllers.Options{JobWorkers: 1, SchedulerNames: []string{"volcano"}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if process, err = cluster.Run(context.Background(), program); err != nil {
			t.Fatal(err)
		}
	})
}

func TestACacheThatIsBehindCreatesNothingTwice(t *testing.T) {
	const replicas = 20
	namespace := namespaceFor(t, "stale")
	until := make(chan struct{})
	admit := sync.OnceFunc(func() { close(until) })
	inProcess(t, heldBack(namespace, until))
	t.Cleanup(admit)

	job := newJob(namespace, "sim", task("a", replicas))
	create(t, job)
	group := podGroupOf(job)
	// From here on the controllers run. A pod that is there before they know all there are would keep them from that.
	apitest.Eventually(t, func(ctx context.Context) error { return api.Get(ctx, client.ObjectKeyFromObject(group), group) })
	// As if a reply had been lost: the pod of the Job exists, and the controller does not remember creating it.
	unremembered := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sim-a-0"}, Spec: podSpec()}
	unremembered.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batch.GroupVersion.WithKind("Job"))}
	create(t, unremembered)
	setPhase(t, group, scheduling.PodGroupInqueue)
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Pending == replicas })
	// Each look at the Job finds no pod in the cache. That the label arrives on the PodGroup says that it has been
	// looked at.
	for i := range 3 {
		change(t, job, func(job *batch.Job) { job.Labels = map[string]string{"look": strconv.Itoa(i)} })
		apitest.Eventually(t, func(ctx context.Context) error {
			err := api.Get(ctx, client.ObjectKeyFromObject(group), group)
			if err == nil && group.Labels["look"] != strconv.Itoa(i) {
				err = fmt.Errorf("look %d has not happened", i)
			}
			return err
		})
	}
	// The label is written in the middle of a look: its end is to see nothing either.
	time.Sleep(500 * time.Millisecond)
	admit()
	stays(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(job), job)
		if err == nil && job.Status.Pending != replicas {
			err = fmt.Errorf("%d pods are counted, want %d", job.Status.Pending, replicas)
		}
		return err
	})
	requests := requestsIn(t, namespace)
	if made, refused := requests[request{"create", "pods", 201}], requests[request{"create", "pods", 409}]; made != replicas-1 || refused != 1 {
		t.Errorf("%d pods were created and %d refused, want %d and 1", made, refused, replicas-1)
	}
}
