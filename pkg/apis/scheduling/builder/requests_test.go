package builder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func requests(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

func TestRequestsAreCountedAsTheKubeletCountsThem(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	sidecar := container(requests("500m", ""), nil)
	sidecar.RestartPolicy = &always
	for _, test := range []struct {
		name string
		spec corev1.PodSpec
		want corev1.ResourceList
	}{
		{"containers add up", corev1.PodSpec{Containers: []corev1.Container{
			container(requests("1", "1Gi"), nil), container(requests("2", ""), nil),
		}}, requests("6", "2Gi")},
		{"a limit stands in for a missing request", corev1.PodSpec{Containers: []corev1.Container{
			container(requests("1", ""), requests("4", "2Gi")),
		}}, requests("2", "4Gi")},
		{"init containers run alone, sidecars with all", corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar, container(requests("3", ""), nil)},
			Containers:     []corev1.Container{container(requests("1", ""), nil)},
		}, requests("7", "")},
		{"overhead", corev1.PodSpec{
			Containers: []corev1.Container{container(requests("1", ""), nil)}, Overhead: requests("250m", ""),
		}, requests("2500m", "")},
		{"the pod's own numbers", corev1.PodSpec{
			Containers: []corev1.Container{container(requests("1", ""), nil)},
			Resources:  &corev1.ResourceRequirements{Requests: requests("3", "")},
		}, requests("6", "")},
		{"nothing", corev1.PodSpec{Containers: []corev1.Container{container(nil, nil)}}, corev1.ResourceList{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			total := corev1.ResourceList{}
			AddRequests(total, &test.spec, 2)
			if !apiequality.Semantic.DeepEqual(total, test.want) {
				t.Errorf("two pods request %v, want %v", total, test.want)
			}
		})
	}
}

func TestUsageIsWhatQuotasCount(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	total := list("pods", "1", "count/pods", "1")
	AddUsage(total, &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: list("cpu", "500m", "memory", "1Gi"), Limits: list("cpu", "1", "nvidia.com/gpu", "2", "hugepages-2Mi", "4Mi"),
	}}}}, 3)
	AddUsage(total, &corev1.PodSpec{Containers: []corev1.Container{{}}}, 0)
	want := list("pods", "4", "count/pods", "4", "cpu", "1500m", "requests.cpu", "1500m", "limits.cpu", "3",
		"memory", "3Gi", "requests.memory", "3Gi", "nvidia.com/gpu", "6", "requests.nvidia.com/gpu", "6",
		"hugepages-2Mi", "12Mi", "requests.hugepages-2Mi", "12Mi")
	if !apiequality.Semantic.DeepEqual(total, want) {
		t.Errorf("the usage is %v, want %v", total, want)
	}
}
