package predicates_test

import (
	"fmt"
	"slices"
	"testing"

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

var all = []string{"InterPodAffinity", "NodeAffinity", "NodeName", "NodePorts", "NodeUnschedulable", "PodTopologySpread", "TaintToleration"}

func TestAllFiltersApplyUnlessTheyAreTurnedOff(t *testing.T) {
	if diff := cmp.Diff(all, filters(t, "      predicate.CacheEnable: true\n")); diff != "" {
		t.Errorf("the filters differ (-want +got):\n%s", diff)
	}
	for argument, filter := range map[string]string{
		"predicate.NodeAffinityEnable": "NodeAffinity", "predicate.NodePortsEnable": "NodePorts",
		"predicate.TaintTolerationEnable": "TaintToleration", "predicate.PodAffinityEnable": "InterPodAffinity",
		"predicate.PodTopologySpreadEnable": "PodTopologySpread",
	} {
		t.Run(argument, func(t *testing.T) {
			want := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == filter })
			if diff := cmp.Diff(want, filters(t, fmt.Sprintf("      %s: false\n", argument))); diff != "" {
				t.Errorf("the filters differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatHasNoEffectIsSaid(t *testing.T) {
	parsed := parse(t, "      predicate.VolumeBindingEnable: true\n      volumebinding.weight: 1\n      predicate.CacheEnable: true\n")
	if len(parsed.Notices) != 3 {
		t.Errorf("the notices are %v", parsed.Notices)
	}
}
