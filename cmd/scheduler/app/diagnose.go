package app

import (
	"context"
	"iter"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/localcluster/supervisor"
	"hekla.sh/hekla/internal/process"
	"hekla.sh/hekla/internal/snapshot"
	"hekla.sh/hekla/internal/version"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/scheduler"
)

// diagnose says how this scheduler is. The loop is asked once; the rest is read without it.
func (r *runner) diagnose(ctx context.Context, gangs []survey.Gang) (diagnosis.Diagnosis, error) {
	story, err := r.scheduler.Questions().Survey(ctx, gangs)
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	host, _ := os.Hostname() // it is left out if it is not known
	d := diagnosis.Diagnosis{
		Time: time.Now(), Cycles: r.recorder.Cycles(), Queues: story.Survey.Queues, ClusterQueues: story.ClusterQueues, Room: story.Survey.Room, Holders: story.Holders, Evictions: story.Evictions,
		Scheduler: diagnosis.Scheduler{Version: version.Version, Names: r.options.schedulerNames, Host: host, Leads: time.Unix(0, r.since.Load())},
		Inbox:     r.inbox.Stats(), Outbox: r.outbox.Stats(), Requests: r.clients.Latencies(), Configuration: r.policies.diagnosis(r.options.ineffective()), Charts: r.charts.Problem(),
		Health: diagnosis.Health{Nodes: story.Survey.Nodes},
	}
	d.Configuration.AdmitsNoWorkloads = !story.AdmitsWorkloads
	if ahead, ok := r.clients.ClockAhead(); ok {
		d.Health.ClockAheadSeconds = ahead.Seconds()
	}
	if missing, err := diagnosis.MissingRights(ctx, r.clients.Core); err != nil {
		d.Health.RightsUnknown = err.Error()
	} else {
		d.Health.MissingRights = missing
	}
	// Outside of a local cluster the variable is not set.
	if folder := os.Getenv(supervisor.FolderVariable); folder != "" {
		if d.Supervised, err = supervisor.Read(folder); err != nil {
			return diagnosis.Diagnosis{}, err
		}
	}
	d.Complain()
	return d, nil
}

// snapshot returns what this scheduler knows: the objects as the next cycle sees them, with the nodes that were decided
// and are not written yet.
func (r *runner) snapshot(ctx context.Context) (*snapshot.Header, iter.Seq[runtime.Object], error) {
	var objects []runtime.Object
	state, err := r.scheduler.Questions().State(ctx, func() { objects = r.inbox.Objects() })
	if err != nil {
		return nil, nil, err
	}
	return r.options.headerOf(&state), func(yield func(runtime.Object) bool) {
		for _, o := range objects {
			if pod, ok := o.(*cluster.Pod); ok {
				whole := pod.Object()
				if node, isAssumed := state.Assumed[whole.UID]; isAssumed && whole.Spec.NodeName == "" {
					whole.Spec.NodeName = node
				}
				o = whole
			}
			if !yield(o) {
				return
			}
		}
	}, nil
}

// headerOf is what a snapshot says in addition to the objects. It is sent to others, so it does not have the passwords
// of the configuration.
func (o *options) headerOf(state *scheduler.State) *snapshot.Header {
	return &snapshot.Header{Taken: state.Now, Cycle: state.Cycle, Version: version.Version, SchedulerNames: o.schedulerNames, DefaultQueue: o.defaultQueue,
		OpensQueueGates: o.featureGates[process.QueueAdmissionGates], Configuration: state.Configuration.String(), Journal: state.Journal}
}

// diagnosis says what is in force, and what of it has no effect, and the flags that have none.
func (p *policies) diagnosis(flags []string) diagnosis.Configuration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	answer := diagnosis.Configuration{Place: p.latest.place, Problem: p.problem}
	if c := p.offered; c != nil {
		answer.Text = c.String()
		for _, notice := range c.Notices {
			answer.Ineffective = append(answer.Ineffective, p.latest.place+", "+notice.String())
		}
	}
	answer.Ineffective = append(answer.Ineffective, flags...)
	return answer
}
