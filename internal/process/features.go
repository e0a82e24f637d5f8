package process

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

// QueueAdmissionGates is Volcano's feature gate for pods that are held until their queue has room for them.
const QueueAdmissionGates = "SchedulingGatesQueueAdmission"

// FeatureGates are the values of --feature-gates of a program that knows [QueueAdmissionGates].
type FeatureGates map[string]bool

// Add declares the flag. It comes before [AddSuperseded].
func (g *FeatureGates) Add(flags *pflag.FlagSet) {
	*g = FeatureGates{}
	flags.Var(cliflag.NewMapStringBool((*map[string]bool)(g)), "feature-gates", "As name=true: "+QueueAdmissionGates+" holds pods "+
		"with the annotation scheduling.volcano.sh/queue-allocation-gate back until their queue has room for "+
		"them. It must be on for the scheduler and for the admission webhooks.")
}

// Ineffective says which of Volcano's other feature gates were given, one sentence each.
func (g FeatureGates) Ineffective() []string {
	var sentences []string
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if name != QueueAdmissionGates {
			sentences = append(sentences, fmt.Sprintf("--feature-gates=%s=%t has no effect: the only feature gate is %s",
				name, g[name], QueueAdmissionGates))
		}
	}
	return sentences
}
