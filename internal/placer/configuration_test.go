package placer

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// numbered is a plugin that answers all questions of placement, and is told from others by its number.
type numbered int

func (numbered) Name() string                                         { return "numbered" }
func (numbered) RefuseNode(*cluster.Class, *cluster.Node) string      { return "" }
func (numbered) VetoNode(*cluster.Task, *cluster.Node) string         { return "" }
func (n numbered) ScoreNode(_ *cluster.Class, of *cluster.Node) int64 { return int64(n) }

// Whatever an engine can be told is told it from the policy: a field that is added and forgotten is found here.
func TestEverythingInAPolicyAboutPlacementIsPassedOn(t *testing.T) {
	policy := &framework.Policy{
		Filters: []framework.NodeFilter{numbered(1), numbered(2)}, Vetoers: []framework.NodeVetoer{numbered(3), numbered(4)},
		Scorers: []framework.NodeScorer{numbered(5), numbered(6)}, KubeFilters: []string{"NodePorts", "NodeName"},
		KubeScores: []framework.KubeScore{{Name: "NodeAffinity", Weight: 7}, {Name: "ImageLocality", Weight: 8}},
		Kube: framework.KubeArguments{BindTimeout: 9 * time.Second, DeviceTimeout: 10 * time.Second, DeviceBindTimeout: 11 * time.Second,
			VolumeShape: []framework.ShapePoint{{Utilization: 12, Score: 1}, {Utilization: 13, Score: 2}}},
	}
	got := configuration(policy)
	want := placement.Configuration{
		Filters: []placement.Filter{numbered(1), numbered(2)}, Vetoers: []placement.Vetoer{numbered(3), numbered(4)},
		Scorers: []placement.Scorer{numbered(5), numbered(6)}, KubeFilters: []string{"NodePorts", "NodeName"}, Point: framework.Point,
		KubeScores: []kube.Weighted{{Name: "NodeAffinity", Weight: 7}, {Name: "ImageLocality", Weight: 8}},
		Kube: kube.Arguments{BindTimeout: 9 * time.Second, DeviceTimeout: 10 * time.Second, DeviceBindTimeout: 11 * time.Second,
			VolumeShape: []kube.ShapePoint{{Utilization: 12, Score: 1}, {Utilization: 13, Score: 2}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("passed on is %+v, want %+v", got, want)
	}
	var zero []string
	for _, v := range []reflect.Value{reflect.ValueOf(got), reflect.ValueOf(got.Kube), reflect.ValueOf(policy.Kube)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				zero = append(zero, v.Type().Field(i).Name)
			}
		}
	}
	if slices.Sort(zero); len(zero) > 0 {
		t.Errorf("nothing is passed on in %v", zero)
	}
}
