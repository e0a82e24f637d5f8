package nodegroup_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/nodegroup"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
)

// policy is the plugin alone.
func policy(tb rapid.TB) *framework.Policy {
	tiers := []conf.Tier{{Plugins: []conf.Plugin{{Name: nodegroup.Name, Arguments: nodegroup.Factory().Spec.Defaults()}}}}
	p, err := framework.NewRegistry(nil, []framework.PluginFactory{nodegroup.Factory()}).Build(&conf.Configuration{Tiers: tiers})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// What the engine remembers of nodes is what it would find out again, whatever was placed, taken back and bound in
// between, and no queue ever uses more of a group than it may.
func TestAnswersThatAreKeptAreTrueAndLimitsHold(t *testing.T) {
	const limit = 5
	rapid.Check(t, func(r *rapid.T) {
		c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
		for _, q := range []string{"q", "r"} {
			c.Apply(cache.Set{Object: fixture.Queue(q, to("g1", "g2", "", ""), limited(fmt.Sprintf(`{"g1": {"cpu": %d}}`, limit)))},
				cache.Set{Object: fixture.Group(q, q, 1)})
		}
		for i := range 6 {
			group := []string{"g1", "g1", "g2"}[i%3]
			c.Apply(cache.Set{Object: fixture.Node(fmt.Sprint("n", i), "cpu=3", inGroup(group))})
		}
		for i := range 16 {
			asked := fmt.Sprintf("cpu=%d", 1+rapid.IntRange(0, 1).Draw(r, "cpu"))
			c.Apply(cache.Set{Object: fixture.Pod(fmt.Sprint("p", i), fixture.In([]string{"q", "r"}[i%2]), fixture.Asks(asked))})
		}
		rules := policy(r)
		remembers, err := placer.New(c.Cluster, rules)
		if err != nil {
			r.Fatal(err)
		}
		for range 4 {
			s := framework.Open(c, rules, remembers, birth)
			x := s.Begin()
			for range rapid.IntRange(0, 8).Draw(r, "steps") {
				waiting := tasksOf(c.Cluster)
				if len(waiting) == 0 {
					break
				}
				task := waiting[rapid.IntRange(0, len(waiting)-1).Draw(r, "task")]
				n := c.Nodes()[rapid.IntRange(0, 5).Draw(r, "node")]
				if fits := remembers.Fits(task, n); fits != couldHave(c.Cluster, task, n, limit*1000) {
					r.Fatalf("%s is said to fit on %s: %t", task.Pod.Name, n.Name, fits)
				}
				have, want := remembers.Best(task), best(c.Cluster, task, limit*1000)
				if have != want {
					r.Fatalf("for %s the best node is %v, and was said to be %v", task.Pod.Name, name(want), name(have))
				}
				if have == nil {
					continue
				}
				x.Place(task, have)
				for queue, used := range usedOf(c.Cluster) {
					if used > limit*1000 {
						r.Fatalf("queue %s uses %dm of the group", queue, used)
					}
				}
				if rapid.IntRange(0, 4).Draw(r, "undo") == 0 {
					x.Undo()
					x = s.Begin()
				}
			}
			if rapid.Bool().Draw(r, "commit") {
				x.Commit()
			} else {
				x.Undo()
			}
		}
	})
}

// best is the node that a task should get: of g1 as long as the limit lets it, else of g2; the first by name.
func best(c *model.Cluster, t *cluster.Task, limit int64) *cluster.Node {
	var fallback *cluster.Node
	for _, n := range c.Nodes() {
		switch {
		case !couldHave(c, t, n, limit):
		case isFirst(n):
			return n
		case fallback == nil:
			fallback = n
		}
	}
	return fallback
}

func isFirst(n *cluster.Node) bool { return n.Object.Labels["volcano.sh/nodegroup-name"] == "g1" }

func couldHave(c *model.Cluster, t *cluster.Task, n *cluster.Node, limit int64) bool {
	asked := t.Request().At(resources.CPU)
	return n.Free(resources.CPU) >= asked && (!isFirst(n) || usedOf(c)[t.Job.QueueName]+asked <= limit)
}

func name(n *cluster.Node) string {
	if n == nil {
		return "none"
	}
	return n.Name
}

// usedOf is what the pods of each queue request of CPU in g1.
func usedOf(c *model.Cluster) map[string]int64 {
	used := map[string]int64{}
	for _, n := range c.Nodes() {
		if isFirst(n) {
			for _, t := range n.Tasks() {
				used[t.Job.QueueName] += t.Request().At(resources.CPU)
			}
		}
	}
	return used
}
