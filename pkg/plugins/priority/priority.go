package priority

import (
	"cmp"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "priority"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{Name: Name, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return plugin{}, nil
	}}
}

type plugin struct{}

func (plugin) Name() string { return Name }

func (plugin) CompareJobs(a, b *cluster.Job) int { return cmp.Compare(b.Priority, a.Priority) }

func (plugin) CompareTasks(a, b *cluster.Task) int { return cmp.Compare(b.Priority, a.Priority) }
