package pdb

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "pdb"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	spec := conf.Spec{Protects: "pods whose disruption budget is used up"}
	return framework.PluginFactory{Name: Name, Spec: spec, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return &plugin{}, nil
	}}
}

type plugin struct {
	cluster *model.Cluster
	needs   []need // of one vote, kept to reuse its memory
}

// need is how many evictions a proposal needs from a budget.
type need struct {
	budget    *cluster.Budget
	evictions int
}

func (*plugin) Name() string { return Name }

func (p *plugin) OpenSession(s *framework.Session) { p.cluster = s.Cluster }

// VotePreempt permits evictions that the budgets allow.
func (p *plugin) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return p.vote(d)
}

// VoteReclaim is the same between queues.
func (p *plugin) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return p.vote(d)
}

func (p *plugin) vote(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	p.needs = p.needs[:0]
	for _, victim := range d.Victims {
		for _, b := range p.cluster.Budgets(victim) {
			i := slices.IndexFunc(p.needs, func(n need) bool { return n.budget == b })
			if i < 0 {
				i = len(p.needs)
				p.needs = append(p.needs, need{budget: b})
			}
			p.needs[i].evictions++
			if p.needs[i].evictions > b.Left() {
				return framework.Reject, verdict.ByBudget.Protection()
			}
		}
	}
	return framework.Permit, verdict.Protection{}
}
