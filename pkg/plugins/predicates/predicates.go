package predicates

import (
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "predicates"

// switched are the filters that an argument can turn off. NodeUnschedulable and NodeName always apply.
var switched = []struct{ argument, filter string }{
	{"predicate.NodeAffinityEnable", "NodeAffinity"},
	{"predicate.NodePortsEnable", "NodePorts"},
	{"predicate.TaintTolerationEnable", "TaintToleration"},
	{"predicate.PodAffinityEnable", "InterPodAffinity"},
	{"predicate.PodTopologySpreadEnable", "PodTopologySpread"},
}

// later are Volcano's arguments for volumes and dynamic resources, which Hekla does not place by yet.
var later = []struct {
	argument string
	kind     conf.Kind
}{
	{"predicate.NodeVolumeLimitsEnable", conf.Bool},
	{"predicate.VolumeZoneEnable", conf.Bool},
	{"predicate.VolumeBindingEnable", conf.Bool},
	{"predicate.DynamicResourceAllocationEnable", conf.Bool},
	{"volumebinding.weight", conf.Int},
	{"volumebinding.bindTimeoutSeconds", conf.Int},
	{"volumebinding.shape", conf.Any},
	{"dynamicresources.filterTimeoutSeconds", conf.Int},
}

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	var arguments []conf.Argument
	for _, s := range switched {
		arguments = append(arguments, conf.Argument{Name: s.argument, Kind: conf.Bool, Default: true,
			Doc: "Whether the kube-scheduler's " + s.filter + " filter applies."})
	}
	for _, l := range later {
		arguments = append(arguments, conf.Argument{Name: l.argument, Kind: l.kind,
			NoEffect: "pods are not placed by their volumes and resource claims yet", Doc: "For volumes and resource claims."})
	}
	arguments = append(arguments, conf.Argument{Name: "predicate.CacheEnable", Kind: conf.Bool,
		NoEffect: "answers are always kept, per class of equal pods and until the node changes", Doc: "Volcano's cache of answers."})
	return framework.PluginFactory{Name: Name, Spec: conf.Spec{Arguments: arguments}, New: newPlugin}
}

type plugin struct{ filters []string }

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{filters: []string{"NodeUnschedulable", "NodeName"}}
	for _, s := range switched {
		if arguments.Bool(s.argument) {
			p.filters = append(p.filters, s.filter)
		}
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

func (p *plugin) KubeFilters() []string { return p.filters }
