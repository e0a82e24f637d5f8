package steering

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// onNode is a pod of the podset main on a node, or one that waits for a node if that is "".
func onNode(name, node string, phase corev1.PodPhase) corev1.Pod {
	pod := corev1.Pod{}
	pod.Name, pod.Labels, pod.Status.Phase = name, map[string]string{v1beta2.PodSetLabel: "main"}, phase
	if node == "" {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: v1beta2.TopologyGate}}
	} else {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	return pod
}

func TestPodsGetTheFreePlacesOfTheirPodSet(t *testing.T) {
	admission := &v1beta2.Admission{PodSetAssignments: []v1beta2.PodSetAssignment{{Name: "main",
		TopologyAssignment: settings.Topology([]settings.NodeCount{{Node: "n1", Count: 2}, {Node: "n2", Count: 1}})}}}
	other := onNode("o", "", "")
	other.Labels[v1beta2.PodSetLabel] = "other"
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"all wait":        {[]corev1.Pod{onNode("c", "", ""), onNode("a", "", ""), onNode("b", "", "")}, "a n1, b n1, c n2"},
		"some are placed": {[]corev1.Pod{onNode("a", "n1", ""), onNode("b", "", ""), onNode("c", "", "")}, "b n1, c n2"},
		"one too many":    {[]corev1.Pod{onNode("a", "n1", ""), onNode("b", "n1", ""), onNode("c", "n2", ""), onNode("d", "", "")}, ""},
		"one has failed":  {[]corev1.Pod{onNode("a", "n1", ""), onNode("b", "n1", ""), onNode("c", "n2", corev1.PodFailed), onNode("d", "", "")}, "d n2"},
		"another podset":  {[]corev1.Pod{other}, ""},
	} {
		chosen, err := choose(admission, test.pods)
		var got []string
		for _, c := range chosen {
			got = append(got, fmt.Sprintf("%s %s", c.pod.Name, c.node))
		}
		if text := strings.Join(got, ", "); err != nil || text != test.want {
			t.Errorf("%s: %q, %v, want %q", name, text, err, test.want)
		}
	}
	admission.PodSetAssignments[0].TopologyAssignment.Levels[0] = "rack"
	if _, err := choose(admission, nil); err == nil {
		t.Error("racks are taken for nodes")
	}
}
