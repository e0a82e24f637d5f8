package placement_test

import (
	"testing"
	"time"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// twoInAll is a plugin from outside the tree that lets all nodes together hold no more than two pods.
type twoInAll struct {
	cluster *model.Cluster
	wasFull bool
}

func (*twoInAll) Name() string { return "two-in-all" }

func (p *twoInAll) OpenSession(s *framework.Session) { p.cluster = s.Cluster }

func (p *twoInAll) isFull() bool {
	pods := 0
	for _, n := range p.cluster.Nodes() {
		pods += len(n.Tasks())
	}
	return pods >= 2
}

func (p *twoInAll) RefuseNode(*cluster.Class, *cluster.Node) string {
	if p.isFull() {
		return "node(s) held two pods in all"
	}
	return ""
}

func (p *twoInAll) InvalidateNodes() {
	if isFull := p.isFull(); isFull != p.wasFull {
		p.wasFull = isFull
		for _, n := range p.cluster.Nodes() {
			p.cluster.Outdate(n)
		}
	}
}

func TestWhatRestsOnOtherNodesIsLookedAtAgainWhenTheyChange(t *testing.T) {
	registry := framework.NewRegistry(nil, []framework.PluginFactory{{Name: "two-in-all",
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return &twoInAll{}, nil }}})
	policy, err := registry.Build(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "two-in-all"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	c.Apply(cache.Set{Object: fixture.Queue("q")}, cache.Set{Object: fixture.Group("g", "q", 1)})
	for _, name := range []string{"a", "b", "c"} {
		c.Apply(cache.Set{Object: fixture.Node(name, "cpu=1")}, cache.Set{Object: fixture.Pod(name, fixture.In("g"), fixture.Asks("cpu=1"))})
	}
	now, err := placer.New(c.Cluster, policy)
	if err != nil {
		t.Fatal(err)
	}
	later, err := placer.NewOutlook(c.Cluster, policy)
	if err != nil {
		t.Fatal(err)
	}
	s := framework.Open(c, policy, now, fixture.Birth.Add(time.Hour))
	task := func(name string) *cluster.Task { return c.Task(fixture.Key(name)) }
	x := s.Begin()
	for _, name := range []string{"a", "b"} {
		for _, e := range []*placement.Engine{now, later} {
			if best := e.Best(task(name)); best != c.Node(name) {
				t.Fatalf("for pod %s the best node is %v", name, best)
			}
		}
		x.Place(task(name), c.Node(name))
	}
	for _, e := range []*placement.Engine{now, later} {
		if best := e.Best(task("c")); best != nil {
			t.Errorf("all nodes hold two pods, and there is still node %s for a third", best.Name)
		}
	}
	x.Undo()
	for _, e := range []*placement.Engine{now, later} {
		if best := e.Best(task("c")); best != c.Node("a") {
			t.Errorf("no node holds a pod, and the best one is %v", best)
		}
	}
}
