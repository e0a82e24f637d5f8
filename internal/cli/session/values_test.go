package session

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAmountsBeginWithCPUAndMemory(t *testing.T) {
	list := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"pods", "nvidia.com/gpu", "memory", "cpu"} {
		list[name] = resource.MustParse("1")
	}
	if got := Amounts(list); got != "cpu=1,memory=1,nvidia.com/gpu=1,pods=1" {
		t.Error(got)
	}
}
