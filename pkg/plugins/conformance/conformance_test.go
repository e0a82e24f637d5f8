package conformance_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/plugins/conformance"
	"hekla.sh/hekla/test/fixture"
)

func TestWhatTheClusterLivesOnIsProtected(t *testing.T) {
	plugin, err := conformance.Factory().New(conf.Switches{}, conf.Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	protects := plugin.(interface{ Protects(*corev1.Pod) bool }).Protects
	for name, test := range map[string]struct {
		namespace, class string
		want             bool
	}{
		"a pod like any other":           {"work", "", false},
		"a pod of a user's class":        {"work", "high", false},
		"critical for the cluster":       {"work", "system-cluster-critical", true},
		"critical for a node":            {"work", "system-node-critical", true},
		"of the namespace kube-system":   {"kube-system", "", true},
		"of a namespace that is like it": {"kube-system-tools", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixture.Pod("p")
			p.Namespace, p.Spec.PriorityClassName = test.namespace, test.class
			if got := protects(p); got != test.want {
				t.Errorf("protected is %t", got)
			}
		})
	}
}
