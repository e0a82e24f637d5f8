package predicates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/predicates"
)

func parse(t *testing.T, text string) *conf.Configuration {
	t.Helper()
	catalogue := conf.Catalogue{Actions: map[string]conf.Spec{"allocate": {}}, Plugins: map[string]conf.Spec{predicates.Name: predicates.Factory().Spec}}
	parsed, err := conf.Parse([]byte("actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n    arguments:\n"+text), catalogue)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func filters(t *testing.T, text string) []string {
	t.Helper()
	plugin, err := predicates.Factory().New(conf.Switches{}, parse(t, text).Tiers[0].Plugins[0].Arguments)
	if err != nil {
		t.Fatal(err)
	}
	names := plugin.(framework.KubeFilterer).KubeFilters()
	slices.Sort(names)
	return names
}

var all = []string{"DynamicResources", "InterPodAffinity", "NodeAffinity", "NodeName", "NodePorts", "NodeUnschedulable", "NodeVolumeLimits",
	"PodTopologySpread", "TaintToleration", "VolumeBinding", "VolumeRestrictions", "VolumeZone"}

func TestAllFiltersApplyUnlessTheyAreTurnedOff(t *testing.T) {
	if diff := cmp.Diff(all, filters(t, "      predicate.CacheEnable: true\n")); diff != "" {
		t.Errorf("the filters differ (-want +got):\n%s", diff)
	}
	for argument, filter := range map[string]string{
		"predicate.NodeAffinityEnable": "NodeAffinity", "predicate.NodePortsEnable": "NodePorts",
		"predicate.TaintTolerationEnable": "TaintToleration", "predicate.PodAffinityEnable": "InterPodAffinity",
		"predicate.PodTopologySpreadEnable": "PodTopologySpread", "predicate.NodeVolumeLimitsEnable": "NodeVolumeLimits",
		"predicate.VolumeZoneEnable": "VolumeZone", "predicate.VolumeBindingEnable": "VolumeBinding",
		"predicate.DynamicResourceAllocationEnable": "DynamicResources",
	} {
		t.Run(argument, func(t *testing.T) {
			want := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == filter })
			if diff := cmp.Diff(want, filters(t, fmt.Sprintf("      %s: false\n", argument))); diff != "" {
				t.Errorf("the filters differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	t.Run("what has no effect is said", func(t *testing.T) {
		parsed := parse(t, "      predicate.VolumeBindingEnable: true\n      volumebinding.weight: 1\n      predicate.CacheEnable: true\n")
		if len(parsed.Notices) != 1 {
			t.Errorf("the notices are %v", parsed.Notices)
		}
	})

	t.Run("volumes have ten minutes and are not scored by default", func(t *testing.T) {
		got, scores := arguments(t, "      volumebinding.weight: 3\n")
		want := framework.KubeArguments{BindTimeout: 10 * time.Minute, DeviceTimeout: 10 * time.Second, DeviceBindTimeout: 10 * time.Minute}
		if diff := cmp.Diff(want, got); diff != "" || len(scores) != 1 || scores[0].Name != "DynamicResources" {
			t.Errorf("scored by %v, arguments (-want +got):\n%s", scores, diff)
		}
	})

	t.Run("what is not asked scores nothing", func(t *testing.T) {
		_, scores := arguments(t, "      predicate.VolumeBindingEnable: false\n      predicate.DynamicResourceAllocationEnable: false\n      volumebinding.shape: [{utilization: 0, score: 1}]\n")
		if len(scores) > 0 {
			t.Errorf("scored by %v", scores)
		}
	})
}

// arguments returns what the plugin tells the kube-scheduler's plugins, and which of them score.
func arguments(t *testing.T, text string) (framework.KubeArguments, []framework.KubeScore) {
	t.Helper()
	plugin, err := predicates.Factory().New(conf.Switches{}, parse(t, text).Tiers[0].Plugins[0].Arguments)
	if err != nil {
		t.Fatal(err)
	}
	return plugin.(framework.KubeArguer).KubeArguments(), plugin.(framework.KubeScorer).KubeScores()
}

func TestAShapeScoresVolumes(t *testing.T) {
	got, scores := arguments(t, `      volumebinding.weight: 3
      volumebinding.bindTimeoutSeconds: 30
      dynamicresources.filterTimeoutSeconds: 0
      dynamicresources.bindingTimeoutSeconds: 20
      volumebinding.shape:
      - {utilization: 0, score: 10}
      - {utilization: 100, score: 0}
`)
	want := framework.KubeArguments{BindTimeout: 30 * time.Second, DeviceBindTimeout: 20 * time.Second, VolumeShape: []framework.ShapePoint{{Score: 10}, {Utilization: 100}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the arguments differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]framework.KubeScore{{Name: "VolumeBinding", Weight: 3}, {Name: "DynamicResources", Weight: 2}}, scores); diff != "" {
		t.Errorf("the scores differ (-want +got):\n%s", diff)
	}
}

func TestValuesThatCannotBeAreRefused(t *testing.T) {
	catalogue := conf.Catalogue{Actions: map[string]conf.Spec{"allocate": {}}, Plugins: map[string]conf.Spec{predicates.Name: predicates.Factory().Spec}}
	for text, want := range map[string]string{
		"volumebinding.weight: -1":                                                         "volumebinding.weight",
		"volumebinding.bindTimeoutSeconds: -1":                                             "a whole number of seconds from 0 to 86400",
		"dynamicresources.filterTimeoutSeconds: x":                                         "dynamicresources.filterTimeoutSeconds",
		"dynamicresources.bindingTimeoutSeconds: 0":                                        "a whole number of seconds from 1 to 86400",
		"volumebinding.shape: 3":                                                           "a list of points",
		"volumebinding.shape: []":                                                          "a list of points",
		"volumebinding.shape: [{utilization: 101, score: 1}]":                              "a list of points",
		"volumebinding.shape: [{utilization: 0, score: 11}]":                               "a list of points",
		"volumebinding.shape: [{utilization: 0}]":                                          "a list of points",
		"volumebinding.shape: [{utilization: 0, score: 1, weight: 2}]":                     "a list of points",
		"volumebinding.shape: [{utilization: 5, score: 1}, {utilization: 5, score: 2}]":    "a list of points",
		"volumebinding.shape: [{utilization: 5, score: 1}, {utilization: five, score: 2}]": "a list of points",
	} {
		_, err := conf.Parse([]byte("actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n    arguments:\n      "+text+"\n"), catalogue)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
