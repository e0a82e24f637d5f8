package priority

import (
	"cmp"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "priority"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	spec := conf.Spec{Decides: []conf.Switch{conf.EnablePreemptable}}
	return framework.PluginFactory{Name: Name, Spec: spec, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return plugin{}, nil
	}}
}

type plugin struct{}

func (plugin) Name() string { return Name }

func (plugin) CompareJobs(a, b *cluster.Job) int { return cmp.Compare(b.Priority, a.Priority) }

func (plugin) CompareTasks(a, b *cluster.Task) int { return cmp.Compare(b.Priority, a.Priority) }

// VotePreempt permits evicting pods that rank below the preemptor.
func (plugin) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	victim := d.VictimJob()
	if victim != d.Preemptor {
		if victim.Priority < d.Preemptor.Priority {
			return framework.Permit, verdict.Protection{}
		}
		return framework.Reject, verdict.RuleNotLowerJob.Protection()
	}
	for _, victim := range d.Victims {
		if d.For == nil || victim.Priority >= d.For.Priority {
			return framework.Reject, verdict.RuleNotLowerTask.Protection()
		}
	}
	return framework.Permit, verdict.Protection{}
}

// IsStarving reports whether fewer tasks of the job have a node, or are pipelined to one, than could have one.
func (plugin) IsStarving(j *cluster.Job) bool {
	return j.IsPendingAdmission() || j.Count(cluster.Pending) > 0
}
