package operators

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// sparkApplications is a definition with what the played operator reads, under the names of the Spark operator's own.
const sparkApplications = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sparkapplications.sparkoperator.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: sparkoperator.k8s.io
  scope: Namespaced
  names: {kind: SparkApplication, listKind: SparkApplicationList, plural: sparkapplications, singular: sparkapplication}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

var sparkResource = schema.GroupVersionResource{Group: "sparkoperator.k8s.io", Version: "v1beta2", Resource: "sparkapplications"}

// sparkOperator plays the Spark operator, and Spark's driver, as their documentation describes them with the batch
// scheduler volcano. An application has one PodGroup with minMember 1 and the resources of its driver and executors.
// When the driver runs it makes the executors, and makes those that are lost again, under other names. They go with
// their driver. A driver that is lost is submitted again.
type sparkOperator struct {
	apps dynamic.ResourceInterface
	stop context.CancelFunc
	done sync.WaitGroup
	next int // of the next executor
}

var spark *sparkOperator

// haveSpark starts the played operator, which then runs for all tests.
func haveSpark(t *testing.T) {
	t.Helper()
	if spark != nil {
		return
	}
	if err := cluster.Apply(context.WithoutCancel(t.Context()), []*unstructured.Unstructured{apitest.Object(t, "", sparkApplications)}); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	spark = &sparkOperator{apps: client.Resource(sparkResource).Namespace(metav1.NamespaceDefault)}
	spark.start()
}

func (s *sparkOperator) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.done.Go(func() {
		for ctx.Err() == nil {
			s.step(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
}

func (s *sparkOperator) restart() {
	s.stop()
	s.done.Wait()
	s.start()
}

// step brings each application a step further. What fails is tried again at the next.
func (s *sparkOperator) step(ctx context.Context) {
	apps, err := s.apps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range apps.Items {
		app := &apps.Items[i]
		if app.GetDeletionTimestamp() == nil {
			_ = s.submit(ctx, app)
		}
	}
}

func (s *sparkOperator) submit(ctx context.Context, app *unstructured.Unstructured) error {
	executors, _, err := unstructured.NestedInt64(app.Object, "spec", "executor", "instances")
	if err != nil {
		return err
	}
	queue, _, err := unstructured.NestedString(app.Object, "spec", "batchSchedulerOptions", "queue")
	if err != nil {
		return err
	}
	total := resource.MustParse(fmt.Sprint(executors + 1))
	group := &v1beta1.PodGroup{ObjectMeta: ownedBy("spark-"+app.GetName()+"-pg", app),
		Spec: v1beta1.PodGroupSpec{MinMember: 1, Queue: queue, MinResources: &corev1.ResourceList{corev1.ResourceCPU: total}}}
	if _, err := volcano.SchedulingV1beta1().PodGroups(app.GetNamespace()).Create(ctx, group, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	pods := core.CoreV1().Pods(app.GetNamespace())
	driver, err := pods.Get(ctx, app.GetName()+"-driver", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = pods.Create(ctx, sparkPod(app.GetName()+"-driver", "driver", app), metav1.CreateOptions{})
		return err
	}
	if err != nil || driver.Status.Phase != corev1.PodRunning || driver.DeletionTimestamp != nil {
		return err
	}
	// Spark needs some seconds before it asks for executors. They never start in the same second as their driver.
	if time.Since(driver.Status.StartTime.Time) < 2*time.Second {
		return nil
	}
	driver.APIVersion, driver.Kind = "v1", "Pod"
	all, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "spark-role=executor"})
	if err != nil {
		return err
	}
	there := slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !metav1.IsControlledBy(&p, driver) })
	for n := int64(len(there)); n < executors; n++ {
		s.next++
		executor := sparkPod(fmt.Sprintf("%s-exec-%d", app.GetName(), s.next), "executor", driver)
		executor.Annotations[v1beta1.KubeGroupNameAnnotationKey] = group.Name
		if _, err := pods.Create(ctx, executor, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// owner is what owns a part of an application.
type owner interface {
	metav1.Object
	GroupVersionKind() schema.GroupVersionKind
}

func ownedBy(name string, by owner) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: by.GetNamespace(), Name: name, Annotations: map[string]string{}, Labels: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(by, by.GroupVersionKind())}}
}

func sparkPod(name, role string, by owner) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: ownedBy(name, by), Spec: corev1.PodSpec{SchedulerName: "volcano", RestartPolicy: corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: new(int64(1)), Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}}
	pod.Labels["spark-role"] = role
	pod.Annotations["volcano.sh/preemptable"] = "true"
	pod.Annotations[v1beta1.KubeGroupNameAnnotationKey] = "spark-" + strings.TrimSuffix(name, "-driver") + "-pg"
	return pod
}
