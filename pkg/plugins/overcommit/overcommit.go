package overcommit

import (
	"fmt"
	"math/big"
	"strconv"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "overcommit"

const (
	factorKey     = "overcommit-factor"
	defaultFactor = 1.2
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{{Name: factorKey, Kind: conf.Float, Default: defaultFactor,
			Doc: "How many times the cluster may be asked for. Below 1 it counts as 1.2, as in Volcano."}}},
		New: newPlugin,
	}
}

type plugin struct {
	cluster *model.Cluster
	factor  *big.Rat
	// usable is the limit, wide that for jobs without pods yet. It includes nodes with taints that no pod tolerates so
	// far.
	usable, wide limits
}

// limits are sizes of the cluster times the factor, worked out when a size has changed.
type limits struct{ sizes, limits resources.Vector }

func (l *limits) of(p *plugin, d resources.Dim, size int64) int64 {
	if l.sizes.At(d) != size {
		l.sizes.Set(d, size)
		l.limits.Set(d, p.times(size))
	}
	return l.limits.At(d)
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	factor := arguments.Float(factorKey)
	if factor < 1 {
		factor = defaultFactor
	}
	// The shortest decimal that reads as this float is what the user wrote. The float itself is not exact.
	written, ok := new(big.Rat).SetString(strconv.FormatFloat(factor, 'g', -1, 64))
	if !ok {
		return nil, fmt.Errorf("%s: %v is not a number", factorKey, factor)
	}
	return &plugin{factor: written}, nil
}

func (*plugin) Name() string { return Name }

func (p *plugin) OpenSession(s *framework.Session) {
	p.cluster = s.Cluster
}

// times multiplies by the factor and rounds down.
func (p *plugin) times(amount int64) int64 {
	product := new(big.Int).Mul(big.NewInt(amount), p.factor.Num())
	if product.Quo(product, p.factor.Denom()); !product.IsInt64() {
		return resources.Unlimited
	}
	return product.Int64()
}

// MayEnqueue permits a job that fits in addition to what is used and what admitted jobs lack.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	if p.LackToAdmit(j).Stock != nil {
		return framework.Reject, p.refusal(j)
	}
	return framework.Permit, nil
}

// LackToAdmit returns the first resource of which the job needs more than admitted jobs may still lack.
func (p *plugin) LackToAdmit(j *cluster.Job) verdict.Lack {
	for i := range j.MinResources {
		s := p.stock(j, resources.Dim(i))
		if need := p.need(j, s.resource); need > s.Left() {
			return p.everLacks(j, verdict.Lack{Stock: s, Needed: need})
		}
	}
	return verdict.Lack{}
}

// everLacks returns what a job lacks that has a lack: if it requests more than all nodes together have, that.
func (p *plugin) everLacks(j *cluster.Job, lack verdict.Lack) verdict.Lack {
	for i, need := range j.MinResources {
		if s := (size{plugin: p, resource: resources.Dim(i)}); need > s.Left() {
			return verdict.Lack{Stock: s, Needed: need}
		}
	}
	return lack
}

// size is what all nodes together have of a resource, also those that are out of use now.
type size struct {
	plugin   *plugin
	resource resources.Dim
}

// Source is the nodes.
func (size) Source() verdict.Help { return verdict.HelpNode }

func (s size) Left() int64 {
	c, d := s.plugin.cluster, s.resource
	return c.Totals.Size(d) + c.Tainted.Size(d) + c.Unusable.Size(d)
}

// stock is how much more of a resource admitted jobs may lack.
type stock struct {
	plugin   *plugin
	resource resources.Dim
	wide     bool // for jobs without pods yet
}

func (p *plugin) stock(j *cluster.Job, d resources.Dim) stock {
	return stock{plugin: p, resource: d, wide: j.AwaitsPods()}
}

// Source is the nodes, of which overcommit allows a multiple.
func (stock) Source() verdict.Help { return verdict.HelpNode }

// Left is never below 0.
func (s stock) Left() int64 {
	c, p, d := s.plugin.cluster, s.plugin, s.resource
	size, taken, limits := c.Totals.Size(d), c.Totals.Taken(d), &p.usable
	if s.wide {
		size, taken, limits = size+c.Tainted.Size(d), taken+c.Tainted.Taken(d), &p.wide
	}
	return max(limits.of(p, d, size)-taken-c.Root().Subtree.Inqueue.At(d), 0)
}

// need is what the job would lack of a resource once it is admitted.
func (p *plugin) need(j *cluster.Job, d resources.Dim) int64 {
	return j.LacksResource(d)
}

func (p *plugin) refusal(j *cluster.Job) *verdict.Verdict {
	v := &verdict.Verdict{Code: verdict.OverCommitted, Help: verdict.HelpNode | verdict.HelpQueue}
	for i := range j.MinResources {
		d := resources.Dim(i)
		if need, have := p.need(j, d), p.stock(j, d).Left(); need > have {
			v.Shortages = append(v.Shortages, verdict.Shortage{Resource: p.cluster.Resources.Name(d), Need: need, Have: have})
		}
	}
	if short := p.beyondCluster(j); short != nil {
		return &verdict.Verdict{Code: verdict.TooLargeForCluster, Help: v.Help | verdict.HelpJob, Shortages: short, OfCluster: true}
	}
	return v
}

// beyondCluster returns by how much a job requests more than all nodes together have, also those that are out of use
// now, nil if it does not.
func (p *plugin) beyondCluster(j *cluster.Job) (short []verdict.Shortage) {
	for i, need := range j.MinResources {
		d := resources.Dim(i)
		if have := (size{plugin: p, resource: d}).Left(); need > have {
			short = append(short, verdict.Shortage{Resource: p.cluster.Resources.Name(d), Need: need, Have: have})
		}
	}
	return short
}
