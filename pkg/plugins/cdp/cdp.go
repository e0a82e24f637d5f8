package cdp

import (
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "cdp"

const cooling = "their cool-down is not over"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	spec := conf.Spec{Protects: "pods whose cool-down is not over"}
	return framework.PluginFactory{Name: Name, Spec: spec, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return &plugin{}, nil
	}}
}

type plugin struct {
	now  time.Time
	wake time.Time // when the first cool-down ends that protected a pod, zero if there is none
}

func (*plugin) Name() string { return Name }

func (p *plugin) OpenSession(s *framework.Session) {
	p.now = s.Now
	if !p.wake.After(p.now) {
		p.wake = time.Time{} // the refused jobs are looked at again now
	}
}

// WakeAt is the end of the first cool-down that protected a pod from a preemptor.
func (p *plugin) WakeAt() time.Time { return p.wake }

// VotePreempt protects pods whose cool-down is not over.
func (p *plugin) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return p.vote(d)
}

// VoteReclaim is the same between queues.
func (p *plugin) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return p.vote(d)
}

func (p *plugin) vote(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	for _, victim := range d.Victims {
		if ends := coolDownEnds(victim); p.now.Before(ends) {
			if p.wake.IsZero() || ends.Before(p.wake) {
				p.wake = ends
			}
			return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: cooling}
		}
	}
	return framework.Permit, verdict.Protection{}
}

// coolDownEnds is when a pod may be evicted, zero if it may be at once.
func coolDownEnds(t *cluster.Task) time.Time {
	text, ok := t.Pod.Annotations[schedulingv1beta1.CooldownTimeKey]
	if !ok {
		text = t.Pod.Labels[schedulingv1beta1.CooldownTimeKey]
	}
	if text == "" {
		return time.Time{}
	}
	coolDown, err := time.ParseDuration(text)
	if err != nil {
		return time.Time{}
	}
	if at, ok := t.Pod.Status.Scheduled(); ok {
		return at.Add(coolDown)
	}
	return t.Started().Add(coolDown)
}
