package framework

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
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

// BoundsBelow reports whether the capability of a queue bounds all queues below it together. Otherwise it bounds only
// what the jobs of the queue itself hold, or nothing if no plugin gives queues shares.
func (p *Policy) BoundsBelow(q *cluster.Queue) bool {
	if p.Subtrees().Contains(&q.Node) {
		return true
	}
	shares := p.Shares()
	return shares != nil && !shares.Flat
}

// Shares returns the shares of all queues, from the first plugin that gives queues shares. It is nil if none does.
func (p *Policy) Shares() *quota.View {
	for _, plugin := range p.queueShares {
		return plugin.Shares()
	}
	return nil
}

// bounds returns the views of all plugins that give queues shares: of each the shares, and what jobs without pods are
// admitted by. They are of the session that was opened last, nil before the first.
func (p *Policy) bounds() (views []*quota.View) {
	for _, plugin := range p.queueShares {
		views = append(views, plugin.Shares())
		if keeper, ok := plugin.(quota.Stockkeeper); ok {
			views = append(views, keeper.StockView(quota.ToWideAdmission))
		}
	}
	return views
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

// collect adds a plugin to the list of each question that it answers and whose switch is on. It returns an error for a
// method that is called like one of a question, and is another: it would never be called.
func (p *Policy) collect(tier int, plugin Plugin, on conf.Switches) error {
	a := &addition{plugin: plugin}
	if o, ok := as[SessionOpener](a); ok {
		at := len(p.openers)
		if _, isFirst := as[SubtreeDeclarer](a); isFirst {
			at = 0
		}
		p.openers = slices.Insert(p.openers, at, opener{o, plugin.Name()})
	}
	if d, ok := as[KeyDeclarer](a); ok {
		p.Keys = p.Keys.With(d.DeclareKeys())
	}
	_, filters := as[NodeFilter](a)
	_, vetoes := as[NodeVetoer](a)
	if d, ok := as[NodeKeyDeclarer](a); ok {
		annotations, labels := d.DeclareNodeKeys()
		p.Keys = p.Keys.With(cluster.Keys{NodeAnnotations: annotations, NodeLabels: labels})
	} else if filters || vetoes {
		p.Keys.AnyOfNodes = true
	}
	add(a, &p.validators, true)
	add(a, &p.allocationObservers, true)
	add(a, &p.queueShares, true)
	add(a, &p.wakers, true)
	add(a, &p.subtrees, true)
	add(a, &p.workloadPolicies, true)
	add(a, &p.queueOrder, on.On(conf.EnableQueueOrder))
	add(a, &p.jobOrder, on.On(conf.EnableJobOrder))
	if _, ok := as[SubtreeDeclarer](a); ok {
		add(a, &p.subtreeQueueOrder, on.On(conf.EnableQueueOrder))
		add(a, &p.subtreeJobOrder, on.On(conf.EnableJobOrder))
	}
	add(a, &p.taskOrder, on.On(conf.EnableTaskOrder))
	add(a, &p.admissionLimiters, on.On(conf.EnableJobEnqueued))
	add(a, &p.overuse, on.On(conf.EnabledOverused))
	add(a, &p.allocation, on.On(conf.EnabledAllocatable))
	add(a, &p.binding, on.On(conf.EnabledAllocatable))
	add(a, &p.readiness, on.On(conf.EnableJobReady))
	add(a, &p.Filters, on.On(conf.EnablePredicate))
	add(a, &p.Scorers, on.On(conf.EnableNodeOrder))
	add(a, &p.Vetoers, on.On(conf.EnablePredicate))
	add(a, &p.reclaimCheckers, on.On(conf.EnablePreemptive))
	add(a, &p.graders, on.On(conf.EnabledHyperNodeGradient))
	add(a, &p.HyperNodes, on.On(conf.EnabledHyperNodeOrder))
	addToTier(a, &p.jobEnqueuers, tier, on.On(conf.EnableJobEnqueued))
	addToTier(a, &p.starvation, tier, on.On(conf.EnableJobStarving))
	addToTier(a, &p.preemptVoters, tier, on.On(conf.EnablePreemptable))
	addToTier(a, &p.reclaimVoters, tier, on.On(conf.EnableReclaimable))
	addToTier(a, &p.victimChoosers, tier, on.On(conf.EnabledVictim))
	if k, ok := as[KubeFilterer](a); ok && on.On(conf.EnablePredicate) {
		p.KubeFilters = append(p.KubeFilters, k.KubeFilters()...)
	}
	if k, ok := as[KubeScorer](a); ok && on.On(conf.EnableNodeOrder) {
		p.KubeScores = append(p.KubeScores, k.KubeScores()...)
	}
	if k, ok := as[KubeArguer](a); ok {
		p.Kube = k.KubeArguments()
	}
	if h, ok := as[Hierarchical](a); ok && h.IsHierarchical() {
		p.Hierarchical = true
	}
	return errors.Join(a.misfits...)
}

// addition is a plugin that is added to a policy.
type addition struct {
	plugin  Plugin
	misfits []error // methods that would never be called
}

// addToTier is add for a list of one tier.
func addToTier[T any](a *addition, lists *[][]T, tier int, on bool) {
	for len(*lists) <= tier {
		*lists = append(*lists, nil)
	}
	add(a, &(*lists)[tier], on)
}

// add appends a plugin to a list if it implements the list's interface and its switch is on.
func add[T any](a *addition, list *[]T, on bool) {
	if implements, ok := as[T](a); ok && on {
		*list = append(*list, implements)
	}
}

// as returns a plugin as what answers a question. If it is not, but has a method with the name of one of the question,
// that is noted as a misfit.
func as[T any](a *addition) (implements T, ok bool) {
	if implements, ok = a.plugin.(T); ok {
		return implements, true
	}
	question, has := reflect.TypeFor[T](), reflect.TypeOf(a.plugin)
	for wanted := range question.Methods() {
		if method, is := has.MethodByName(wanted.Name); is {
			if is, want := signature(method.Type, 1), signature(wanted.Type, 0); is != want {
				a.misfits = append(a.misfits, fmt.Errorf("its method %s is func%s, and that of a %s is func%s", wanted.Name, is, question.Name(), want))
			}
		}
	}
	return implements, false
}

// signature is the parameters and results of a function, without as many of the first parameters.
func signature(f reflect.Type, without int) string {
	var parameters, results []string
	for in := range f.Ins() {
		parameters = append(parameters, in.String())
	}
	for out := range f.Outs() {
		results = append(results, out.String())
	}
	return fmt.Sprintf("(%s) (%s)", strings.Join(parameters[without:], ", "), strings.Join(results, ", "))
}
