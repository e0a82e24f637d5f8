package framework

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
)

// Policy is a configuration turned into actions and plugins. It holds the plugins by the question that they answer.
type Policy struct {
	Configuration *conf.Configuration
	Actions       []Action

	registry *Registry // the registry that built it, nil if none did

	openers             []opener
	validators          []JobValidator
	queueOrder          []QueueOrderer
	jobOrder            []JobOrderer
	taskOrder           []TaskOrderer
	jobEnqueuers        [][]JobEnqueuer // by tier
	overuse             []QueueOveruseChecker
	allocation          []AllocationGuard
	binding             []BindingGuard
	readiness           []JobReadyChecker
	allocationObservers []AllocationObserver
	queueShares         []QueueShares
	reclaimCheckers     []QueueReclaimChecker
	wakers              []Waker
	subtrees            []SubtreeDeclarer
	subtreeQueueOrder   []QueueOrderer // of the plugin that declares subtrees
	subtreeJobOrder     []JobOrderer
	admissionLimiters   []AdmissionLimiter
	workloadPolicies    []WorkloadPolicy

	graders []HyperNodeGrader

	// Each list is by tier.
	starvation     [][]StarvationJudge
	preemptVoters  [][]PreemptVoter
	reclaimVoters  [][]ReclaimVoter
	victimChoosers [][]VictimChooser

	// Filters, Vetoers, Scorers, HyperNodes and Kube… are what the placement engine asks.
	Filters     []NodeFilter
	Vetoers     []NodeVetoer
	Scorers     []NodeScorer
	HyperNodes  []HyperNodeScorer
	KubeFilters []string
	KubeScores  []KubeScore
	Kube        KubeArguments

	// Keys are the keys that the plugins have declared.
	Keys cluster.Keys

	// Hierarchical is set if a placement in one queue may change the order of others.
	Hierarchical bool
}

// opener is a plugin that is told when a session begins.
type opener struct {
	SessionOpener
	name string
}

// Has reports whether the pipeline holds an action with this name.
func (p *Policy) Has(action string) bool {
	for _, a := range p.Actions {
		if a.Name() == action {
			return true
		}
	}
	return false
}

// Uses reports whether the configuration has a plugin with this name.
func (p *Policy) Uses(plugin string) bool {
	return p.Configuration != nil && slices.ContainsFunc(p.Configuration.Tiers, func(t conf.Tier) bool {
		return slices.ContainsFunc(t.Plugins, func(q conf.Plugin) bool { return q.Name == plugin })
	})
}

// Share returns what a queue may hold by right, from the first plugin that gives queues shares. ok is false if none
// does.
func (p *Policy) Share(q *cluster.Queue) (share Share, ok bool) {
	if p.Subtrees().Contains(&q.Node) {
		return Share{Ceiling: q.Capability, Deserved: q.Guarantee, Share: q.GuaranteeRatio()}, true
	}
	shares := p.Shares()
	if shares == nil {
		return Share{}, false
	}
	bounds := shares.Of(&q.Node)
	return Share{Ceiling: bounds.Ceiling, Deserved: bounds.Share, Share: shares.Ratio(&q.Node)}, true
}

// Shares returns the shares of all queues, from the first plugin that gives queues shares. It is nil if none does.
func (p *Policy) Shares() *quota.View {
	for _, plugin := range p.queueShares {
		return plugin.Shares()
	}
	return nil
}

// Subtrees returns the subtrees in which the rules of guaranteed shares hold, nil if there are none.
func (p *Policy) Subtrees() *guarantee.Subtrees {
	for _, plugin := range p.subtrees {
		return plugin.Subtrees()
	}
	return nil
}

// checkShares returns an error if two plugins give the same queues a share.
func (p *Policy) checkShares() error {
	for _, plugin := range p.subtrees {
		for _, other := range p.queueShares {
			if plugin.HasAll() {
				return fmt.Errorf("plugins %q and %q both give queues a share: leave one of them out, or name the queues of %q in its argument subtrees",
					plugin.(Plugin).Name(), other.(Plugin).Name(), plugin.(Plugin).Name())
			}
		}
	}
	return nil
}

// Whole returns the top of the subtree of guaranteed shares in which a queue is, for the view of a plugin that gives
// other queues shares. It is nil if there are no subtrees.
func (p *Policy) Whole() func(*quota.Node) *quota.Node {
	if subtrees := p.Subtrees(); subtrees != nil {
		return subtrees.Top
	}
	return nil
}

// Grader returns the plugin that says in which HyperNodes pods are placed, nil if there is none.
func (p *Policy) Grader() HyperNodeGrader {
	for _, plugin := range p.graders {
		return plugin
	}
	return nil
}

// WakeAt returns the next time at which the answer of a plugin changes with time alone, zero if none does.
func (p *Policy) WakeAt() time.Time {
	var next time.Time
	for _, plugin := range p.wakers {
		if when := plugin.WakeAt(); !when.IsZero() && (next.IsZero() || when.Before(next)) {
			next = when
		}
	}
	return next
}

// collect adds a plugin to the list of each question that it answers and whose switch is on.
func (p *Policy) collect(tier int, plugin Plugin, on conf.Switches) {
	if o, ok := plugin.(SessionOpener); ok {
		at := len(p.openers)
		if _, isFirst := plugin.(SubtreeDeclarer); isFirst {
			at = 0
		}
		p.openers = slices.Insert(p.openers, at, opener{o, plugin.Name()})
	}
	if d, ok := plugin.(KeyDeclarer); ok {
		p.Keys = p.Keys.With(d.DeclareKeys())
	}
	_, filters := plugin.(NodeFilter)
	_, vetoes := plugin.(NodeVetoer)
	if d, ok := plugin.(NodeKeyDeclarer); ok {
		annotations, labels := d.DeclareNodeKeys()
		p.Keys = p.Keys.With(cluster.Keys{NodeAnnotations: annotations, NodeLabels: labels})
	} else if filters || vetoes {
		p.Keys.AnyOfNodes = true
	}
	add(&p.validators, plugin, true)
	add(&p.allocationObservers, plugin, true)
	add(&p.queueShares, plugin, true)
	add(&p.wakers, plugin, true)
	add(&p.subtrees, plugin, true)
	add(&p.workloadPolicies, plugin, true)
	add(&p.queueOrder, plugin, on.On(conf.EnableQueueOrder))
	add(&p.jobOrder, plugin, on.On(conf.EnableJobOrder))
	if _, ok := plugin.(SubtreeDeclarer); ok {
		add(&p.subtreeQueueOrder, plugin, on.On(conf.EnableQueueOrder))
		add(&p.subtreeJobOrder, plugin, on.On(conf.EnableJobOrder))
	}
	add(&p.taskOrder, plugin, on.On(conf.EnableTaskOrder))
	add(&p.admissionLimiters, plugin, on.On(conf.EnableJobEnqueued))
	add(&p.overuse, plugin, on.On(conf.EnabledOverused))
	add(&p.allocation, plugin, on.On(conf.EnabledAllocatable))
	add(&p.binding, plugin, on.On(conf.EnabledAllocatable))
	add(&p.readiness, plugin, on.On(conf.EnableJobReady))
	add(&p.Filters, plugin, on.On(conf.EnablePredicate))
	add(&p.Scorers, plugin, on.On(conf.EnableNodeOrder))
	add(&p.Vetoers, plugin, on.On(conf.EnablePredicate))
	add(&p.reclaimCheckers, plugin, on.On(conf.EnablePreemptive))
	add(&p.graders, plugin, on.On(conf.EnabledHyperNodeGradient))
	add(&p.HyperNodes, plugin, on.On(conf.EnabledHyperNodeOrder))
	addToTier(&p.jobEnqueuers, tier, plugin, on.On(conf.EnableJobEnqueued))
	addToTier(&p.starvation, tier, plugin, on.On(conf.EnableJobStarving))
	addToTier(&p.preemptVoters, tier, plugin, on.On(conf.EnablePreemptable))
	addToTier(&p.reclaimVoters, tier, plugin, on.On(conf.EnableReclaimable))
	addToTier(&p.victimChoosers, tier, plugin, on.On(conf.EnabledVictim))
	if k, ok := plugin.(KubeFilterer); ok && on.On(conf.EnablePredicate) {
		p.KubeFilters = append(p.KubeFilters, k.KubeFilters()...)
	}
	if k, ok := plugin.(KubeScorer); ok && on.On(conf.EnableNodeOrder) {
		p.KubeScores = append(p.KubeScores, k.KubeScores()...)
	}
	if k, ok := plugin.(KubeArguer); ok {
		p.Kube = k.KubeArguments()
	}
	if h, ok := plugin.(Hierarchical); ok && h.IsHierarchical() {
		p.Hierarchical = true
	}
}

// addToTier is add for a list of one tier.
func addToTier[T any](lists *[][]T, tier int, plugin Plugin, on bool) {
	for len(*lists) <= tier {
		*lists = append(*lists, nil)
	}
	add(&(*lists)[tier], plugin, on)
}

// add appends a plugin to a list if it implements the list's interface and its switch is on.
func add[T any](list *[]T, plugin Plugin, on bool) {
	if implements, ok := plugin.(T); ok && on {
		*list = append(*list, implements)
	}
}
