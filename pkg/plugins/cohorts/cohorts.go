package cohorts

import (
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/cluster/workloads/shapes"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/cohorts/arguments"
)

// Name is the name of the plugin in the configuration.
const Name = "cohorts"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: arguments.Schema()},
		New: func(_ conf.Switches, given conf.Arguments) (framework.Plugin, error) {
			a, err := arguments.Of(given)
			if err != nil {
				return nil, err
			}
			return &plugin{rules: rulesOf(&a)}, nil
		},
	}
}

type plugin struct{ rules framework.WorkloadRules }

func (*plugin) Name() string { return Name }

// WorkloadRules implements [framework.WorkloadPolicy].
func (p *plugin) WorkloadRules() *framework.WorkloadRules { return &p.rules }

// rulesOf are the rules of arguments.
func rulesOf(a *arguments.Arguments) framework.WorkloadRules {
	rules := framework.WorkloadRules{
		Options:          optionsOf(a),
		FairSharing:      a.FairSharing,
		IgnoreUndeclared: a.Resources.QuotaCheckStrategy == arguments.IgnoreUndeclared,
		BlocksAdmission:  a.WaitForPodsReady.Enable && a.WaitForPodsReady.BlockAdmission,
		MaxRounds:        a.MaxRounds,
	}
	for _, s := range a.PreemptionStrategies {
		strategy := workload.LessThanOrEqualToFinalShare
		if s == arguments.LessThanInitialShare {
			strategy = workload.LessThanInitialShare
		}
		rules.Strategies = append(rules.Strategies, strategy)
	}
	return rules
}

// optionsOf say how Workloads are read.
func optionsOf(a *arguments.Arguments) workloads.Options {
	options := workloads.Options{
		EvictionTimestamp: a.WaitForPodsReady.RequeuingStrategy.Timestamp == arguments.EvictionTimestamp,
		ByPriority:        a.PrioritySortingWithinCohort,
	}
	options.External, _ = a.External() // they were checked with the others
	options.Counted.ExcludePrefixes = a.Resources.ExcludeResourcePrefixes
	for _, t := range a.Resources.Transformations {
		options.Counted.Transformations = append(options.Counted.Transformations, shapes.Transformation{Input: t.Input,
			Replaces: t.Strategy == arguments.Replace, Outputs: t.Outputs, MultiplyBy: t.MultiplyBy})
	}
	return options
}
