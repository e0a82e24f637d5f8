package networktopology_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/networktopology"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// racks is a world of two racks in one row, and a third in another: of the first a half is taken, of the second a
// quarter.
func racks(t *testing.T, arguments string) *harness.Model {
	w := harness.ForPlugin(t, networktopology.Factory(), arguments)
	for _, name := range []string{"a0", "a1", "b0", "b1", "c0", "c1", "stray"} {
		w.Set(fixture.Node(name, "cpu=10 memory=10Gi"))
	}
	return w.Set(fixture.HyperNode("a", 1, "a0", "a1"), fixture.HyperNode("b", 1, "b0", "b1"), fixture.HyperNode("c", 1, "c0", "c1"),
		fixture.HyperNode("row", 2, "@a", "@b"), fixture.HyperNode("other", 2, "@c"), fixture.HyperNode("hall", 3, "@row", "@other"),
		fixture.Pod("on-a", fixture.On("a0"), fixture.Asks("cpu=10")), fixture.Pod("on-b", fixture.On("b1"), fixture.Asks("cpu=5")),
		fixture.Group("g", "default", 1), fixture.Pod("g-0", fixture.In("g")))
}

func TestANodeIsWorthAsMuchAsItsHyperNodesAreFull(t *testing.T) {
	for name, test := range map[string]struct {
		arguments string
		want      map[string]int64 // points
	}{
		// Of a rack 50 % and of its row 37 %, by 1 and 0.8; the hall is the same for all.
		"the rack counts most": {"", map[string]int64{"a0": 44, "a1": 44, "b0": 30, "c0": 0, "stray": 0}},
		"without fading rack and row count alike": {"hypernode.binpack.normal-pod.fading: 1",
			map[string]int64{"a0": 43, "b0": 31, "c0": 0}},
		"with full fading only the rack counts": {"hypernode.binpack.normal-pod.fading: 0", map[string]int64{"a0": 50, "b0": 25, "c0": 0}},
		"the weight multiplies":                 {"weight: 3\nhypernode.binpack.normal-pod.fading: 0", map[string]int64{"a0": 150, "b0": 75}},
		"switched off":                          {"hypernode.binpack.normal-pod.enable: false", map[string]int64{"a0": 0, "b0": 0}},
		"a resource that does not count":        {"hypernode.binpack.cpu: 0", map[string]int64{"a0": 0, "b0": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := racks(t, test.arguments)
			s := w.Open()
			for node, want := range test.want {
				var score int64
				for _, scorer := range s.Policy.Scorers {
					score += scorer.ScoreNode(w.TaskNamed("g-0").Class, w.Node(node))
				}
				if points := score / framework.Point; points != want {
					t.Errorf("%s is worth %d points, want %d", node, points, want)
				}
			}
		})
	}
}

func TestTheFullerHyperNodeIsTheBetterForAGang(t *testing.T) {
	w := racks(t, "weight: 2")
	s := w.Open()
	got := map[string]int64{}
	for _, h := range s.Cluster.HyperNodes() {
		got[h.Name] = s.Policy.HyperNodes[0].ScoreHyperNode(w.TaskNamed("g-0").Request(), h) / framework.Point
	}
	want := map[string]int64{"a": 110, "b": 60, "c": 10, "row": 80, "other": 10, "hall": 53}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the scores differ (-want +got):\n%s", diff)
	}
	var groups []string
	for _, group := range s.Policy.Grader().GradeHyperNodes(s.Cluster.HyperNodes()) {
		var names []string
		for _, h := range group {
			names = append(names, h.Name)
		}
		groups = append(groups, strings.Join(names, " "))
	}
	if diff := cmp.Diff([]string{"a b c", "other row", "hall"}, groups); diff != "" {
		t.Errorf("the order differs (-want +got):\n%s", diff)
	}
}

func TestNodesAreLookedAtAgainWhenTheirHyperNodeHasFilledUp(t *testing.T) {
	w := racks(t, "")
	w.Open()
	_, since, _ := w.Changes(0)
	changed := func() string {
		w.Open()
		slots, next, _ := w.Changes(since)
		since = next
		names := map[string]bool{}
		for _, slot := range slots {
			names[w.BySlot()[slot].Name] = true
		}
		var sorted []string
		for _, n := range w.Nodes() {
			if names[n.Name] {
				sorted = append(sorted, n.Name)
			}
		}
		return strings.Join(sorted, " ")
	}
	if got := changed(); got != "" {
		t.Errorf("nothing has happened, and looked at again are %s", got)
	}
	w.Apply(cache.Set{Object: fixture.Pod("on-c", fixture.On("c0"), fixture.Asks("cpu=1"))})
	if got := changed(); got != "a0 a1 b0 b1 c0 c1" { // it is in the hall of all
		t.Errorf("looked at again are %s", got)
	}
	w.Apply(cache.Set{Object: fixture.Pod("tiny", fixture.On("c0"), fixture.Asks("cpu=10m"))})
	if got := changed(); got != "c0" {
		t.Errorf("for less than a percent looked at again are %s", got)
	}
}

func TestArgumentsThatMeanNothingAreRefused(t *testing.T) {
	for _, text := range []string{"weight: -1", "hypernode.binpack.cpu: -1", "hypernode.binpack.normal-pod.fading: 1.5",
		"hypernode.gradient.evict.max-hypernodes: 0", "hypernode.binpack.resources.nvidia.com/gpu: 3", "hypernode.binpack.normal: true"} {
		factory := networktopology.Factory()
		arguments, err := conf.ParseArguments([]byte(text), factory.Spec)
		if err == nil {
			_, err = factory.New(conf.Switches{}, arguments)
		}
		if err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
