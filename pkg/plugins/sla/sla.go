package sla

import (
	"errors"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "sla"

// waitingTime is the argument, and the short name of the annotation.
const waitingTime = "sla-waiting-time"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{{Name: waitingTime, Kind: conf.Duration, Default: time.Duration(0), Check: notNegative,
			Doc: "How long a job may wait that does not say so itself; 0s is for ever."}}},
		New: func(on conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
			return &plugin{wait: arguments.Duration(waitingTime), judgesAdmission: on.On(conf.EnableJobEnqueued)}, nil
		},
	}
}

func notNegative(value any) error {
	if wait, ok := value.(time.Duration); ok && wait < 0 {
		return errors.New("zero or more")
	}
	return nil
}

type plugin struct {
	wait            time.Duration // of jobs without the annotation, zero for no limit
	judgesAdmission bool
	cluster         *model.Cluster
	now             time.Time
}

func (*plugin) Name() string { return Name }

func (p *plugin) OpenSession(s *framework.Session) { p.cluster, p.now = s.Cluster, s.Now }

// deadline is until when a job may wait, zero for no limit.
func (p *plugin) deadline(j *cluster.Job) time.Time {
	wait := p.wait
	if j.Group != nil {
		for _, key := range []string{schedulingv1beta1.SLAWaitingTimeKey, waitingTime} {
			if own, err := time.ParseDuration(j.Group.Annotations[key]); err == nil && own > 0 {
				wait = own
				break
			}
		}
	}
	if wait == 0 {
		return time.Time{}
	}
	return j.Created().Add(wait)
}

// CompareJobs puts the job with the earlier deadline first.
func (p *plugin) CompareJobs(a, b *cluster.Job) int {
	due, other := p.deadline(a), p.deadline(b)
	switch {
	case due.IsZero() && other.IsZero():
		return 0
	case due.IsZero():
		return 1
	case other.IsZero():
		return -1
	}
	return due.Compare(other)
}

// MayEnqueue permits a job whose deadline has come.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	if due := p.deadline(j); due.IsZero() || p.now.Before(due) {
		return framework.Abstain, nil
	}
	return framework.Permit, nil
}

// WakeAt is the next deadline of a job pending admission.
func (p *plugin) WakeAt() time.Time {
	var next time.Time
	if !p.judgesAdmission || p.cluster == nil {
		return next
	}
	for _, j := range p.cluster.Waiting() {
		if !j.IsPendingAdmission() {
			continue
		}
		if due := p.deadline(j); due.After(p.now) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}
