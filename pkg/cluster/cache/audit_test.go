package cache

import (
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/resources"
)

// The silence of the audit proves something only if it speaks when it should.
func TestTheAuditFindsWhatIsBroken(t *testing.T) {
	for want, breakIt := range map[string]func(c *Cache){
		"cluster total":                                func(c *Cache) { c.Total.Set(resources.CPU, 1) },
		"cluster used":                                 func(c *Cache) { c.Used = nil },
		"node n used":                                  func(c *Cache) { c.Node("n").Used.Add(c.vector("cpu=1")) },
		"node n releasing":                             func(c *Cache) { c.Node("n").Releasing.Add(c.vector("cpu=1")) },
		"node n promised":                              func(c *Cache) { c.Node("n").Promised.Add(c.vector("cpu=1")) },
		"node n balance":                               func(c *Cache) { c.Node("n").NonZero[1]++ },
		"node n tasks":                                 func(c *Cache) { c.Node("n").Internal.Tasks = append(c.Node("n").Internal.Tasks, nil) },
		"is not listed on its node n":                  func(c *Cache) { c.Task(key("b")).Internal.InNode = 5 },
		"is on node m, which is not known":             func(c *Cache) { c.Task(key("b")).Node = &cluster.Node{Name: "m"} },
		"though neither it nor a pod of it is left":    func(c *Cache) { c.writer.Nodes.Named("m") },
		"is not listed in its slot":                    func(c *Cache) { c.Node("n").Slot = 7 },
		"is listed under another name":                 func(c *Cache) { c.Task(key("p")).Pod = pods.New(pod("x")) },
		"classes is":                                   func(c *Cache) { c.writer.Classes().Of(pods.New(pod("x", asks("cpu=77"))), podclass.Belonging{}) },
		"tasks of a class":                             func(c *Cache) { c.writer.Classes().Exchange(nil, c.Task(key("p")).Class) },
		"job ns/busy allocated":                        func(c *Cache) { c.Job(jobID("busy")).Usage.Allocated = nil },
		"job ns/busy request":                          func(c *Cache) { c.Job(jobID("busy")).Usage.Request = nil },
		"job ns/busy inqueue":                          func(c *Cache) { c.Job(jobID("busy")).Usage.Inqueue = nil },
		"job ns/g tasks":                               func(c *Cache) { j := c.Job(jobID("g")); j.Internal.Tasks = append(j.Internal.Tasks, nil) },
		"is not listed in its job ns/g":                func(c *Cache) { c.Task(key("p")).Internal.InJob = 9 },
		"job ns/g counts are":                          func(c *Cache) { c.Job(jobID("g")).Add(cluster.Running, "default", nil, +1) },
		"counts of role default":                       func(c *Cache) { c.Job(jobID("g")).Roles()["default"][cluster.Running]++ },
		"wants attention and is not listed as waiting": func(c *Cache) { c.Job(jobID("g")).Internal.IsWaiting = false },
		"is not in the queue it names":                 func(c *Cache) { c.Job(jobID("g")).QueueName = "r" },
		"queue q allocated":                            func(c *Cache) { c.Queue("q").Own.Allocated = nil },
		"queue q jobs":                                 func(c *Cache) { c.Queue("q").Jobs++ },
		"queue root subtree":                           func(c *Cache) { c.Root().Subtree.Request = nil },
		"cluster releasing":                            func(c *Cache) { c.Releasing.Set(resources.CPU, 1) },
		"cluster promised":                             func(c *Cache) { c.Promised.Set(resources.CPU, 1) },
		"plan for p is listed and not in force":        func(c *Cache) { c.Job(c.promise("p", "n").Job.ID).Plan = nil },
		"job ns/g has a plan that is not in force":     func(c *Cache) { c.Job(jobID("g")).Plan = &cluster.Plan{ID: "1"} },
		"task ns/p is promised room and has no plan":   func(c *Cache) { c.Pipeline(c.Task(key("p")), c.Node("n")); c.Keep() },
		"task ns/b is evicted and by no plan":          func(c *Cache) { c.Evict(c.Task(key("b"))); c.Keep() },
		"task ns/b is a victim of a plan that it does not": func(c *Cache) {
			c.promise("p", "n", "b")
			c.Spare(c.Task(key("b")))
			c.Keep()
		},
		"task ns/b leaves for a plan that does not list it": func(c *Cache) { c.promise("p", "n", "b").Victims = nil },
		"task ns/b is Running, and not listed so":           func(c *Cache) { c.promise("p", "n", "b"); c.Task(key("b")).Status = cluster.Running },
		"evictions under way of budget ns/x":                func(c *Cache) { c.Apply(Set{pdbOf("x", "", 1)}); c.Budgets(c.Task(key("p")))[0].Spend(1) },
	} {
		t.Run(want, func(t *testing.T) {
			c := crowded()
			sound(t, c)
			breakIt(c)
			if found := strings.Join(c.Audit(), "\n"); !strings.Contains(found, want) {
				t.Errorf("the audit says nothing of it, but:\n%s", found)
			}
		})
	}
}
