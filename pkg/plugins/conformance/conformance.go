package conformance

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "conformance"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{Name: Name, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return plugin{}, nil
	}}
}

type plugin struct{}

func (plugin) Name() string { return Name }

// Protects reports whether a pod is one that the cluster lives on.
func (plugin) Protects(pod *corev1.Pod) bool {
	return pod.Namespace == metav1.NamespaceSystem ||
		pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
}
