package queueing

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func template() *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	t.Labels = map[string]string{"app": "a"}
	t.Spec.NodeSelector = map[string]string{"zone": "a"}
	t.Spec.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
	return t
}

func TestWhatIsAppliedIsTakenAwayAgain(t *testing.T) {
	applied := template()
	info := &PodSetInfo{Labels: map[string]string{"podset": "main"}, Annotations: map[string]string{"workload": "w"},
		NodeSelector: map[string]string{"zone": "a", "kind": "spot"}, Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}, {Key: "gpu"}}}
	if err := info.Apply(applied); err != nil {
		t.Fatal(err)
	}
	if s := applied.Spec; s.NodeSelector["kind"] != "spot" || len(s.Tolerations) != 2 || applied.Labels["podset"] != "main" || applied.Annotations["workload"] != "w" {
		t.Errorf("applied it is %+v", applied)
	}
	RestoreTemplate(applied, template())
	if diff := cmp.Diff(template(), applied); diff != "" {
		t.Errorf("restored it differs:\n%s", diff)
	}
}

func TestATemplateThatSaysOtherwiseIsLeftAsItIs(t *testing.T) {
	applied := template()
	contrary := PodSetInfo{Labels: map[string]string{"new": "b"}, NodeSelector: map[string]string{"zone": "b"}}
	err := contrary.Apply(applied)
	if err == nil || !strings.Contains(err.Error(), "invalid admission check PodSetUpdate: conflict for nodeSelector: conflict for key=zone, value1=a, value2=b") {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(template(), applied); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
	info := &PodSetInfo{NodeSelector: map[string]string{"zone": "a"}}
	if err := info.Add(&v1beta2.PodSetUpdate{NodeSelector: map[string]string{"zone": "b"}}); err == nil {
		t.Error("an update that contradicts a flavor is accepted")
	}
}
