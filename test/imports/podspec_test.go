package imports

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// addUpPods are the packages that may add up requests by themselves, and why: all of them ask about pods that exist,
// which the API server has completed. Who has only a template asks pkg/apis/podspec.
var addUpPods = map[string]string{
	"pkg/apis/podspec":           "it is the one that completes templates",
	"pkg/cluster/podclass":       "requests of pods, with in-place resizes",
	"pkg/plugins/resourcequota":  "limits of pods, as quotas count them",
	"pkg/plugins/usage":          "limits of pods that run",
	"internal/placement/kube":    "extended resources of a pod that devices stand for",
	"internal/audit":             "pods that the log shows; it shares no code with what decides",
	"internal/chaos":             "pods that run; it shares no code with what decides",
	"internal/demo":              "pods on the screen",
	"internal/benchmark/testbed": "pods of a measurement",
	"test/simulation":            "pods that run; it shares no code with what decides",
}

func TestRequestsOfTemplatesAreWorkedOutInOnePlace(t *testing.T) {
	left := maps.Clone(addUpPods)
	for _, s := range sources(t) {
		for _, i := range s.file.Imports {
			if strings.Trim(i.Path.Value, `"`) != "k8s.io/component-helpers/resource" {
				continue
			}
			if addUpPods[s.room] == "" {
				t.Errorf("%s adds up requests: ask pkg/apis/podspec", s.room)
			}
			delete(left, s.room)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(left)) {
		t.Errorf("%s does not add up requests any more", room)
	}
}
