package nodegroup

import (
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "nodegroup"

const (
	strictKey = "strict"
	orderKey  = "enablePreferredOrder"
)

// Why nodes take no pods of a queue.
const (
	noGroup     = "node(s) were in no node group"
	queueless   = "node(s) were in a node group, and the queue names none"
	othersGroup = "node(s) were in a node group that is not the queue's"
	limitSpent  = "node(s) were in a node group of which the queue may use no more"
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{
			{Name: strictKey, Kind: conf.Bool, Default: true, Doc: "Whether queues without affinity may not use nodes of no group either."},
			{Name: orderKey, Kind: conf.Bool, Default: false, Doc: "Whether the first of the preferred groups is preferred most."},
		}},
		New: newPlugin,
	}
}

type plugin struct {
	isStrict, isOrdered, isHierarchical bool

	model    *cluster.Cluster
	rules    map[string]*rules // by queue, of those that say anything
	accounts []*account        // by queue and group
	held     [][]holding       // of accounts, by node slot
	seen     uint64            // how far Cluster.Changes was followed
	isStale  bool              // everything is to be counted anew
}

func newPlugin(on conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	return &plugin{isStrict: arguments.Bool(strictKey), isOrdered: arguments.Bool(orderKey),
		isHierarchical: on.On(conf.EnableHierarchy), rules: map[string]*rules{}}, nil
}

func (*plugin) Name() string { return Name }

// DeclareKeys tells queues apart that say on which node groups their pods go, or how much of them they may use.
func (*plugin) DeclareKeys() cluster.Keys {
	return cluster.Keys{PerQueue: func(q *schedulingv1beta1.Queue) bool {
		return q.Spec.Affinity != nil || q.Annotations[schedulingv1beta1.NodeGroupResourceLimitsKey] != ""
	}}
}

func (p *plugin) OpenSession(s *framework.Session) {
	p.model = s.Cluster
	if p.readRules() {
		// Nothing that was said of any node need be true any more.
		for _, n := range p.model.Nodes() {
			p.model.Touch(n)
		}
		p.isStale = true
	}
	p.follow(p.model.Touch)
}

// InvalidateNodes has the nodes of a group looked at again if a limit lets a class in now that it kept out before, or the other
// way round.
func (p *plugin) InvalidateNodes() { p.follow(p.model.Outdate) }

// groupOf is the group that a node is in, "" if in none.
func groupOf(n *cluster.Node) string {
	if n == nil || n.Object == nil {
		return ""
	}
	return n.Object.Labels[schedulingv1beta1.NodeGroupNameKey]
}

// RefuseNode refuses nodes of groups that are not for the queue, or of which it may use no more.
func (p *plugin) RefuseNode(k *cluster.Class, n *cluster.Node) string {
	p.InvalidateNodes() // who asks of a single node has not called it
	r, group := p.rules[k.Queue], groupOf(n)
	if r != nil && r.problem != "" {
		return r.problem
	}
	isSilent := r == nil || r.isSilent()
	switch {
	case group == "" && isSilent && !p.isStrict:
		return ""
	case group == "":
		return noGroup
	case isSilent:
		return queueless
	case !r.allow(group):
		return othersGroup
	}
	if a := r.account(group); a != nil && a.refuses(k) {
		return limitSpent
	}
	return ""
}

// ScoreNode prefers nodes of the groups that the queue names.
func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	r, group := p.rules[k.Queue], groupOf(n)
	if r == nil || group == "" {
		return 0
	}
	if slices.Contains(r.avoided, group) {
		return -framework.Point
	}
	var score int64
	if slices.Contains(r.required, group) {
		score = 100 * framework.Point
	}
	if i := slices.Index(r.preferred, group); i >= 0 {
		behind := 0
		if p.isOrdered {
			behind = i
		}
		all := int64(len(r.preferred))
		score += 50 * framework.Point * (all - int64(behind)) / all
	}
	return score
}
