package conf

import (
	"errors"
	"testing"
	"time"
)

// atLeast is the check of a number with a floor.
func atLeast(floor float64) func(any) error {
	return func(value any) error {
		switch v := value.(type) {
		case int:
			if float64(v) >= floor {
				return nil
			}
		case float64:
			if v >= floor {
				return nil
			}
		}
		return errors.New("large enough")
	}
}

func flags(value bool, names ...string) []Argument {
	var arguments []Argument
	for _, name := range names {
		arguments = append(arguments, Argument{Name: name, Kind: Bool, Default: value})
	}
	return arguments
}

func weights(value int, names ...string) []Argument {
	var arguments []Argument
	for _, name := range names {
		arguments = append(arguments, Argument{Name: name, Kind: Int, Default: value})
	}
	return arguments
}

// volcano is a catalogue of all that Volcano has, of what admits Workloads, with a few twists to test what a catalogue
// can say.
func volcano() Catalogue {
	cache := Argument{Name: "predicateErrorCacheEnable", Kind: Bool, Default: true, NoEffect: "failed attempts are always remembered"}
	gangArguments := []Argument{
		{Name: "maxDomains", Kind: Int, Default: 8},
		{Name: "allowWholeGang", Kind: Bool, Default: true},
		{Name: "allowWholeBundle", AliasOf: "allowWholeGang"},
	}
	preempt := append([]Argument{cache,
		{Name: "enableTopologyAwarePreemption", Kind: Bool, Default: false},
		{Name: "topologyAwarePreemptWorkerNum", Unsupported: "one core is enough; leave it out"},
		{Name: "minCandidateNodesPercentage", Kind: Int, Default: 10},
		{Name: "minCandidateNodesAbsolute", Kind: Int, Default: 1},
		{Name: "maxCandidateNodesAbsolute", Kind: Int, Default: 100},
	}, gangArguments...)
	predicates := flags(true, "predicate.NodeAffinityEnable", "predicate.NodePortsEnable", "predicate.TaintTolerationEnable",
		"predicate.PodAffinityEnable", "predicate.NodeVolumeLimitsEnable", "predicate.VolumeZoneEnable",
		"predicate.PodTopologySpreadEnable", "predicate.VolumeBindingEnable")
	predicates = append(predicates,
		Argument{Name: "predicate.DynamicResourceAllocationEnable", Kind: Bool, NoEffect: "it is on with the cluster's feature gate"},
		Argument{Name: "predicate.CacheEnable", Kind: Bool, Default: false},
		Argument{Name: "volumebinding.bindTimeoutSeconds", Kind: Int, Default: 600},
		Argument{Name: "volumebinding.shape", Kind: Any})
	binpack := append(weights(1, "binpack.weight", "binpack.cpu", "binpack.memory"),
		Argument{Name: "binpack.resources", Kind: String},
		Argument{Name: "binpack.resources.<resource>", Kind: Int, Default: 1, Check: atLeast(0)})
	topology := append(weights(1, "weight", "hypernode.binpack.cpu", "hypernode.binpack.memory"),
		Argument{Name: "hypernode.binpack.resources", Kind: String},
		Argument{Name: "hypernode.binpack.resources.*", Kind: Int, Default: 1},
		Argument{Name: "hypernode.binpack.normal-pod.enable", Kind: Bool, Default: true},
		Argument{Name: "hypernode.binpack.normal-pod.fading", Kind: Float, Default: 0.8})
	return Catalogue{
		Actions: map[string]Spec{
			"enqueue": {}, "admit": {}, "shuffle": {}, "allocate": {Arguments: []Argument{cache}}, "backfill": {Arguments: []Argument{cache}},
			"preempt": {Arguments: preempt}, "reclaim": {Arguments: append([]Argument{cache}, gangArguments...)},
			"gangpreempt": {AliasOf: "preempt"}, "gangreclaim": {AliasOf: "reclaim"},
		},
		Plugins: map[string]Spec{
			"priority": {Decides: []Switch{EnablePreemptable}}, "gang": {Decides: []Switch{EnablePreemptable, EnableReclaimable}},
			"conformance": {}, "resourcequota": {}, "pdb": {Protects: "pods with budgets"}, "cdp": {}, "cohorts": {},
			"drf": {Conflicts: []Conflict{{With: "proportion", Switch: EnableHierarchy,
				Reason: "both would decide what a queue deserves"}}},
			"proportion": {},
			"capacity":   {Arguments: weights(0, "ancestorReclaimLevel")},
			"overcommit": {Arguments: []Argument{{Name: "overcommit-factor", Kind: Float, Default: 1.2, Check: atLeast(1)}}},
			"sla":        {Arguments: []Argument{{Name: "sla-waiting-time", Kind: Duration}}},
			"predicates": {Arguments: predicates},
			"nodeorder": {Arguments: append(weights(1, "leastrequested.weight", "balancedresource.weight", "imagelocality.weight"),
				weights(2, "nodeaffinity.weight", "podaffinity.weight", "podtopologyspread.weight")...)},
			"binpack": {Arguments: binpack},
			"usage": {ReadsMetrics: true, Arguments: append(weights(5, "usage.weight"),
				Argument{Name: "thresholds", Kind: StringMap, Default: map[string]string{"cpu": "80", "mem": "80"}})},
			"resource-strategy-fit": {Arguments: append(weights(10, "resourceStrategyFitWeight"),
				Argument{Name: "resources", Kind: Any}, Argument{Name: "sra", Kind: Any})},
			"network-topology-aware": {Arguments: topology},
			"extender": {Arguments: []Argument{{Name: "extender.urlPrefix", Kind: String},
				{Name: "extender.httpTimeout", Kind: Duration, Default: time.Second}, {Name: "extender.<call>Verb", Kind: String}}},
			"rescheduling": {ReadsMetrics: true, Arguments: []Argument{{Name: "interval", Kind: Duration, Default: 5 * time.Minute},
				{Name: "strategies", Kind: Any}}},
			"nodegroup": {Arguments: append(flags(true, "strict"), flags(false, "enablePreferredOrder")...)},
			"tdm":       {Unsupported: "nodes with a timetable are not built yet; use a queue with a capability"},
		},
	}
}

const helmYAML = `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
`

const ciYAML = `actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
`

const gangEvictionYAML = `actions: "allocate, backfill, gangreclaim, gangpreempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: capacity
    enableHierarchy: false
configurations:
- name: gangpreempt
  arguments:
    maxDomains: 4
    allowWholeBundle: false
`

const metricsYAML = `actions: "enqueue, allocate, backfill"      # comma separated, trimmed
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
    arguments:
      # nothing yet
  - name: usage
    enablePredicate: false
    arguments:
      usage.weight: 5
      thresholds:
        cpu: 80
        mem: 70.5
configurations:                             # per action
- name: preempt
  arguments: {enableTopologyAwarePreemption: true}
metrics:
  type: elasticsearch
  address: http://prometheus:9090
  interval: 30s
  tls.insecureSkipVerify: "false"
  elasticsearch.username: reader
  elasticsearch.password: opensesame
compatibility:
  preemptableByDefault: true
  queuePriority: order
  victimVote: upstream
`

const manyArgumentsYAML = `actions: allocate, preempt,
tiers:
- plugins:
  - name: binpack
    arguments:
      binpack.weight: "10"
      binpack.cpu: 5
      binpack.resources: nvidia.com/gpu, example.com/foo
      binpack.resources.nvidia.com/gpu: 2
      binpack.resources.example.com/foo: 3
  - name: resource-strategy-fit
    enabledClusterOrder: true
    arguments:
      resources:
        nvidia.com/gpu/*: {type: MostAllocated, weight: 2}
        cpu: {type: LeastAllocated, weight: 1}
      sra: {enable: yes, ratio: 0.5, weight: 1.0, when: 2020-01-01, none: null, list: [1, "1", -0x1F, .5e3]}
- plugins:
  - name: extender
    arguments:
      extender.urlPrefix: http://127.0.0.1
      extender.httpTimeout: 100ms
      extender.predicateVerb: "predicate\tand more: #\u2028"
  - name: network-topology-aware
    arguments:
      hypernode.binpack.normal-pod.enable: "false"
      hypernode.binpack.normal-pod.fading: 1
      hypernode.binpack.resources.nvidia.com/gpu: 2
configurations:
- name: preempt
  arguments:
    predicateErrorCacheEnable: false
`

// accepted are the configurations that seed the fuzzer and the property tests.
var accepted = map[string]string{
	"the compiled-in default":           DefaultYAML,
	"Helm's":                            helmYAML,
	"the one of Volcano's CI":           ciYAML,
	"the one of gang eviction":          gangEvictionYAML,
	"all blocks":                        metricsYAML,
	"arguments of every kind":           manyArgumentsYAML,
	"no plugins at all, on purpose":     "actions: allocate\ntiers: []\n",
	"the older spelling of one switch":  "actions: allocate\ntiers: [plugins: [{name: drf, EnabledClusterOrder: true}]]\n",
	"blocks of which only the key left": "actions: allocate\ntiers: []\nconfigurations:\nmetrics:\ncompatibility:\n",
}

func parse(t *testing.T, text string) *Configuration {
	t.Helper()
	c, err := Parse([]byte(text), volcano())
	if err != nil {
		t.Fatalf("refused:\n%v", err)
	}
	return c
}

// plugin finds a plugin of a configuration.
func plugin(t *testing.T, c *Configuration, name string) Plugin {
	t.Helper()
	for _, tier := range c.Tiers {
		for _, plugin := range tier.Plugins {
			if plugin.Name == name {
				return plugin
			}
		}
	}
	t.Fatalf("the configuration has no plugin %s", name)
	return Plugin{}
}
