package rescheduling

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// maxAge is the age from which a load is unknown (source: Volcano).
const maxAge = 5 * time.Minute

type plugin struct {
	interval, period time.Duration
	strategies       []strategy

	session   *framework.Session
	byDefault bool      // pods without a mark may be evicted
	held      time.Time // the time of the last round, zero before the first
	moves     []move    // moves that the loads do not show yet
}

// move is a pod that was named as a victim.
type move struct {
	from, to string
	request  resources.Vector
	amount   levels // the same, relative to the node to
	at       time.Time
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{interval: arguments.Duration(intervalKey), period: arguments.Duration(periodKey)}
	var err error
	p.strategies, err = readStrategies(arguments.Any(strategiesKey))
	return p, err
}

func (*plugin) Name() string { return Name }

func (p *plugin) OpenSession(s *framework.Session) {
	p.session, p.byDefault = s, s.Policy.Configuration.Compatibility.PreemptableByDefault
	p.moves = slices.DeleteFunc(p.moves, func(m move) bool { return s.Now.Sub(m.at) >= p.period })
}

// WakeAt is when the next round may start, zero while no load is known.
func (p *plugin) WakeAt() time.Time {
	if p.held.IsZero() {
		return time.Time{}
	}
	return p.held.Add(p.interval)
}

// ChooseVictims names pods that would run on a low node, once in an interval.
func (p *plugin) ChooseVictims() []framework.Chosen {
	s := p.session
	if s.Outlook == nil || !p.held.IsZero() && s.Now.Before(p.held.Add(p.interval)) {
		return nil
	}
	var chosen []framework.Chosen
	p.held = time.Time{}
	x := s.Begin() // pods named by one strategy are gone for the next
	defer x.Undo()
	for i := range p.strategies {
		r := p.newRound(&p.strategies[i])
		if len(r.levels) == 0 {
			continue
		}
		p.held = s.Now
		chosen = append(chosen, r.choose(x)...)
	}
	return chosen
}

// level is the load of a node, with recent moves to it; ok is false if it is unknown.
func (p *plugin) level(n *cluster.Node) (l levels, ok bool) {
	if !n.Ready() || n.Load.At.IsZero() || p.session.Now.Sub(n.Load.At) > maxAge {
		return l, false
	}
	l[0], l[1] = n.Load.CPU, n.Load.Memory
	for i := range p.moves {
		if p.moves[i].to == n.Name {
			l[0], l[1] = l[0]+p.moves[i].amount[0], l[1]+p.moves[i].amount[1]
		}
	}
	l[2] = part(n.Used.At(resources.Pods)-n.Releasing.At(resources.Pods), n, resources.Pods)
	return l, true
}

// part is an amount as a fraction of a node, in millionths.
func part(amount int64, n *cluster.Node, d resources.Dim) int64 {
	return resources.Millionths(amount, max(n.Allocatable.At(d), 1))
}

// dims are the resources of levels.
var dims = [len(levels{})]resources.Dim{resources.CPU, resources.Memory, resources.Pods}

// partOf is the request of a task as fractions of a node.
func partOf(t *cluster.Task, n *cluster.Node) (l levels) {
	for i, d := range dims {
		l[i] = part(t.Request().At(d), n, d)
	}
	return l
}

// isWithin reports whether no part of a level is above a limit.
func (l levels) isWithin(limit levels) bool {
	for i := range l {
		if l[i] > limit[i] {
			return false
		}
	}
	return true
}

func (l levels) plus(other levels, sign int64) levels {
	for i := range l {
		l[i] += sign * other[i]
	}
	return l
}
