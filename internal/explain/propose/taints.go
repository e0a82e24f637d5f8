package propose

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/podspec"
)

// tolerations looks for taints of a node that refuses the pods with whose tolerations the job would start.
func (p *proposer) tolerations() {
	tried := map[string]bool{}
	for _, name := range p.job.Tainted {
		n := p.job.Cluster.Node(name)
		if n == nil || n.Object == nil || len(tried) == maxExamples {
			continue
		}
		taints, mayTolerate := p.untolerated(n.Object.Spec.Taints)
		words := wordsOf(taints)
		if len(taints) == 0 || !mayTolerate || tried[words] {
			continue
		}
		tried[words] = true
		v := p.variant()
		for _, pod := range v.pods {
			for i := range taints {
				pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: taints[i].Key, Operator: corev1.TolerationOpEqual, Value: taints[i].Value, Effect: taints[i].Effect})
			}
		}
		if nodes, ok := p.starts(v); ok {
			p.found = append(p.found, Proposal{Kind: "tolerations", Starts: true, Nodes: nodes, Message: "with tolerations of " + words + " it would start now"})
			return
		}
	}
}

// untolerated are the taints that keep a pod of the job away. mayTolerate is false if one of them is Kubernetes' own.
func (p *proposer) untolerated(all []corev1.Taint) (taints []corev1.Taint, mayTolerate bool) {
	for _, one := range p.pending {
		if taints = podspec.Untolerated(all, one.object.Spec.Tolerations); len(taints) > 0 {
			break
		}
	}
	isOfKubernetes := func(t corev1.Taint) bool { return podspec.IsTaintOfKubernetes(t.Key) }
	return taints, !slices.ContainsFunc(taints, isOfKubernetes)
}

func wordsOf(taints []corev1.Taint) string {
	var words []string
	for i := range taints {
		words = append(words, "taint "+taints[i].ToString())
	}
	return strings.Join(words, ", ")
}
