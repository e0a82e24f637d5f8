package shapes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/cluster/workloads/shapes"
	"hekla.sh/hekla/pkg/resources"
)

// asking is a Workload of three pods that ask for so many cores, and run a command.
func asking(cores, command string) *settings.Workload {
	container := corev1.Container{Name: "c", Command: []string{command}}
	container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores)}
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	return &settings.Workload{Namespace: "team", PodSets: []settings.PodSet{{Name: "main", Count: 3, Template: template}}}
}

func TestEqualWorkloadsShareAShape(t *testing.T) {
	table := shapes.NewTable(resources.NewIndex())
	first := table.Of(asking("2", "a"))
	if len(first.Sets) != 1 || first.Problem != "" {
		t.Fatalf("the shape is %+v", first)
	}
	for name, c := range map[string]struct {
		edit func(*settings.Workload)
		same bool
	}{
		"nothing differs":    {func(*settings.Workload) {}, true},
		"a command":          {func(w *settings.Workload) { w.PodSets[0].Template.Spec.Containers[0].Command = []string{"b"} }, true},
		"an image":           {func(w *settings.Workload) { w.PodSets[0].Template.Spec.Containers[0].Image = "b" }, false},
		"the number of pods": {func(w *settings.Workload) { w.PodSets[0].Count = 4 }, false},
		"the priority":       {func(w *settings.Workload) { w.Priority = 1 }, false},
		"where pods can be":  {func(w *settings.Workload) { w.PodSets[0].Template.Spec.NodeSelector = map[string]string{"zone": "a"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := asking("2", "a")
			c.edit(w)
			other := table.Of(w)
			defer table.Release(other)
			if (other == first) != c.same {
				t.Errorf("one shape: %t, want %t", other == first, c.same)
			}
		})
	}
}

func TestAShapeThatNoWorkloadHasIsForgotten(t *testing.T) {
	table := shapes.NewTable(resources.NewIndex())
	first, second := table.Of(asking("2", "a")), table.Of(asking("2", "b"))
	table.Release(first)
	if table.Of(asking("2", "c")) != second {
		t.Error("a shape is forgotten that a Workload has")
	}
	table.Release(second)
	table.Release(second)
	if table.Of(asking("2", "d")) == first {
		t.Error("a shape is kept that no Workload has")
	}
}
