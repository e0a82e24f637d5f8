package eviction_test

import (
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
