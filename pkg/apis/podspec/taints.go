package podspec

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// taintsOfKubernetes begin the keys of taints that Kubernetes and cloud providers set (source: "Taints and Tolerations"
// in Kubernetes' documentation).
var taintsOfKubernetes = []string{"node.kubernetes.io/", "node-role.kubernetes.io/", "node.cloudprovider.kubernetes.io/"}

// IsTaintOfKubernetes reports whether Kubernetes sets taints of a key. The API server lets every pod tolerate some of
// them for a while, and no job should tolerate more to get a node.
func IsTaintOfKubernetes(key string) bool {
	for _, prefix := range taintsOfKubernetes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// Untolerated are the taints that keep a pod with some tolerations from a node.
func Untolerated(taints []corev1.Taint, tolerations []corev1.Toleration) (all []corev1.Taint) {
	refuses := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	for i := range taints {
		if taint, is := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), taints[i:i+1], tolerations, refuses, false); is {
			all = append(all, taint)
		}
	}
	return all
}
