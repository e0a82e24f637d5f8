package drf

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Name is the name of the plugin in the configuration.
const Name = "drf"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Conflicts: []conf.Conflict{{With: "proportion", Switch: conf.EnableHierarchy,
			Reason: "both divide the cluster among queues, each by weights of its own"}}},
		New: func(on conf.Switches, _ conf.Arguments) (framework.Plugin, error) {
			if on.On(conf.EnableHierarchy) {
				return &hierarchical{}, nil
			}
			return &flat{}, nil
		},
	}
}

// flat orders jobs.
type flat struct {
	cluster *model.Cluster
	total   resources.Vector // of the cluster
}

func (*flat) Name() string { return Name }

func (f *flat) OpenSession(s *framework.Session) {
	f.cluster, f.total = s.Cluster, s.Cluster.Shared(false)
}

// CompareJobs puts the smaller dominant share first.
func (f *flat) CompareJobs(a, b *cluster.Job) int {
	x, _ := resources.DominantShare(a.Usage.Allocated, f.total)
	y, _ := resources.DominantShare(b.Usage.Allocated, f.total)
	return x.Compare(y)
}
