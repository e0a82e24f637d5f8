package eviction_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// Two switches with a full node each. The first is tried first, and no pod of it may be evicted. A preemptor of one pod
// must stay behind one switch.
func TestRoomIsSoughtInAsManyHyperNodesAsIsSaid(t *testing.T) {
	const found = "victim-0 leaves n2"
	within := func(group *schedulingv1beta1.PodGroup, _ *corev1.Pod) { fixture.Within(1)(group) }
	for name, test := range map[string]struct{ action, plugin, want string }{
		"eight if nothing is said":    {"", "", found},
		"as many as the action says":  {"maxDomains: 1", "", ""},
		"and more":                    {"maxDomains: 2", "", found},
		"as many as the plugin says":  {"", "hypernode.gradient.evict.max-hypernodes: 1", ""},
		"the smaller of the two":      {"maxDomains: 1", "hypernode.gradient.evict.max-hypernodes: 2", ""},
		"the smaller of the two, too": {"maxDomains: 2", "hypernode.gradient.evict.max-hypernodes: 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := with(everything, "- plugins:\n  - name: priority\n",
				"- plugins:\n  - {name: network-topology-aware, arguments: {"+test.plugin+"}}\n  - name: priority\n") +
				"configurations: [{name: preempt, arguments: {" + test.action + "}}]\n"
			w := start(t, configuration).Set(nodes("cpu=1", "n1", "n2"), fixture.HyperNode("s1", 1, "n1"), fixture.HyperNode("s2", 1, "n2"),
				job("stays", "default", "low", 1, "n1", each(unmarked)), job("victim", "default", "low", 1, "n2"),
				job("preemptor", "default", "high", 1, "-", within))
			w.Cycle()
			if got := victims(w); got != test.want {
				t.Errorf("the victims are %q, should be %q", got, test.want)
			}
		})
	}
}

// The preemptor must stay behind one switch, which has room. Its queue is at its limit, with a pod behind another one.
func TestAPodElsewhereLeavesIfTheQueueIsAtItsLimit(t *testing.T) {
	within := func(group *schedulingv1beta1.PodGroup, _ *corev1.Pod) { fixture.Within(1)(group) }
	for name, test := range map[string]struct {
		limit string
		size  int
	}{
		"a pod by itself": {"cpu=1", 1},
		"a gang":          {"cpu=2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := with(everything, "- plugins:\n  - name: priority\n", "- plugins:\n  - name: network-topology-aware\n  - name: priority\n")
			w := start(t, configuration).Set(nodes("cpu=2", "n1", "n2"), fixture.HyperNode("s1", 1, "n1"), fixture.HyperNode("s2", 1, "n2"),
				fixture.Queue("limited", fixture.Capped(test.limit)), job("victim", "limited", "low", 1, "n2"), job("stays", "default", "low", 1, "n2", each(unmarked)),
				job("preemptor", "limited", "high", test.size, strings.Repeat("- ", test.size), within))
			w.Cycle()
			if got, want := victims(w), "victim-0 leaves n2"; got != want {
				t.Errorf("the victims are %q, should be %q", got, want)
			}
		})
	}
}
