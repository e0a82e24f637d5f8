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

func TestAPodThatWasStartedIsOfThePodSetItHad(t *testing.T) {
	started := pod("a", "1")
	started.Spec.SchedulingGates = nil
	started.Labels = map[string]string{v1beta2.PodSetLabel: Role(pod("b", "1"))}
	started.Spec.NodeSelector = map[string]string{"flavor": "f"} // of its flavor
	sets := podSetsOf([]*corev1.Pod{pod("b", "1"), started}, 2)
	if len(sets) != 1 || sets[0].Count != 2 || sets[0].Template.Spec.NodeSelector != nil {
		t.Errorf("the podsets are %+v", sets)
	}
	if sets = podSetsOf([]*corev1.Pod{started}, 1); sets[0].Name != Role(pod("b", "1")) || sets[0].Template.Labels[v1beta2.PodSetLabel] != "" {
		t.Errorf("the podsets are %+v", sets)
	}
}

func TestTheFirstPodOfAFastGroupStandsForAll(t *testing.T) {
	first := pod("a", "1")
	first.Annotations = map[string]string{v1beta2.PodGroupFastAdmissionAnnotation: "true"}
	if sets := podSetsOf([]*corev1.Pod{first}, 5); len(sets) != 1 || sets[0].Count != 5 {
		t.Errorf("the podsets are %+v", sets)
	}
}

func TestThePlaceOfAPodThatHasSucceededIsGivenToNoOther(t *testing.T) {
	ended, runs := pod("a", "1"), pod("b", "1")
	for _, p := range []*corev1.Pod{ended, runs} {
		p.Spec.SchedulingGates, p.Labels = nil, map[string]string{v1beta2.PodSetLabel: "set"}
	}
	ended.Status.Phase = corev1.PodSucceeded
	sets := []v1beta2.PodSet{{Name: "set", Count: 2}}
	for _, c := range []struct {
		admitted int32
		started  []*corev1.Pod
		free     int32
	}{
		{2, nil, 2},
		{2, []*corev1.Pod{runs}, 1},
		{2, []*corev1.Pod{ended}, 1},
		{1, []*corev1.Pod{ended}, 1}, // its place was given up before
		{2, []*corev1.Pod{ended, runs}, 0},
		{1, []*corev1.Pod{ended, runs}, 0},
	} {
		if free := FreePlaces(sets, []PodSetInfo{{Name: "set", Count: c.admitted}}, c.started); free["set"] != c.free {
			t.Errorf("with %d admitted and %d started %d are free, want %d", c.admitted, len(c.started), free["set"], c.free)
		}
	}
}
