package cohorts

import (
	"time"

	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/victims"
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
			return &plugin{arguments: a}, nil
		},
	}
}

type plugin struct {
	arguments arguments.Arguments
	cycle     *cohorts.Cycle // of the queues that were asked about last
}

func (*plugin) Name() string { return Name }

// WorkloadOptions implements [framework.WorkloadPolicy].
func (p *plugin) WorkloadOptions() workloads.Options {
	a := &p.arguments
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

// BlocksAdmission implements [framework.WorkloadPolicy].
func (p *plugin) BlocksAdmission() bool {
	return p.arguments.WaitForPodsReady.Enable && p.arguments.WaitForPodsReady.BlockAdmission
}

// DecideHeads implements [framework.WorkloadPolicy].
func (p *plugin) DecideHeads(queues *workload.Queues, nodes framework.WorkloadNodes, now time.Time, isOver func() bool, decided func(*workload.Nomination)) workload.Rounds {
	if p.cycle == nil || p.cycle.Queues != queues {
		p.cycle = p.newCycle(queues)
	}
	c := p.cycle
	p.cycle = nil // if the rounds do not come to their end, others begin anew
	c.Nodes, c.Assigner.Nodes, c.Rules.Stays = nodes, nodes, nodes.Stays
	c.Now, c.IsOver, c.Decided = now, isOver, decided
	run := c.Run()
	c.Nodes, c.Assigner.Nodes, c.Rules.Stays, c.IsOver, c.Decided = nil, nil, nil, nil, nil
	p.cycle = c
	return run
}

// newCycle begins with all queues as if nothing of them had been refused: what was refused before was by other rules.
func (p *plugin) newCycle(queues *workload.Queues) *cohorts.Cycle {
	for _, q := range queues.All() {
		queues.RetryAll(q)
	}
	a := &p.arguments
	rules := &victims.Rules{Queues: queues, FairSharing: a.FairSharing}
	for _, s := range a.PreemptionStrategies {
		strategy := victims.LessThanOrEqualToFinalShare
		if s == arguments.LessThanInitialShare {
			strategy = victims.LessThanInitialShare
		}
		rules.Strategies = append(rules.Strategies, strategy)
	}
	assigner := &flavors.Assigner{Index: queues.Index, Oracle: rules, FairSharing: a.FairSharing,
		IgnoreUndeclared: a.Resources.QuotaCheckStrategy == arguments.IgnoreUndeclared}
	return &cohorts.Cycle{Queues: queues, Rules: rules, Assigner: assigner, ByPriority: a.PrioritySortingWithinCohort, MaxRounds: a.MaxRounds}
}
