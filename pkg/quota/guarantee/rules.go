package guarantee

import (
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Preemptor is the job for which pods are to be evicted.
type Preemptor struct {
	Node     *quota.Node
	Priority int32
	// Usage is the usage of the job.
	Usage *quota.Usage
	// Lacks is what the job must place at once, nil if it places one task after the other.
	Lacks resources.Vector
	// Wanted returns what needs room at the moment.
	Wanted func() resources.Vector
	// Reclaims says that pods of other queues may be evicted by these rules.
	Reclaims bool
	// IsDaemon says that the job is a pod of a DaemonSet, which takes room on its node from all pods in subtrees that
	// are not of higher priority (rule G10).
	IsDaemon bool
	// IsEarly says that the job has not waited long enough (rule G9).
	IsEarly bool
}

// Rules implement [quota.Rules]. Between queues for which the rules of guaranteed shares do not hold, the embedded
// rules decide.
type Rules struct {
	quota.Rules
	job      Preemptor
	subtrees *Subtrees
	isInside bool             // the preemptor is in a subtree, or of a DaemonSet
	held     resources.Vector // what the job held before the plan
	before   quota.Held
	known    map[*quota.Node]*relation
	last     *quota.Node // the queue that was asked about last: several questions are about one pod
	toLast   *relation
}

// relation is what does not change during a plan between the preemptor's queue and that of a victim.
type relation struct {
	common  *quota.Node
	governs bool
	forbids verdict.Protection
	// own is the relative priority of the preemptor at common.
	own int64
}

// New returns the rules for a preemptor. The ledger of this moment is the state before the plan.
func New(s *Subtrees, others quota.Rules, p Preemptor) *Rules {
	r := &Rules{Rules: others, job: p, subtrees: s, isInside: p.IsDaemon || s.Contains(p.Node), before: quota.Held{}, known: map[*quota.Node]*relation{}}
	if p.Usage != nil {
		r.held = p.Usage.Allocated.Clone()
	}
	r.before.Note(p.Node)
	return r
}

// RanksJobs reports whether victims are compared by the relative priorities of their jobs before their queues are
// compared (rule G8). They are if the preemptor is in a subtree.
func (r *Rules) RanksJobs() bool { return r.isInside }

// Governs reports whether the rules of guaranteed shares hold between the preemptor's queue and another (rule G0).
func (r *Rules) Governs(victim *quota.Node) bool { return r.to(victim).governs }

func (r *Rules) to(victim *quota.Node) *relation {
	if victim == r.last && r.toLast != nil {
		return r.toLast
	}
	known := r.known[victim]
	if known == nil {
		known = r.relate(victim)
		r.known[victim] = known
	}
	r.last, r.toLast = victim, known
	return known
}

func (r *Rules) relate(victim *quota.Node) *relation {
	known := &relation{common: Common(r.job.Node, victim)}
	known.governs = victim != r.job.Node && known.common != nil && r.subtrees.Contains(known.common)
	known.own = Relative(r.job.Node, known.common, r.job.Priority)
	if r.job.IsDaemon {
		known.governs = victim != r.job.Node && r.subtrees.Contains(victim)
	}
	known.forbids = r.whyForbidden(victim, known)
	return known
}

// Forbids implements [quota.Rules]: rules G0, G7, Q3 and G9.
func (r *Rules) Forbids(victim *quota.Node) verdict.Protection {
	to := r.to(victim)
	if to.forbids.IsNone() && to.governs && r.job.IsEarly {
		return verdict.RuleTooEarly.Protection()
	}
	return to.forbids
}

func (r *Rules) whyForbidden(victim *quota.Node, to *relation) (none verdict.Protection) {
	if victim == r.job.Node {
		return r.Rules.Forbids(victim)
	}
	if r.job.IsDaemon && to.governs && r.job.Reclaims {
		return none
	}
	for n := r.job.Node; n != nil && n != to.common; n = n.Above() {
		if n.Policies.Fence && r.isBelowTop(n) {
			return verdict.Protection{Kind: verdict.RuleOutsideFence, Detail: n.Name}
		}
	}
	for n := victim; n != nil; n = n.Above() {
		if n.Policies.Disabled && r.isBelowTop(n) {
			return verdict.RuleDisabled.Protection()
		}
	}
	if !to.governs {
		return r.Rules.Forbids(victim)
	}
	if !r.job.Reclaims {
		return verdict.RuleOnlyReclaim.Protection()
	}
	for n := victim; n != to.common; n = n.Above() {
		if !n.Reclaimable {
			return verdict.RuleNotReclaimable.Protection()
		}
	}
	return none
}

// isBelowTop reports whether a node is in a subtree and not its top, on which a policy of preemption has no effect.
func (r *Rules) isBelowTop(n *quota.Node) bool {
	top := r.subtrees.Top(n)
	return top != nil && top != n
}

// ForbidsJob says why no pod of a job of a queue may be evicted (rule G6), none if that is not forbidden.
func (r *Rules) ForbidsJob(victim *quota.Node, priority int32) (why verdict.Protection) {
	if r.job.IsDaemon && r.Governs(victim) {
		if priority > r.job.Priority {
			why.Kind = verdict.RuleHigherPriority
		}
	} else if to := r.to(victim); to.governs && Relative(victim, to.common, priority) > to.own {
		why.Kind = verdict.RuleHigherPriority
	}
	return why
}

// Rank is the priority of a job of a queue when victims are compared (rule G8).
func (r *Rules) Rank(victim *quota.Node, priority int32) int64 {
	if to := r.to(victim); to.governs {
		return Relative(victim, to.common, priority)
	}
	return int64(priority)
}

// WhyProtected implements [quota.Rules]: rules G2, G5 and G4.
func (r *Rules) WhyProtected(victim *quota.Node, leaving, wanted resources.Vector, isEntitled func() bool) (why verdict.Protection) {
	to := r.to(victim)
	switch {
	case !to.governs:
		return r.Rules.WhyProtected(victim, leaving, wanted, isEntitled)
	case r.job.IsDaemon:
	case r.breaksGuarantee(victim, to.common, leaving, wanted):
		why.Kind = verdict.RuleWithinGuarantee
	case !r.holdsAsked(to.common, leaving, wanted):
		why.Kind = verdict.RuleNothingAsked
	case !r.isWithin(to.common, wanted, wanted):
		why.Kind = verdict.RuleHasItsGuarantee
	}
	return why
}

// breaksGuarantee reports whether a queue would be below its guarantee if an amount left (rule G2). At the common queue
// and above, what the preemptor must still place takes its place.
func (r *Rules) breaksGuarantee(victim, common *quota.Node, leaving, wanted resources.Vector) bool {
	isShared := false
	for n := victim; n != nil; n = n.Above() {
		isShared = isShared || n == common
		if n.Guarantee.Len() == 0 {
			continue
		}
		for i, amount := range leaving {
			d := resources.Dim(i)
			floor, isNamed := n.Guarantee.At(d)
			if amount <= 0 || !isNamed {
				continue
			}
			after := n.Subtree.Allocated.At(d) - amount
			if isShared {
				after += r.missing(d, wanted)
				floor = min(floor, r.before[n].At(d))
			}
			if after < floor {
				return true
			}
		}
	}
	return false
}

// missing is how much of a resource the preemptor must still place.
func (r *Rules) missing(d resources.Dim, wanted resources.Vector) int64 {
	if r.job.Lacks == nil || r.job.Usage == nil {
		return wanted.At(d)
	}
	return max(wanted.At(d), r.job.Lacks.At(d)-(r.job.Usage.Allocated.At(d)-r.held.At(d)))
}

// holder returns the first queue on the preemptor's way whose guarantee names a resource, nil if there is none.
func (r *Rules) holder(common *quota.Node, d resources.Dim) *quota.Node {
	for n := r.job.Node; n != nil && n != common; n = n.Above() {
		if _, isNamed := n.Guarantee.At(d); isNamed {
			return n
		}
	}
	return nil
}

// isWithin reports whether the preemptor's way stays within its guarantees with more, in what is asked for (rule G4).
func (r *Rules) isWithin(common *quota.Node, asked, more resources.Vector) bool {
	isNamed := false
	for i, amount := range asked {
		d := resources.Dim(i)
		if amount <= 0 {
			continue
		}
		n := r.holder(common, d)
		if n == nil {
			continue
		}
		if n.Subtree.Allocated.At(d)+more.At(d) > n.Guarantee.Amount(d) {
			return false
		}
		isNamed = true
	}
	return isNamed
}

// holdsAsked reports whether an amount has anything of what is wanted (rule G5). The number of pods counts only if a
// guarantee of the preemptor's way names it.
func (r *Rules) holdsAsked(common *quota.Node, leaving, wanted resources.Vector) bool {
	for i, amount := range wanted {
		d := resources.Dim(i)
		if amount > 0 && leaving.At(d) > 0 && (d != resources.Pods || r.holder(common, d) != nil) {
			return true
		}
	}
	return false
}

// IsEntitledTo reports whether the preemptor may place an amount in room that a queue gives (rules G4 and G7), now or
// later.
func (r *Rules) IsEntitledTo(victim *quota.Node, amount resources.Vector) bool {
	to := r.to(victim)
	return to.governs && to.forbids.IsNone() && (r.job.IsDaemon || r.isWithin(to.common, amount, amount))
}

// Missing is a resource of which the preemptor's way has too little of its guarantee left.
type Missing struct {
	Amount
	Queue string
	Asked int64
}

// Misses returns the resources of an amount for which the way up to the top of the subtree has too little of its
// guarantee left. It is empty if the way names none of them.
func (r *Rules) Misses(amount resources.Vector) (misses []Missing) {
	top := r.subtrees.Top(r.job.Node)
	for i, asked := range amount {
		d := resources.Dim(i)
		n := r.holder(top, d)
		if asked <= 0 || n == nil {
			continue
		}
		held, guaranteed := n.Subtree.Allocated.At(d), n.Guarantee.Amount(d)
		if held+asked > guaranteed {
			misses = append(misses, Missing{Amount: Amount{Dim: d, Held: held, Guaranteed: guaranteed}, Queue: n.Name, Asked: asked})
		}
	}
	return misses
}

// HasGuaranteeLeft reports whether the preemptor's way, up to the top of the subtree, has the right to an amount (rule
// G4).
func (r *Rules) HasGuaranteeLeft(amount resources.Vector) bool {
	return r.isWithin(r.subtrees.Top(r.job.Node), amount, amount)
}

// TopName is the name of the top of the preemptor's subtree, "" if it is in none.
func (r *Rules) TopName() string {
	if top := r.subtrees.Top(r.job.Node); top != nil {
		return top.Name
	}
	return ""
}

// StaysProtected implements [quota.Rules]. What is missing to a guarantee depends on what is placed.
func (r *Rules) StaysProtected(*quota.Node, verdict.Protection) bool { return false }

// NeedsRight implements [quota.Rules]. Between queues of a subtree the right is rule G4, which WhyProtected checks.
func (r *Rules) NeedsRight(victim *quota.Node) bool {
	return !r.Governs(victim) && r.Rules.NeedsRight(victim)
}

// AllowsPlan implements [quota.Rules]: rule G4 for all that a plan places. For a pod of a DaemonSet no rule is about
// the sum.
func (r *Rules) AllowsPlan(victims []*quota.Node, placed resources.Vector) bool {
	if r.job.IsDaemon {
		return true
	}
	for _, n := range victims {
		if to := r.to(n); to.governs && !r.isWithin(to.common, placed, nil) {
			return false
		}
	}
	return r.Rules.AllowsPlan(victims, placed)
}

// Compare implements [quota.Rules]: the queue further above its guarantee comes first.
func (r *Rules) Compare(a, b *quota.Node) int {
	if !r.isInside {
		return r.Rules.Compare(a, b)
	}
	return r.Standing(b).Ratio.Compare(r.Standing(a).Ratio)
}

// Priority implements [quota.Rules]. Priorities of queues have no meaning inside a subtree.
func (r *Rules) Priority(n *quota.Node) int64 {
	if r.Governs(n) {
		return 0
	}
	return r.Rules.Priority(n)
}

// Standing implements [quota.Rules]. The ratio is the largest, over what is wanted, of what is held to what is
// guaranteed, at the nearest queue on the way that names the resource. If none names any of it, the ratio is infinite.
func (r *Rules) Standing(n *quota.Node) quota.Standing {
	to := r.to(n)
	if !to.governs {
		return r.Rules.Standing(n)
	}
	s := quota.Standing{Held: n.Subtree.Allocated, Deserved: n.Guarantee, Ratio: resources.Ratio{Num: 1}}
	isNamed := false
	for i, amount := range r.job.Wanted() {
		d := resources.Dim(i)
		if amount <= 0 {
			continue
		}
		for m := n; m != nil && m != to.common; m = m.Above() {
			guarantee, ok := m.Guarantee.At(d)
			if !ok {
				continue
			}
			ratio := resources.Ratio{Num: m.Subtree.Allocated.At(d), Den: guarantee}
			if !isNamed || ratio.Compare(s.Ratio) > 0 {
				s.Ratio, isNamed = ratio, true
			}
			break
		}
	}
	return s
}

// Amount is what a queue holds of a resource, and what it is guaranteed.
type Amount struct {
	Dim              resources.Dim
	Held, Guaranteed int64
}

// Entitlement returns what the preemptor's way held before the plan of the resources that entitle it, toward a queue.
func (r *Rules) Entitlement(victim *quota.Node, placed resources.Vector) (amounts []Amount) {
	for i, amount := range placed {
		d := resources.Dim(i)
		if n := r.holder(r.to(victim).common, d); amount > 0 && n != nil {
			amounts = append(amounts, Amount{Dim: d, Held: r.before[n].At(d), Guaranteed: n.Guarantee.Amount(d)})
		}
	}
	return amounts
}

// Kept returns what the way of a victim's queue keeps of what the victim has held, at the nearest queues that name it.
func (r *Rules) Kept(victim *quota.Node, left resources.Vector) (amounts []Amount) {
	for i, amount := range left {
		d := resources.Dim(i)
		for n := victim; amount > 0 && n != nil && n != r.to(victim).common; n = n.Above() {
			if guarantee, isNamed := n.Guarantee.At(d); isNamed {
				amounts = append(amounts, Amount{Dim: d, Held: n.Subtree.Allocated.At(d), Guaranteed: guarantee})
				break
			}
		}
	}
	return amounts
}
