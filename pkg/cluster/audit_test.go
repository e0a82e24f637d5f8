package cluster

import (
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/resources"
)

// The silence of the audit proves something only if it speaks when it should.
func TestTheAuditFindsWhatIsBroken(t *testing.T) {
	for want, breakIt := range map[string]func(c *Cluster){
		"cluster total":                                func(c *Cluster) { c.Total.Set(resources.CPU, 1) },
		"cluster used":                                 func(c *Cluster) { c.Used = nil },
		"node n used":                                  func(c *Cluster) { c.nodes["n"].Used.Add(c.vector("cpu=1")) },
		"node n releasing":                             func(c *Cluster) { c.nodes["n"].Releasing.Add(c.vector("cpu=1")) },
		"node n promised":                              func(c *Cluster) { c.nodes["n"].Promised.Add(c.vector("cpu=1")) },
		"node n balance":                               func(c *Cluster) { c.nodes["n"].NonZero[1]++ },
		"node n tasks":                                 func(c *Cluster) { c.nodes["n"].tasks = append(c.nodes["n"].tasks, nil) },
		"is not listed on its node n":                  func(c *Cluster) { c.Task(key("b")).inNode = 5 },
		"is on node m, which is not known":             func(c *Cluster) { c.Task(key("b")).Node = &Node{Name: "m"} },
		"though neither it nor a pod of it is left":    func(c *Cluster) { c.nodeNamed("m") },
		"is not listed in its slot":                    func(c *Cluster) { c.nodes["n"].Slot = 7 },
		"slots in use":                                 func(c *Cluster) { c.freeSlots = append(c.freeSlots, 0) },
		"nodes by rank":                                func(c *Cluster) { c.byRank = nil },
		"is listed as ns/x":                            func(c *Cluster) { c.tasks[key("x")] = c.tasks[key("p")] },
		"classes is":                                   func(c *Cluster) { c.classes.Of(pod("x", asks("cpu=77")), podclass.Belonging{}) },
		"tasks of a class":                             func(c *Cluster) { c.classes.Exchange(nil, c.Task(key("p")).Class) },
		"job ns/busy allocated":                        func(c *Cluster) { c.Job(key("busy")).Usage.Allocated = nil },
		"job ns/busy request":                          func(c *Cluster) { c.Job(key("busy")).Usage.Request = nil },
		"job ns/busy inqueue":                          func(c *Cluster) { c.Job(key("busy")).Usage.Inqueue = nil },
		"job ns/g tasks":                               func(c *Cluster) { j := c.Job(key("g")); j.tasks = append(j.tasks, nil) },
		"is not listed in its job ns/g":                func(c *Cluster) { c.Task(key("p")).inJob = 9 },
		"job ns/g counts are":                          func(c *Cluster) { c.Job(key("g")).Add(Running, "default", nil, +1) },
		"counts of role default":                       func(c *Cluster) { c.Job(key("g")).Roles()["default"][Running]++ },
		"wants attention and is not listed as waiting": func(c *Cluster) { c.Job(key("g")).waiting = false },
		"is not in the queue it names":                 func(c *Cluster) { c.Job(key("g")).QueueName = "r" },
		"queue q allocated":                            func(c *Cluster) { c.queues["q"].Own.Allocated = nil },
		"queue q jobs":                                 func(c *Cluster) { c.queues["q"].Jobs++ },
		"queue root subtree":                           func(c *Cluster) { c.Root().Subtree.Request = nil },
		"cluster releasing":                            func(c *Cluster) { c.Releasing.Set(resources.CPU, 1) },
		"cluster promised":                             func(c *Cluster) { c.Promised.Set(resources.CPU, 1) },
		"plan 1 is listed and not in force":            func(c *Cluster) { c.promise("p", "n"); c.plans.inForce["1"] = c.plans.inForce["for p"] },
		"job ns/g has a plan that is not in force":     func(c *Cluster) { c.Job(key("g")).Plan = &Plan{ID: "1"} },
		"task ns/p is promised room and has no plan":   func(c *Cluster) { c.Pipeline(c.Task(key("p")), c.Node("n")); c.Keep() },
		"task ns/b is evicted and by no plan":          func(c *Cluster) { c.Evict(c.Task(key("b"))); c.Keep() },
		"task ns/b is a victim of a plan that it does not": func(c *Cluster) {
			c.promise("p", "n", "b")
			c.Spare(c.Task(key("b")))
			c.Keep()
		},
		"task ns/b leaves for a plan that does not list it": func(c *Cluster) { c.promise("p", "n", "b").Victims = nil },
		"task ns/b is Evicting, and not listed so":          func(c *Cluster) { c.promise("p", "n", "b"); delete(c.leaving, key("b")) },
		"evictions under way of budget ns/x":                func(c *Cluster) { c.Apply(Set{pdbOf("x", "", 1)}); c.Budgets(c.Task(key("p")))[0].Spend(1) },
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
