package plans

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// recheck is how often the rules are asked again about victims that were not told to leave, beside every change of the configuration.
const recheck = time.Second

// Uphold looks after the plans in force: it cancels those that cannot come true any more, fulfils those whose room is free, and notes
// how far the others have come. changed says that the configuration is another than before.
func Uphold(s *framework.Session, changed bool) {
	// With a plan that ends and whose victims stay after all, others may lose what they have counted on.
	for again := true; again; {
		again = upholdAll(s, changed)
		changed = again
	}
	resume(s)
}

// upholdAll looks at each plan once. It reports whether to look at them again, since victims of any stay after all. The earliest is
// fulfilled first.
func upholdAll(s *framework.Session, changed bool) (isSpared bool) {
	plans := s.Cluster.Plans().InOrder()
	each := func(look func(p *cluster.Plan)) {
		for _, p := range plans {
			if p.IsInForce() {
				s.LookAt(p.Job, func() { look(p) })
				isSpared = isSpared || len(p.Spared) > 0
			}
		}
	}
	each(func(p *cluster.Plan) {
		if p.Job == nil {
			upholdWithoutJob(s, p)
		} else if why := broken(s, p); why != "" {
			cancel(s, p, why)
		}
	})
	plans = slices.DeleteFunc(plans, func(p *cluster.Plan) bool { return p.Job == nil })
	isSpared = cancelRefuted(s, plans, changed) || isSpared
	if p := lastDeadlocked(s); p != nil {
		s.LookAt(p.Job, func() { cancel(s, p, "its pods and those of other plans would wait for each other") })
		return true
	}
	each(func(p *cluster.Plan) {
		if !fulfil(s, p) {
			ShowProgress(s, p)
		}
	})
	return isSpared
}

// cancelRefuted cancels those of some plans, given in the order in which they came into force, that cannot come true beside those before
// them. Later plans were made beside earlier ones, not the other way round, so the latest is asked first: otherwise two plans that cannot
// both come true would cancel each other. It reports whether victims of any stay after all.
func cancelRefuted(s *framework.Session, plans []*cluster.Plan, changed bool) (isSpared bool) {
	for _, p := range slices.Backward(plans) {
		if p.Job == nil || !p.IsInForce() {
			continue
		}
		s.LookAt(p.Job, func() {
			if why := refuted(s, p, changed); why != "" {
				cancel(s, p, why)
			}
		})
		isSpared = isSpared || len(p.Spared) > 0
	}
	return isSpared
}

// Fulfil ends a plan whose job has what it was promised, on whatever nodes. Victims that were not told to leave stay, so other plans
// that counted on their room are cancelled in the same cycle.
func Fulfil(s *framework.Session, p *cluster.Plan) {
	s.Cluster.Plans().Fulfil(p)
	for again := len(p.Spared) > 0; again; {
		again = cancelRefuted(s, s.Cluster.Plans().InOrder(), true)
	}
}

// upholdWithoutJob looks after a plan of evictions whose room goes to no job.
func upholdWithoutJob(s *framework.Session, p *cluster.Plan) {
	if s.Policy.EvictingAction(p.Action) == nil && len(p.Unsent()) > 0 {
		s.Cluster.Plans().Cancel(p, notConfigured(p))
	} else if !s.Now.Before(p.Deadline) {
		s.Cluster.Plans().Cancel(p, "the pods did not leave in time")
	}
}

// refuted says why a plan cannot come true beside those that came into force before it, "" if it may.
func refuted(s *framework.Session, p *cluster.Plan, changed bool) string {
	if unsent := p.Unsent(); len(unsent) > 0 && (changed || s.Now.Sub(p.Checked) >= recheck) {
		p.Checked = s.Now
		action, why := actionOf(s, p)
		if why == "" {
			why = forbidsVictims(s, p, action, unsent)
		}
		if why != "" {
			return why
		}
	}
	if why := forbidsPlaces(s, p); why != "" {
		return why
	}
	order, isLost := outlookOf(s, p)
	if isLost {
		return "the room that was promised is not there any more"
	}
	if order != nil {
		p.Sequence = order // the one in which the plan was made may not do any more
	}
	return ""
}

// actionOf returns the action by whose rules the victims of a plan leave. why says that there is none any more.
func actionOf(s *framework.Session, p *cluster.Plan) (action framework.EvictingAction, why string) {
	action = s.Policy.EvictingAction(p.Action)
	switch {
	case action == nil:
		return nil, notConfigured(p)
	case !action.EvictionRules().Scopes.Has(p.Scope):
		return nil, fmt.Sprintf("action %s makes no plans of its scope %q", p.Action, p.Scope)
	}
	return action, ""
}

func notConfigured(p *cluster.Plan) string {
	return "action " + p.Action + " is not in the configuration any more"
}

// cancel ends a plan. Its job is looked at anew in the same cycle: what has become free for it is not to go to others before.
func cancel(s *framework.Session, p *cluster.Plan, why string) {
	j := p.Job
	s.Cluster.Plans().Cancel(p, why)
	s.Cluster.SetVerdict(j, nil)
	s.Rejoin(j)
}

// resume looks for other victims for jobs whose plan has failed after pods had left for it, before any other job is served. The room
// that is free already would go to pods that replace the victims, and they would be evicted in turn (rules S1, S2).
func resume(s *framework.Session) {
	for _, p := range s.Cluster.Plans().TakeInterrupted() {
		action := s.Policy.EvictingAction(p.Action)
		if j := p.Job; action != nil && rules.MayPreempt(s, j) {
			s.LookAt(j, func() { action.MakeRoom(s, j) })
		}
	}
}
