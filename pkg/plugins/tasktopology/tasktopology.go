package tasktopology

import (
	"cmp"
	"errors"
	"maps"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "task-topology"

const weightKey = "task-topology.weight"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{
			{Name: weightKey, Kind: conf.Int, Default: 1, Check: checkWeight, Doc: "How much the score counts beside other plugins'."},
		}},
		New: newPlugin,
	}
}

// maxWeight bounds the weight, so that no score overflows.
const maxWeight = 1_000_000

func checkWeight(value any) error {
	if n, ok := value.(int); ok && (n < 0 || n > maxWeight) {
		return errors.New("a whole number from 0 to 1000000")
	}
	return nil
}

type plugin struct {
	weight int64
	bonds  map[*cluster.Class]bonds // as they were read

	sorted *cluster.Job // whose tasks were compared last
	ranks  map[string]rank
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	return &plugin{weight: int64(arguments.Int(weightKey)), bonds: map[*cluster.Class]bonds{}}, nil
}

func (*plugin) Name() string { return Name }

// OpenSession forgets what is read of jobs and classes that may have changed.
func (p *plugin) OpenSession(*framework.Session) {
	p.sorted, p.ranks = nil, nil
	maps.DeleteFunc(p.bonds, func(k *cluster.Class, _ bonds) bool { return !k.InUse() })
}

// CompareTasks puts who is joined before who joins.
func (p *plugin) CompareTasks(a, b *cluster.Task) int {
	if a.Job == nil || a.Job != b.Job || a.Role == b.Role {
		return 0
	}
	if a.Job != p.sorted {
		p.sorted, p.ranks = a.Job, ranksOf(a.Job)
	}
	return p.ranks[a.Role].compare(p.ranks[b.Role])
}

// ranksOf returns the ranks of the roles that the PodGroup of a job names.
func ranksOf(j *cluster.Job) map[string]rank {
	if j.Group == nil {
		return nil
	}
	annotations := j.Group.Annotations
	topology := read(annotations[schedulingv1beta1.TaskTopologyAffinityKey], annotations[schedulingv1beta1.TaskTopologyAntiAffinityKey])
	return topology.ranks(annotations[schedulingv1beta1.TaskTopologyOrderKey])
}

// ScoreNode prefers nodes with pods that the pod belongs with.
func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	if k.Job == (cluster.JobID{}) || p.weight == 0 {
		return 0
	}
	own, isKnown := p.bonds[k]
	if !isKnown {
		own = read(k.Affinity, k.AntiAffinity).of(k.Role)
		p.bonds[k] = own
	}
	var mates int64
	for _, t := range n.Tasks() {
		if t.Job != nil && t.Job.ID == k.Job && t.Status.Counts() {
			mates += own[t.Role]
		}
	}
	return p.weight * 100 * framework.Point * mates / (max(mates, -mates) + 1)
}

// rank is the place of a role among those of its job; the larger come first.
type rank struct{ listed, bond int }

func (r rank) compare(s rank) int {
	return cmp.Or(cmp.Compare(s.listed, r.listed), cmp.Compare(s.bond, r.bond))
}
