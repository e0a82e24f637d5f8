package eviction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// avoider is a plugin that vetoes the node that an annotation of the pod names, or every node. The annotation is not
// declared, so pods that differ in it are in one class.
type avoider struct{}

const avoids = "example.com/avoids"

func (avoider) Name() string { return "avoider" }
func (avoider) VetoNode(t *cluster.Task, n *cluster.Node) string {
	if node := t.Pod.Annotations[avoids]; node == n.Name || node == "all" {
		return "node(s) were to be avoided"
	}
	return ""
}

var avoiding = scheduler.WithPlugin(framework.PluginFactory{Name: "avoider",
	New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return avoider{}, nil }})

func TestAVetoForOnePodIsNoneForAnotherOfItsClass(t *testing.T) {
	configuration := with(everything, "- name: predicates", "- name: predicates\n  - name: avoider")
	avoid := func(node string) func(*corev1.Pod) { return fixture.Annotated(avoids, node) }
	for name, test := range map[string]struct {
		things []any
		want   string
	}{
		"the cheapest node goes to the other pod": {things: []any{nodes("cpu=1", "n1", "n2", "n3"), job("a", "default", "low", 0, "n1"),
			job("b", "default", "mid", 0, "n2", each(startedAt(9))), job("c", "default", "mid", 0, "n3", each(startedAt(1))),
			job("high", "default", "high", 2, "- -", one(0, avoid("n1")))},
			want: "a-0 leaves n1 for high by J1; b-0 leaves n2 for high by J1; high-0 is nominated to n2; high-1 is nominated to n1"},
		"one pod finds no node and the other does": {things: []any{nodes("cpu=1", "n1"), job("a", "default", "low", 0, "n1"),
			job("high", "default", "high", 1, "- -", one(0, avoid("all")))},
			want: "a-0 leaves n1 for high by J1; high-1 is nominated to n1"},
		"one job finds no node and the next does": {things: []any{nodes("cpu=1", "n1"), job("a", "default", "low", 0, "n1"),
			job("h1", "default", "high", 1, "-", one(0, avoid("all"))), job("h2", "default", "high", 1, "-")},
			want: "a-0 leaves n1 for h2 by J1; h2-0 is nominated to n1"},
		"a node on its way is vetoed for one pod only": {things: []any{nodes("cpu=1", "n1"), job("a", "default", "low", 0, "n1", each(leaving)),
			job("high", "default", "high", 1, "- -", one(0, avoid("all")))},
			want: "high-1 is nominated to n1"},
	} {
		t.Run(name, func(t *testing.T) {
			start(t, configuration, avoiding).Set(test.things...).Expect(test.want)
		})
	}
}
