package nodegroup

import (
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "nodegroup"

const (
	strictKey = "strict"
	orderKey  = "enablePreferredOrder"
)

// Why nodes refuse pods of a queue.
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

	model    *model.Cluster
	rules    map[string]*rules // by queue, without those that name no group and no limit
	accounts []*account        // by queue and group
	held     [][]holding       // by account and node slot
	seen     uint64            // position in Cluster.Changes
	isStale  bool              // all accounts must be counted again
}

func newPlugin(on conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	return &plugin{isStrict: arguments.Bool(strictKey), isOrdered: arguments.Bool(orderKey),
		isHierarchical: on.On(conf.EnableHierarchy), rules: map[string]*rules{}}, nil
}

func (*plugin) Name() string { return Name }

// DeclareKeys declares what tells apart queues with affinity or limits.
func (*plugin) DeclareKeys() cluster.Keys {
	return cluster.Keys{PerQueue: func(q *schedulingv1beta1.Queue) bool {
		return q.Spec.Affinity != nil || q.Annotations[schedulingv1beta1.NodeGroupResourceLimitsKey] != ""
	}}
}

// DeclareNodeKeys declares the label that says in which group a node is.
func (*plugin) DeclareNodeKeys() (annotations, labels []string) {
	return nil, []string{schedulingv1beta1.NodeGroupNameKey}
}

func (p *plugin) OpenSession(s *framework.Session) {
	p.model = s.Cluster
	if p.readRules() {
		// All answers may be out of date.
		for _, n := range p.model.Nodes() {
			p.model.Touch(n)
		}
		p.isStale = true
	}
	p.follow(p.model.Touch)
}

// InvalidateNodes invalidates the nodes of a group if a limit has begun or ceased to refuse a class.
func (p *plugin) InvalidateNodes() { p.follow(p.model.Outdate) }

// groupOf is the group of a node, "" if it is in none.
func groupOf(n *cluster.Node) string {
	if n == nil || n.Object == nil {
		return ""
	}
	return n.Object.Labels[schedulingv1beta1.NodeGroupNameKey]
}

// RefuseNode refuses nodes of groups that the queue does not use, or of which it may use no more.
func (p *plugin) RefuseNode(k *cluster.Class, n *cluster.Node) string {
	p.InvalidateNodes() // a caller that asks about a single node has not called it
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
