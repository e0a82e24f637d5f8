package tasktopology

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
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
			{Name: weightKey, Kind: conf.Int, Default: 1, Check: checkWeight, Doc: "How much the score counts compared with other plugins'."},
		}},
		New: newPlugin,
	}
}

// maxWeight limits the weight, so that no score overflows.
const maxWeight = 1_000_000

func checkWeight(value any) error {
	if n, ok := value.(int); ok && (n < 0 || n > maxWeight) {
		return errors.New("a whole number from 0 to 1000000")
	}
	return nil
}

type plugin struct {
	weight int64
	model  *model.Cluster
	wishes map[*cluster.Class]*wish // of the classes that were asked about

	sorted *cluster.Job // the job whose tasks were compared last
	ranks  map[string]rank
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	return &plugin{weight: int64(arguments.Int(weightKey)), wishes: map[*cluster.Class]*wish{}}, nil
}

func (*plugin) Name() string { return Name }

// DeclareKeys declares the role, and the annotations with affinities.
func (*plugin) DeclareKeys() cluster.Keys {
	keys := []string{schedulingv1beta1.TaskTopologyAffinityKey, schedulingv1beta1.TaskTopologyAntiAffinityKey}
	return cluster.Keys{JobAnnotations: keys, PerJob: func(g *schedulingv1beta1.PodGroup) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return g.Annotations[key] != "" })
	}}
}

// OpenSession invalidates all nodes if the peers of a class have changed.
func (p *plugin) OpenSession(s *framework.Session) {
	p.model, p.sorted, p.ranks = s.Cluster, nil, nil
	maps.DeleteFunc(p.wishes, func(k *cluster.Class, _ *wish) bool { return !k.InUse() })
	haveChanged := false
	for k, w := range p.wishes {
		peers := peersOf(p.model.Job(cluster.GroupID(k.Job)), k.Role, w.bonds)
		haveChanged = haveChanged || !peers.equal(w.peers)
		w.peers = peers
	}
	if haveChanged {
		for _, n := range p.model.Nodes() {
			p.model.Outdate(n)
		}
	}
}

// CompareTasks compares tasks by the ranks of their roles, see invariant 4.
func (p *plugin) CompareTasks(a, b *cluster.Task) int {
	if a.Job == nil || a.Job != b.Job || a.Role == b.Role {
		return 0
	}
	if a.Job != p.sorted {
		p.sorted, p.ranks = a.Job, ranksOf(a.Job)
	}
	return p.ranks[a.Role].compare(p.ranks[b.Role])
}

// ranksOf returns the ranks of the roles that a PodGroup names.
func ranksOf(j *cluster.Job) map[string]rank {
	if j.Group == nil {
		return nil
	}
	annotations := j.Group.Annotations
	topology := read(annotations[schedulingv1beta1.TaskTopologyAffinityKey], annotations[schedulingv1beta1.TaskTopologyAntiAffinityKey])
	return topology.ranks(annotations[schedulingv1beta1.TaskTopologyOrderKey])
}

// ScoreNode prefers nodes with pods to which the pod has affinity, and with room for more of them.
func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	if k.Job == (types.NamespacedName{}) || p.weight == 0 {
		return 0
	}
	w := p.wishes[k]
	if w == nil {
		own := read(k.JobAnnotations[schedulingv1beta1.TaskTopologyAffinityKey], k.JobAnnotations[schedulingv1beta1.TaskTopologyAntiAffinityKey]).of(k.Role)
		w = &wish{bonds: own, peers: peersOf(p.model.Job(cluster.GroupID(k.Job)), k.Role, own)}
		p.wishes[k] = w
	}
	var mates int64
	for _, t := range n.Tasks() {
		if t.Job != nil && t.Job.ID.Key() == k.Job && t.Status.Counts() {
			mates += w.bonds[t.Role]
		}
	}
	score := 100 * framework.Point * mates / (max(mates, -mates) + 1)
	return p.weight * (score + w.peers.scoreRoom(k, n))
}

// rank is the rank of a role in its job. The larger comes first.
type rank struct{ listed, bond int }

func (r rank) compare(s rank) int {
	return cmp.Or(cmp.Compare(s.listed, r.listed), cmp.Compare(s.bond, r.bond))
}
