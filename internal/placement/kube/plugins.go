package kube

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/imagelocality"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/verdict"
)

// Weighted is a plugin that scores nodes, with the weight of its score of 0 to 100.
type Weighted struct {
	Name   string
	Weight int64
}

// reach is what a plugin reads, which decides when it is asked.
type reach uint8

const (
	looksAtObject   reach = iota // the node object, without its images
	looksAtImages                // the images in the node object
	looksAtNode                  // the pods on the node
	looksAround                  // pods on other nodes
	looksAtSupplies              // volumes and devices
	looksAtUsers                 // volumes, and which pods use them
)

// plugin is one plugin of the kube-scheduler as this package knows it.
type plugin struct {
	name    string
	reach   reach
	filters verdict.NodeKind // what it looks at, if it filters; otherwise ""
	scores  bool
	create  func(context.Context, fwk.Handle, feature.Features) (fwk.Plugin, error)
	// mayDiffer is a cheap check whether the scores of two nodes could differ for a pod. Without it PreScore decides.
	mayDiffer func(*mirror, *corev1.Pod) bool
}

// Arguments are the arguments of the plugins.
type Arguments struct {
	// BindTimeout is how long binding the volumes of a placed pod may take.
	BindTimeout time.Duration
	// VolumeShape scores nodes by how much of its volumes, or of the storage they are made from, a pod would use. Empty
	// scores nothing.
	VolumeShape []ShapePoint
	// DeviceTimeout limits the search for devices on one node. 0 sets no limit.
	DeviceTimeout time.Duration
	// DeviceBindTimeout is how long devices may take to get ready once they are allocated.
	DeviceBindTimeout time.Duration
}

// never replaces the timeout of the plugin for devices, which would read the clock. The edge, which writes the claims,
// checks the time.
const never = 100 * 365 * 24 * time.Hour

// ShapePoint is one point of a function from a utilisation, 0 to 100, to a score, 0 to 10.
type ShapePoint struct{ Utilization, Score int32 }

// plugins returns the plugins that can be asked for, in the order in which kube-scheduler asks them; the cheap ones
// come first. Arguments that are not given here are kube-scheduler's defaults, but for the spread added by default (see
// the package comment).
func (a *Arguments) plugins() []plugin {
	var shape []config.UtilizationShapePoint
	for _, p := range a.VolumeShape {
		shape = append(shape, config.UtilizationShapePoint{Utilization: p.Utilization, Score: p.Score})
	}
	return []plugin{
		{name: nodeunschedulable.Name, reach: looksAtObject, filters: verdict.NodeState, create: with(nodeunschedulable.New, nil)},
		{name: nodename.Name, reach: looksAtObject, filters: verdict.NodeLabels, create: with(nodename.New, nil)},
		{name: tainttoleration.Name, reach: looksAtObject, filters: verdict.NodeTaint, scores: true,
			create:    with(tainttoleration.New, nil),
			mayDiffer: func(m *mirror, _ *corev1.Pod) bool { return m.softTaints > 0 }},
		{name: nodeaffinity.Name, reach: looksAtObject, filters: verdict.NodeLabels, scores: true,
			create: with(nodeaffinity.New, &config.NodeAffinityArgs{})},
		{name: nodeports.Name, reach: looksAtNode, filters: verdict.NodePorts, create: with(nodeports.New, nil)},
		{name: imagelocality.Name, reach: looksAtImages, scores: true,
			create: func(ctx context.Context, h fwk.Handle, _ feature.Features) (fwk.Plugin, error) {
				return imagelocality.New(ctx, nil, h)
			},
			mayDiffer: func(m *mirror, pod *corev1.Pod) bool { return m.stock.holdsAny(pod) }},
		{name: podtopologyspread.Name, reach: looksAround, filters: verdict.NodePods, scores: true,
			create: with(podtopologyspread.New, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting})},
		{name: interpodaffinity.Name, reach: looksAround, filters: verdict.NodePods, scores: true,
			create: with(interpodaffinity.New, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1})},
		{name: volumerestrictions.Name, reach: looksAtUsers, filters: verdict.NodeVolume, create: with(volumerestrictions.New, nil)},
		{name: nodevolumelimits.CSIName, reach: looksAtUsers, filters: verdict.NodeVolume, create: with(nodevolumelimits.NewCSI, nil)},
		{name: volumebinding.Name, reach: looksAtSupplies, filters: verdict.NodeVolume, scores: true,
			create: with(volumebinding.New, &config.VolumeBindingArgs{BindTimeoutSeconds: int64(a.BindTimeout.Seconds()), Shape: shape})},
		{name: volumezone.Name, reach: looksAtSupplies, filters: verdict.NodeVolume, create: with(volumezone.New, nil)},
		{name: dynamicresources.Name, reach: looksAtSupplies, filters: verdict.NodeDevice, scores: true,
			mayDiffer: (*mirror).hasAlternatives,
			create: func(ctx context.Context, h fwk.Handle, features feature.Features) (fwk.Plugin, error) {
				arguments := &config.DynamicResourcesArgs{FilterTimeout: &metav1.Duration{}} // see search
				if features.EnableDRADeviceBindingConditions {
					arguments.BindingTimeout = &metav1.Duration{Duration: never}
				}
				return dynamicresources.New(ctx, arguments, h, features)
			}},
	}
}

func with(create func(context.Context, runtime.Object, fwk.Handle, feature.Features) (fwk.Plugin, error),
	arguments runtime.Object) func(context.Context, fwk.Handle, feature.Features) (fwk.Plugin, error) {
	return func(ctx context.Context, h fwk.Handle, features feature.Features) (fwk.Plugin, error) {
		return create(ctx, arguments, h, features)
	}
}

// scorer is a plugin that scores.
type scorer struct {
	fwk.ScorePlugin
	weight    int64
	mayDiffer func(*mirror, *corev1.Pod) bool
}

// Plugins are the plugins of one configuration for one model. Like the model they are used by one goroutine.
type Plugins struct {
	quiet  context.Context // carries a logger that drops everything: the core does not log
	over   context.Context // the same, cancelled: the edge, which writes what was decided, does not wait for the result
	mirror *mirror

	patience, devicePatience time.Duration // for binding volumes, and for devices to get ready

	features feature.Features // as the plugins were made with

	scribe  fwk.PreBindPlugin           // the plugin for devices, without waiting for them: it records what would be written
	kinds   map[string]verdict.NodeKind // what the plugins that filter look at, by name
	filters map[reach][]fwk.FilterPlugin
	scorers map[reach][]scorer

	deviceTimeout time.Duration // for the search for devices on one node, 0 sets no limit

	work func(steps int) // nil if the work is not counted

	aroundPolicy domains.Policy // of the plugins that look at pods elsewhere

	imagePoints       map[string]*imagePoints // by the images of a pod
	imagePointsStored int                     // how many points these have, counting one for each entry

	infos  []fwk.NodeInfo    // space to work in
	scores fwk.NodeScoreList // space to work in
}

// New makes the kube-scheduler's plugins of these names for a model. A weight of 0 leaves a scorer out. A name that is
// unknown, given twice, or of a plugin that does not filter or score, is an error that lists the supported plugins. So
// is a weight that is negative or does not fit into 32 bits.
func New(c *model.Cluster, filters []string, scores []Weighted, arguments Arguments) (*Plugins, error) {
	return create(newMirror(c, isThere), filters, scores, &arguments)
}

// NewOutlook is New for plugins that see the pods as they will be: without those that are leaving, and with pipelined
// tasks.
func NewOutlook(c *model.Cluster, filters []string, scores []Weighted, arguments Arguments) (*Plugins, error) {
	return create(newMirror(c, willBeThere), filters, scores, &arguments)
}

func create(m *mirror, filters []string, scores []Weighted, arguments *Arguments) (*Plugins, error) {
	known := arguments.plugins()
	weights := make(map[string]int64, len(scores))
	for _, s := range scores {
		if s.Weight < 0 || s.Weight > math.MaxInt32 {
			return nil, fmt.Errorf("kube-scheduler plugin %q has weight %d, must be 0 to %d", s.Name, s.Weight, math.MaxInt32)
		}
		weights[s.Name] = s.Weight
	}
	names := make([]string, len(scores))
	for i, s := range scores {
		names[i] = s.Name
	}
	if err := check("score", names, known, func(k plugin) bool { return k.scores }); err != nil {
		return nil, err
	}
	if err := check("filter", filters, known, func(k plugin) bool { return k.filters != "" }); err != nil {
		return nil, err
	}
	p := &Plugins{
		quiet:    klog.NewContext(context.Background(), logr.Discard()),
		mirror:   m,
		patience: arguments.BindTimeout, devicePatience: arguments.DeviceBindTimeout,
		kinds:   map[string]verdict.NodeKind{},
		filters: map[reach][]fwk.FilterPlugin{},
		scorers: map[reach][]scorer{}, imagePoints: map[string]*imagePoints{},
	}
	p.deviceTimeout = arguments.DeviceTimeout
	over, cancel := context.WithCancel(p.quiet)
	cancel()
	p.over = over
	if err := p.create(known, filters, weights, len(arguments.VolumeShape) > 0); err != nil {
		return nil, err
	}
	return p, nil
}

// Meter reports the work for answers to a function, in steps of some microseconds, while it is done. It may panic to
// end the work: then the plugins must not be asked any more.
func (p *Plugins) Meter(work func(steps int)) {
	p.work = work
	p.mirror.topology.Meter(work)
}

// does tells of the work to ask some plugins about a node.
func (p *Plugins) does(steps int) {
	if p.work != nil {
		p.work(steps)
	}
}

// check reports names that cannot be used.
func check(use string, names []string, known []plugin, can func(plugin) bool) error {
	var usable []string
	for _, k := range known {
		if can(k) {
			usable = append(usable, k.name)
		}
	}
	for i, name := range names {
		if !slices.Contains(usable, name) {
			return fmt.Errorf("kube-scheduler plugin %q is not supported as a %s, supported are %s", name, use,
				strings.Join(usable, ", "))
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("kube-scheduler plugin %q is given twice as a %s", name, use)
		}
	}
	return nil
}

func (p *Plugins) create(known []plugin, filters []string, weights map[string]int64, scoresVolumes bool) error {
	h := newHandle(p.mirror)
	// The gates are those that the process was started with: the plugins behave as in a kube-scheduler with the same.
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	features.EnableStorageCapacityScoring = scoresVolumes
	// With these the plugin for devices would count resources of nodes twice, or read the PodGroups of kube-scheduler.
	features.EnableDRANodeAllocatableResources, features.EnableDRAWorkloadResourceClaims = false, false
	p.features = features
	for _, k := range known {
		weight, filter := weights[k.name], slices.Contains(filters, k.name)
		if weight == 0 && !filter {
			continue
		}
		made, err := k.create(p.quiet, h, features)
		if err != nil {
			return fmt.Errorf("kube-scheduler plugin %q: %w", k.name, err)
		}
		if k.name == dynamicresources.Name && !filter {
			return fmt.Errorf("kube-scheduler plugin %q is a score without being a filter: it scores what it has found then", k.name)
		}
		p.kinds[k.name] = k.filters
		if filter {
			p.filters[k.reach] = append(p.filters[k.reach], made.(fwk.FilterPlugin))
		}
		if weight > 0 {
			p.scorers[k.reach] = append(p.scorers[k.reach], scorer{made.(fwk.ScorePlugin), weight, k.mayDiffer})
		}
		if k.name == dynamicresources.Name {
			features := features
			features.EnableDRADeviceBindingConditions = false
			if made, err = k.create(p.quiet, h, features); err != nil {
				return fmt.Errorf("kube-scheduler plugin %q: %w", k.name, err)
			}
			p.scribe = made.(fwk.PreBindPlugin)
		}
	}
	p.aroundPolicy = p.policyAround()
	return nil
}
