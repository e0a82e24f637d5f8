package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Plan is a run before it is run.
type Plan struct {
	Seed   uint64
	Steps  int
	Copies int // of each program
	Events []Event

	begin time.Time
	isCut bool // there is no rest at the end
}

// Event is a fault, or the move of an actor, at a step.
type Event struct {
	Step int
	Kind string
	Arg  uint64 // decides what of the kind happens
}

func (e Event) String() string { return fmt.Sprintf("%d:%s:%d", e.Step, e.Kind, e.Arg) }

// Rates say after how many steps something happens, on average: 0 is never.
type Rates struct {
	Fault, Move int
}

// DefaultRates are those of the tests. The life of a Job takes some hundred steps: with more moves nearly all that they
// cause would happen after the last of them.
var DefaultRates = Rates{Fault: 40, Move: 40}

// NewPlan makes a plan of a seed.
func NewPlan(seed uint64, steps int, rates Rates) *Plan {
	random := rand.New(rand.NewPCG(seed, 1))
	p := &Plan{Seed: seed, Steps: steps, Copies: 1 + random.IntN(2)}
	p.add(random, rates.Fault, weightsOf(faultKinds), 1, 2, 2, 4, 20)
	p.add(random, rates.Move, weightsOf(moveKinds), 1, 2, 2, 4)
	if rates.Move > 0 {
		p.Events = append(p.Events, Event{max(steps-lastContest, 0), "contest a quota", random.Uint64()})
	}
	if rates.Fault > 0 && random.IntN(4) > 0 {
		p.Events = append(p.Events, Event{steps, lastFaultsKind, random.Uint64()})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return cmp.Compare(a.Step, b.Step) })
	return p
}

// weighted is a kind of event with how often it comes.
type weighted interface{ weight() int }

func weightsOf[W weighted](kinds map[string]W) map[string]int {
	weights := map[string]int{}
	for name, k := range kinds {
		weights[name] = k.weight()
	}
	return weights
}

// firstEvent is the step before which the programs only start.
const firstEvent = 300

// lastContest is for how many steps before the end of the moves a quota is contested: so it is while nothing else
// happens, and the rules that allow for nothing else see what becomes of it.
const lastContest = 400

// phaseLength is for how many steps the kinds of events are as frequent as they are.
const phaseLength = 1500

// add adds events of some kinds. In each phase some kinds do not come at all, some come more often, and all come in
// shorter or longer steps, some so long that hardly any come: what needs several events of a kind, or the absence of
// others, would hardly ever happen if all were mixed all the time. pauses are the lengths, in halves of the usual one.
func (p *Plan) add(random *rand.Rand, every int, usual map[string]int, pauses ...int) {
	if every == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(usual))
	weights, total, pause := map[string]int{}, 0, every
	for step, end := firstEvent, 0; step < p.Steps; step += 1 + random.IntN(2*pause) {
		if step >= end {
			end, total, pause = step+phaseLength, 0, max(every*some(random, pauses...)/2, 1)
			for _, name := range names {
				weights[name] = usual[name] * some(random, 0, 1, 1, 4)
				total += weights[name]
			}
		}
		at := random.IntN(total)
		for _, name := range names {
			if at -= weights[name]; at < 0 {
				p.Events = append(p.Events, Event{step, name, random.Uint64()})
				break
			}
		}
	}
}

// Without returns the plan without the events for which drop is true.
func (p *Plan) Without(drop func(int) bool) *Plan {
	other := *p
	other.Events = nil
	for i, e := range p.Events {
		if !drop(i) {
			other.Events = append(other.Events, e)
		}
	}
	return &other
}

// String lists the events of the plan.
func (p *Plan) String() string {
	var texts []string
	for _, e := range p.Events {
		texts = append(texts, e.String())
	}
	return fmt.Sprintf("seed %d, %d steps, %d copies: %s", p.Seed, p.Steps, p.Copies, strings.Join(texts, " "))
}

// Shrink leaves out of a plan events without which it fails as well: in one pass half of them at a time, in the next a
// quarter, and so on down to one, until the attempts are used up. It does not go back to larger sizes, and the plan has
// as many steps as before, so a smaller plan may exist. fails runs a plan.
func Shrink(p *Plan, attempts int, fails func(*Plan) bool) *Plan {
	for size := max(len(p.Events)/2, 1); size >= 1; size /= 2 {
		for from := 0; from < len(p.Events) && attempts > 0; {
			smaller := p.Without(func(i int) bool { return from <= i && i < from+size })
			attempts--
			if fails(smaller) {
				p = smaller
			} else {
				from += size
			}
		}
	}
	return p
}
