package placer_test

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// asked is a plugin that answers each question of placement about the nodes of a cluster, by name.
type asked struct{}

func (asked) Name() string { return "asked" }

func (asked) RefuseNode(_ *cluster.Class, n *cluster.Node) string {
	if n.Name == "filtered" {
		return "node(s) were filtered"
	}
	return ""
}

func (asked) VetoNode(_ *cluster.Task, n *cluster.Node) string {
	if n.Name == "vetoed" {
		return "node(s) were vetoed"
	}
	return ""
}

func (asked) ScoreNode(_ *cluster.Class, n *cluster.Node) int64 {
	return framework.Point * map[string]int64{"filtered": 9, "vetoed": 9, "full": 9, "liked": 5}[n.Name]
}

func (asked) KubeFilters() []string { return []string{"TaintToleration", "NodeUnschedulable"} }

func (asked) KubeScores() []framework.KubeScore {
	return []framework.KubeScore{{Name: "TaintToleration", Weight: 1}}
}

func ExampleNew() {
	m := harness.ForPlugin(new(testing.T), harness.Made(asked{}), "").Set(fixture.Queue("default"), fixture.Group("g", "default", 1), fixture.Pod("p", fixture.In("g")),
		fixture.Node("filtered", "cpu=8"), fixture.Node("full", "cpu=500m"), fixture.Node("liked", "cpu=8"), fixture.Node("vetoed", "cpu=8"), fixture.Node("unliked", "cpu=8"))
	m.Settle()
	engine, err := placer.New(m.Cluster, m.Policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(engine.Best(m.TaskNamed("p")).Name)
	// Output: liked
}

func TestAnOutlookSeesTheModelAsItWillBe(t *testing.T) {
	m := harness.ForPlugin(t, harness.Made(asked{}), "").Set(fixture.Queue("default"), fixture.Group("g", "default", 1), fixture.Pod("p", fixture.In("g")),
		fixture.Node("n", "cpu=1"), fixture.Pod("leaves", fixture.In("g"), fixture.On("n"))).Terminate("leaves")
	m.Settle()
	engine, err := placer.New(m.Cluster, m.Policy)
	if err != nil {
		t.Fatal(err)
	}
	outlook, err := placer.NewOutlook(m.Cluster, m.Policy)
	if err != nil {
		t.Fatal(err)
	}
	if n := engine.Best(m.TaskNamed("p")); n != nil {
		t.Errorf("while a pod leaves there is room on node %s", n.Name)
	}
	if n := outlook.Best(m.TaskNamed("p")); n != m.NodeNamed("n") {
		t.Errorf("once it is gone there is room on %v", n)
	}
}
