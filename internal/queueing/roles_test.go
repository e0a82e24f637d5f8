package queueing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// pod is one that requests so much cpu.
func pod(name, cpu string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name = name
	p.Spec.Containers = []corev1.Container{{Name: name, Image: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1beta2.AdmissionGate}, {Name: "mine"}}
	return p
}

func TestPodsOfOneShapeAreOnePodSet(t *testing.T) {
	sets := podSetsOf([]*corev1.Pod{pod("driver", "2"), pod("a", "1"), pod("b", "1000m")}, 3)
	counts := map[int32]bool{}
	for _, set := range sets {
		counts[set.Count] = true
		if gates := set.Template.Spec.SchedulingGates; len(gates) != 1 || gates[0].Name != "mine" {
			t.Errorf("the gates of the template are %v", gates)
		}
	}
	if len(sets) != 2 || !counts[1] || !counts[2] || sets[0].Name >= sets[1].Name {
		t.Errorf("the podsets are %+v", sets)
	}
	elsewhere := pod("c", "1")
	elsewhere.Spec.NodeSelector = map[string]string{"zone": "a"}
	if Role(elsewhere) == Role(pod("c", "1")) {
		t.Error("pods for other nodes are of the same podset")
	}
	named := pod("d", "1")
	named.Annotations = map[string]string{v1beta2.RoleHashAnnotation: "Workers"}
	if role := Role(named); role != "workers" {
		t.Errorf("its podset is %s", role)
	}
}

func TestTheFirstPodOfAFastGroupStandsForAll(t *testing.T) {
	first := pod("a", "1")
	first.Annotations = map[string]string{v1beta2.PodGroupFastAdmissionAnnotation: "true"}
	if sets := podSetsOf([]*corev1.Pod{first}, 5); len(sets) != 1 || sets[0].Count != 5 {
		t.Errorf("the podsets are %+v", sets)
	}
}
