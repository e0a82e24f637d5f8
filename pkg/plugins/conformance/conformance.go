package conformance

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "conformance"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	spec := conf.Spec{Decides: []conf.Switch{conf.EnablePreemptable, conf.EnableReclaimable}}
	return framework.PluginFactory{Name: Name, Spec: spec, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return plugin{}, nil
	}}
}

type plugin struct{}

func (plugin) Name() string { return Name }

// VotePreempt protects pods that the cluster needs.
func (plugin) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return vote(d)
}

// VoteReclaim is the same between queues.
func (plugin) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return vote(d)
}

func vote(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	for _, victim := range d.Victims {
		if isCritical(victim.Pod) {
			return framework.Reject, verdict.RuleCritical.Protection()
		}
	}
	return framework.Permit, verdict.Protection{}
}

// isCritical reports whether the cluster needs a pod.
func isCritical(pod *cluster.Pod) bool {
	return pod.Namespace == metav1.NamespaceSystem ||
		pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
}
