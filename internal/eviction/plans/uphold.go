package plans

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// recheck is how often the rules are checked again for victims whose evictions are not sent.
const recheck = time.Second

// Uphold cancels plans in force that have become impossible, fulfils those whose nominated nodes are free, and notes
// the progress of the others. changed says that the configuration has changed.
func Uphold(s *framework.Session, changed bool) {
	s.Cluster.Plans().NoteRestarts(s.Now)
	// When a plan ends and some of its victims stay, other plans may become impossible.
	for again := true; again; {
		again = upholdAll(s, changed)
		changed = again
	}
	resume(s)
}

// upholdAll checks each plan once, the earliest first. It reports whether victims of an ended plan stay, so that all
// plans must be checked again.
func upholdAll(s *framework.Session, changed bool) (isSpared bool) {
	plans := upheld(s)
	each := func(look func(p *cluster.Plan)) {
		for _, p := range plans {
			if p.IsInForce() {
				s.LookAt(p.Job, func() { look(p) })
				isSpared = isSpared || len(p.Spared) > 0
			}
		}
	}
	isBroken := false
	each(func(p *cluster.Plan) {
		if p.Job == nil {
			upholdWithoutJob(s, p)
		} else if why := broken(s, p); why != "" {
			cancel(s, p, why)
			isBroken = true
		}
	})
	if isBroken {
		s.OpenPlugins() // what was promised on a node that is lost is not shared any more (rule Q6)
	}
	plans = slices.DeleteFunc(plans, func(p *cluster.Plan) bool { return p.Job == nil })
	isSpared = cancelRefuted(s, plans, changed) || isSpared
	if p := lastDeadlocked(s); p != nil {
		s.LookAt(p.Job, func() { cancel(s, p, "its pods and those of other plans would wait for each other") })
		return true
	}
	resume(s)
	each(func(p *cluster.Plan) {
		switch {
		case fulfil(s, p):
		case !s.Now.Before(p.Deadline):
			cancel(s, p, "the room did not become free in time")
		default:
			ShowProgress(s, p)
		}
	})
	return isSpared
}

// upheld returns the plans in force but those of Workloads, which the action admit upholds, in the order in which they
// came into force.
func upheld(s *framework.Session) []*cluster.Plan {
	return slices.DeleteFunc(s.Cluster.Plans().InOrder(), func(p *cluster.Plan) bool { return p.Job != nil && p.Job.Workload != nil })
}

// cancelRefuted cancels plans that are not possible together with the plans before them. It checks the latest first: a
// later plan was made with the earlier ones in force, so of two plans that exclude each other only the later is
// cancelled. The plans are passed in the order in which they came into force. It reports whether victims of a cancelled
// plan stay.
//
// Which rules forbid victims is asked of each plan without the plans after it. That stays true when some of these are
// cancelled.
func cancelRefuted(s *framework.Session, plans []*cluster.Plan, changed bool) (isSpared bool) {
	forbidden := forbiddenVictims(s, plans, changed)
	for _, p := range slices.Backward(plans) {
		if p.Job == nil || !p.IsInForce() {
			continue
		}
		s.LookAt(p.Job, func() {
			why, isLost := forbidden[p], false
			if why == "" {
				why, isLost = refuted(s, p)
			}
			if isLost {
				lose(s, p)
			} else if why != "" {
				cancel(s, p, why)
			}
		})
		isSpared = isSpared || len(p.Spared) > 0
	}
	return isSpared
}

// forbiddenVictims says of which plans a rule now protects a victim whose eviction is not sent, and names the rule.
// Each plan is checked without the plans after it. They are suspended one after the other, so that the effort is linear
// in plans.
func forbiddenVictims(s *framework.Session, plans []*cluster.Plan, changed bool) (forbidden map[*cluster.Plan]string) {
	isDue := map[*cluster.Plan]bool{}
	for _, p := range plans {
		if p.Job != nil && p.IsInForce() && (changed || s.Now.Sub(p.Checked) >= recheck) && len(p.Unsent()) > 0 {
			isDue[p] = true
		}
	}
	x := s.Begin()
	defer x.Undo()
	inOrder := s.Cluster.Plans().InOrder()
	for left := len(isDue); left > 0; inOrder = inOrder[:len(inOrder)-1] {
		p := inOrder[len(inOrder)-1]
		if isDue[p] {
			left--
			p.Checked = s.Now
			s.LookAt(p.Job, func() {
				if why := forbidsVictims(s, p); why != "" {
					if forbidden == nil {
						forbidden = map[*cluster.Plan]string{}
					}
					forbidden[p] = why
				}
			})
		}
		suspend(x, p)
	}
	return forbidden
}

// Fulfil ends a plan whose job has its tasks placed, on any nodes. Victims whose evictions are not sent stay. Other
// plans that relied on their room are cancelled in the same cycle.
func Fulfil(s *framework.Session, p *cluster.Plan) {
	s.Cluster.Plans().FulfilElsewhere(p)
	for again := len(p.Spared) > 0; again; {
		again = cancelRefuted(s, upheld(s), true)
	}
}

// upholdWithoutJob checks a plan of evictions for no preemptor.
func upholdWithoutJob(s *framework.Session, p *cluster.Plan) {
	if s.Policy.EvictingAction(p.Action) == nil && len(p.Unsent()) > 0 {
		s.Cluster.Plans().Cancel(p, notConfigured(p))
	} else if !s.Now.Before(p.Deadline) {
		s.Cluster.Plans().Cancel(p, "the pods did not leave in time")
	}
}

// roomIsLost is why a plan ends whose nominated nodes will not have room.
const roomIsLost = "the room that was promised is not there any more"

// lose ends a plan that has lost its room. If pods have left for it, others have taken what these left: pods of another
// scheduler, which knows of no plans. If that happens repeatedly, no pods are evicted for the job for a while.
func lose(s *framework.Session, p *cluster.Plan) {
	if wereSent := p.Evictions > len(p.Unsent()); wereSent && p.Job.Workload == nil {
		p.Job.LoseRoom(s.Now)
	}
	cancel(s, p, roomIsLost)
}

// refuted says why a plan whose victims may leave is not possible together with earlier plans, "" if it is, or if its
// room is lost.
func refuted(s *framework.Session, p *cluster.Plan) (why string, isLost bool) {
	if why := forbidsPlaces(s, p); why != "" {
		return why, false
	}
	order, isLost := outlookOf(s, p)
	if isLost {
		return "", true
	}
	if order != nil {
		p.Sequence = order // the order in which the plan was made may not fit any more
	}
	return "", false
}

// actionOf returns the action whose rules apply to a plan. why says that there is none any more.
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

// cancel ends a plan. Its job is scheduled again in the same cycle, before other jobs get what has become free for it.
func cancel(s *framework.Session, p *cluster.Plan, why string) {
	j := p.Job
	if j.Workload != nil {
		s.Cluster.Plans().Cancel(p, why)
		return // its nodes are sought again when its victims have left
	}
	// A plan that this cycle has made for the job of another that has ended is not made again and again.
	if wereSent := p.Evictions > len(p.Unsent()); wereSent || p.Since.Before(s.Now) {
		s.Cluster.Plans().Interrupt(p, why)
	} else {
		s.Cluster.Plans().Cancel(p, why)
	}
	s.Cluster.SetVerdict(j, nil)
	s.Rejoin(j)
}

// resume serves the jobs whose plans have ended before any other job, but after those above them whose nominated nodes
// are free: as long as these wait, pods that attract theirs may not be evicted.
func resume(s *framework.Session) {
	for ended := s.Cluster.Plans().TakeInterrupted(); len(ended) > 0; ended = s.Cluster.Plans().TakeInterrupted() {
		for _, p := range ended { // for such a job, plans of jobs below it may end
			for _, above := range upheld(s) {
				if j := above.Job; j != nil && j.Priority > p.Job.Priority {
					s.LookAt(j, func() { fulfil(s, above) })
				}
			}
			Resume(s, p)
		}
	}
}

// Resume looks for room for a job whose plan has ended: nodes that are free or becoming free, or other victims. All
// actions do so, in their order. Otherwise pods that replace the victims would get the room, and would be evicted in
// turn (rules S1, S2, S6).
func Resume(s *framework.Session, ended *cluster.Plan) {
	j := ended.Job
	s.LookAt(j, func() {
		s.Resumed = ended
		defer func() { s.Resumed = nil }()
		for _, a := range s.Policy.Actions {
			switch action := a.(type) {
			case framework.AllocatingAction:
				if rules.MayPreempt(s, j) {
					action.PlaceFirst(s, j, len(ended.Unpromised))
				}
			case framework.EvictingAction:
				if rules.MayPreempt(s, j) && !rules.Pauses(s, j) {
					action.MakeRoom(s, j)
				}
			}
		}
	})
}
