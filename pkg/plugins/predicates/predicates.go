package predicates

import (
	"time"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
)

// Name is the name of the plugin in the configuration.
const Name = "predicates"

// switched are the filters that an argument can turn off. NodeUnschedulable, NodeName and VolumeRestrictions always
// apply.
var switched = []struct{ argument, filter string }{
	{"predicate.NodeAffinityEnable", "NodeAffinity"},
	{"predicate.NodePortsEnable", "NodePorts"},
	{"predicate.TaintTolerationEnable", "TaintToleration"},
	{"predicate.PodAffinityEnable", "InterPodAffinity"},
	{"predicate.PodTopologySpreadEnable", "PodTopologySpread"},
	{"predicate.NodeVolumeLimitsEnable", "NodeVolumeLimits"},
	{"predicate.VolumeZoneEnable", "VolumeZone"},
	{volumeBindingEnable, volumeBinding},
	{devicesEnable, dynamicResources},
}

// deviceWeight is what the score of a node by its devices is multiplied by: the default of kube-scheduler.
const deviceWeight = 2

const (
	dynamicResources    = "DynamicResources"
	devicesEnable       = "predicate.DynamicResourceAllocationEnable"
	volumeBinding       = "VolumeBinding"
	volumeBindingEnable = "predicate.VolumeBindingEnable"
	weightKey           = "volumebinding.weight"
	bindTimeoutKey      = "volumebinding.bindTimeoutSeconds"
	shapeKey            = "volumebinding.shape"
	filterTimeoutKey    = "dynamicresources.filterTimeoutSeconds"
	deviceTimeoutKey    = "dynamicresources.bindingTimeoutSeconds"
)

const noSharing = "it is of old versions; Volcano ignores it too"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	var arguments []conf.Argument
	for _, s := range switched {
		arguments = append(arguments, conf.Argument{Name: s.argument, Kind: conf.Bool, Default: true,
			Doc: "Whether the kube-scheduler's " + s.filter + " filter applies."})
	}
	arguments = append(arguments,
		conf.Argument{Name: weightKey, Kind: conf.Int, Default: 1, Check: isWeight,
			Doc: "What the score of a node by its volumes is multiplied by. Without " + shapeKey + " there is none."},
		conf.Argument{Name: bindTimeoutKey, Kind: conf.Int, Default: 600, Check: isTimeout,
			Doc: "How many seconds the volumes of a pod may take to be bound once it has its node. Then it is placed again."},
		conf.Argument{Name: shapeKey, Kind: conf.Any, Default: "", Check: isShape,
			Doc: "How nodes are scored by how much of its volumes, or of the storage they are made from, a pod would use: a list of " +
				"points with a utilization, 0 to 100, and a score, 0 to 10."},
		conf.Argument{Name: filterTimeoutKey, Kind: conf.Int, Default: 10, Check: isTimeout,
			Doc: "How many seconds to look for devices on one node; 0 is without end."},
		conf.Argument{Name: deviceTimeoutKey, Kind: conf.Int, Default: 600, Check: isWait,
			Doc: "How many seconds devices with binding conditions may take to be ready. Then their pod is placed again."},
		conf.Argument{Name: "predicate.CacheEnable", Kind: conf.Bool,
			NoEffect: "answers are always kept, per class of equal pods and until the node changes", Doc: "Volcano's cache of answers."},
		conf.Argument{Name: "predicate.GPUSharingEnable", Kind: conf.Bool, NoEffect: noSharing, Doc: "Volcano's sharing of a device by its memory."},
		conf.Argument{Name: "predicate.GPUNumberEnable", Kind: conf.Bool, NoEffect: noSharing, Doc: "Volcano's count of whole devices."})
	return framework.PluginFactory{Name: Name, Spec: conf.Spec{Arguments: arguments}, New: newPlugin}
}

type plugin struct {
	filters   []string
	scores    []framework.KubeScore
	arguments framework.KubeArguments
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{filters: []string{"NodeUnschedulable", "NodeName", "VolumeRestrictions"}}
	for _, s := range switched {
		if arguments.Bool(s.argument) {
			p.filters = append(p.filters, s.filter)
		}
	}
	p.arguments = framework.KubeArguments{
		BindTimeout:       time.Duration(arguments.Int(bindTimeoutKey)) * time.Second,
		DeviceTimeout:     time.Duration(arguments.Int(filterTimeoutKey)) * time.Second,
		DeviceBindTimeout: time.Duration(arguments.Int(deviceTimeoutKey)) * time.Second,
	}
	if arguments.Bool(volumeBindingEnable) {
		p.arguments.VolumeShape, _ = readShape(arguments.Any(shapeKey))
	}
	if len(p.arguments.VolumeShape) > 0 {
		p.scores = []framework.KubeScore{{Name: volumeBinding, Weight: int64(arguments.Int(weightKey))}}
	}
	if arguments.Bool(devicesEnable) {
		p.scores = append(p.scores, framework.KubeScore{Name: dynamicResources, Weight: deviceWeight})
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

func (p *plugin) KubeFilters() []string { return p.filters }

func (p *plugin) KubeScores() []framework.KubeScore { return p.scores }

func (p *plugin) KubeArguments() framework.KubeArguments { return p.arguments }
