package controllers_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/podspec"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

func TestMinResourcesCountWhatPodsAreGiven(t *testing.T) {
	namespace := namespaceFor(t, "given")
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Handler: "sandboxed",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}
	createForTest(t, class)
	ranges := func(name string, list corev1.ResourceList) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: list}}}}
	}
	create(t, ranges("cpu", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}))
	of := task("worker", 3)
	of.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	of.Template.Spec.RuntimeClassName = &class.Name
	job := newJob(namespace, "given", of)
	create(t, job)
	group := podGroupOf(job)
	requests := func(cpus, storage int64) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			if err := api.Get(ctx, client.ObjectKeyFromObject(group), group); err != nil {
				return err
			}
			if m := group.Spec.MinResources; m.Cpu().Value() != cpus || m.Memory().Value() != 3<<30 || m.StorageEphemeral().Value() != storage {
				return fmt.Errorf("it requests %v", m)
			}
			return nil
		})
	}
	requests(6, 0)
	create(t, ranges("storage", corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1")}))
	requests(6, 3) // it follows as long as it has no pods
	setPhase(t, group, scheduling.PodGroupInqueue)
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err == nil && len(pods) != 3 {
			err = fmt.Errorf("there are %d pods", len(pods))
		}
		for _, pod := range pods {
			if cpus := podspec.Requests(&pod.Spec)[corev1.ResourceCPU]; cpus.Value() != 2 {
				t.Errorf("pod %s requests %s CPUs", pod.Name, cpus.String())
			}
		}
		return err
	})
	requests(6, 3)
}
