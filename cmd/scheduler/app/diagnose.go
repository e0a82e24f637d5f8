package app

import (
	"context"
	"os"
	"time"

	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/version"
)

// diagnose says how this scheduler is. The loop is asked once; the rest is read beside it.
func (r *runner) diagnose(ctx context.Context, gangs []survey.Gang) (diagnosis.Diagnosis, error) {
	story, err := r.scheduler.Questions().Survey(ctx, gangs)
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	host, _ := os.Hostname() // it is left out if it is not known
	d := diagnosis.Diagnosis{
		Time: time.Now(), Cycles: r.recorder.Cycles(), Queues: story.Survey.Queues, Room: story.Survey.Room, Evictions: story.Evictions,
		Scheduler: diagnosis.Scheduler{Version: version.Version, Names: r.options.schedulerNames, Host: host, Leads: time.Unix(0, r.since.Load())},
		Inbox:     r.inbox.Stats(), Outbox: r.outbox.Stats(), Requests: r.clients.Latencies(), Configuration: r.policies.diagnosis(r.options.ineffective()),
		Health: diagnosis.Health{Nodes: story.Survey.Nodes},
	}
	if ahead, ok := r.clients.ClockAhead(); ok {
		d.Health.ClockAheadSeconds = ahead.Seconds()
	}
	if missing, err := diagnosis.MissingRights(ctx, r.clients.Core); err != nil {
		d.Health.RightsUnknown = err.Error()
	} else {
		d.Health.MissingRights = missing
	}
	d.Complain()
	return d, nil
}

// diagnosis says what is in force, and what of it has no effect, beside flags that have none.
func (p *policies) diagnosis(flags []string) diagnosis.Configuration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	answer := diagnosis.Configuration{Place: p.latest.place, Problem: p.problem}
	if c := p.offered; c != nil {
		answer.Text = string(c.YAML())
		for _, notice := range c.Notices {
			answer.Ineffective = append(answer.Ineffective, p.latest.place+", "+notice.String())
		}
	}
	answer.Ineffective = append(answer.Ineffective, flags...)
	return answer
}
