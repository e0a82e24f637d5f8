package gang

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "gang"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{
			Decides: []conf.Switch{conf.EnablePreemptable, conf.EnableReclaimable},
			Arguments: []conf.Argument{{Name: PlacedPodReasonKey, Kind: conf.String, Default: Schedulable, Check: isReason,
				Doc: "Reason of pods that have a place while their gang has none: Schedulable, which autoscalers pass over, or Unschedulable."}},
		},
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return plugin{}, nil },
	}
}

// PlacedPodReasonKey is the argument for the reason of the condition PodScheduled, of a pod that has a place but waits
// because others of its gang have none. Autoscalers only look at pods with the reason [Unschedulable].
const PlacedPodReasonKey = "placedPodReason"

// The values of [PlacedPodReasonKey].
const (
	Schedulable   = "Schedulable" // as in Volcano
	Unschedulable = corev1.PodReasonUnschedulable
)

// PlacedPodReason is the reason that a configuration gives to pods that have a place while their gang has none. Without
// the plugin there are no gangs.
func PlacedPodReason(configuration *conf.Configuration) string {
	for _, tier := range configuration.Tiers {
		for _, plugin := range tier.Plugins {
			if plugin.Name == Name && plugin.Arguments.Declares(PlacedPodReasonKey) {
				return plugin.Arguments.String(PlacedPodReasonKey)
			}
		}
	}
	return Unschedulable
}

func isReason(value any) error {
	if value != Schedulable && value != Unschedulable {
		return fmt.Errorf("%s or %s", Schedulable, Unschedulable)
	}
	return nil
}

type plugin struct{}

func (plugin) Name() string { return Name }

// ValidateJob refuses a job that has too few pods. A job pending admission passes, because its pods are created after
// it is admitted. If enough pods exist and scheduling gates hold them, the job is refused admission too: it could not
// start.
func (plugin) ValidateJob(j *cluster.Job) *verdict.Verdict {
	have := j.Valid()
	isGated := have < j.MinMember && have+j.Count(cluster.Gated) >= j.MinMember
	if j.IsPendingAdmission() && !isGated {
		return nil
	}
	if have < j.MinMember && !isGated && j.Expected != nil && j.Expected.Refusal != nil {
		return j.Expected.Refusal // nothing stands in for its other pods
	}
	if have < j.MinMember {
		code := verdict.NotEnoughTasks
		if isGated {
			code = verdict.SchedulingGated
		}
		return &verdict.Verdict{Code: code, Help: verdict.HelpJob, Placed: have, Wanted: j.MinMember}
	}
	if !j.ChecksRoles() {
		return nil
	}
	for _, r := range j.RoleMinimums {
		if have := j.RoleValid(r.Role); have < r.Minimum {
			return &verdict.Verdict{Code: verdict.NotEnoughPodsOfTask, Subject: r.Role, Help: verdict.HelpJob, Placed: have,
				Wanted: r.Minimum}
		}
	}
	return nil
}

func (p plugin) IsReady(j *cluster.Job) bool { return p.LacksToStart(j) == 0 }

// LacksToStart counts by the minimums of the job, of its roles and of its subgroups.
func (plugin) LacksToStart(j *cluster.Job) int { return j.Lacks() }

// IsStarving reports whether fewer tasks of the job than its minimum have a node or are pipelined to one.
func (plugin) IsStarving(j *cluster.Job) bool {
	return j.Ready()+j.Count(cluster.Pipelined) < j.MinMember
}

// VotePreempt permits evicting whole gangs, and pods that their gang does not need.
func (plugin) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return vote(d)
}

// VoteReclaim is the same between queues.
func (plugin) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return vote(d)
}

func vote(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	victim := d.VictimJob()
	if d.Whole || victim.Ready()-len(d.Victims) >= victim.MinMember && keepsRoles(victim, d.Victims) {
		return framework.Permit, verdict.Protection{}
	}
	return framework.Reject, verdict.RuleAtItsMinimum.Protection()
}

// keepsRoles reports whether a job keeps the minimum of each role without some tasks.
func keepsRoles(victim *cluster.Job, leaving []*cluster.Task) bool {
	if !victim.ChecksRoles() {
		return true
	}
	for _, r := range victim.RoleMinimums {
		staying := victim.RoleReady(r.Role)
		for _, t := range leaving {
			if t.Role == r.Role {
				staying--
			}
		}
		if staying < r.Minimum {
			return false
		}
	}
	return true
}

func (plugin) CompareJobs(a, b *cluster.Job) int { return cmp.Compare(urgency(a), urgency(b)) }

// urgency is lowest for a gang that has lost pods, then for one that has not started, then for one that only grows.
func urgency(j *cluster.Job) int {
	switch {
	case j.IsWhole():
		return 2
	case j.Ready() == 0:
		return 1
	}
	return 0
}
