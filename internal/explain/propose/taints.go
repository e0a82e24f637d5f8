package propose

import (
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// systemTaints begin the keys of taints that Kubernetes sets, which no job should tolerate to get a node.
var systemTaints = []string{"node.kubernetes.io/", "node-role.kubernetes.io/", "node.cloudprovider.kubernetes.io/"}

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

// untolerated are the taints that keep pods of the job away. mayTolerate is false if one of them is Kubernetes' own.
func (p *proposer) untolerated(all []corev1.Taint) (taints []corev1.Taint, mayTolerate bool) {
	mayTolerate = true
	for i := range all {
		refuses := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
		for _, one := range p.pending {
			taint, is := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), all[i:i+1], one.object.Spec.Tolerations, refuses, false)
			if !is {
				continue
			}
			for _, prefix := range systemTaints {
				mayTolerate = mayTolerate && !strings.HasPrefix(taint.Key, prefix)
			}
			taints = append(taints, taint)
			break
		}
	}
	return taints, mayTolerate
}

func wordsOf(taints []corev1.Taint) string {
	var words []string
	for i := range taints {
		words = append(words, "taint "+taints[i].ToString())
	}
	return strings.Join(words, ", ")
}
