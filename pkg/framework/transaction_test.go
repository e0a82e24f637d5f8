package framework_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func TestUndoingAnInnerTransactionLeavesTheOuterOneAsItWas(t *testing.T) {
	f := &observer{named: "f"}
	s := open(policyOf(t, nil, []framework.Plugin{f}), gangs(2)...)
	c := s.Cluster
	task := func(name string) *cluster.Task { return c.Task(fixture.Key(name)) }
	outer := s.Begin()
	outer.Place(task("j0-0"), c.Node("n0"))
	inner := s.Begin()
	inner.Place(task("j0-1"), c.Node("n1"))
	inner.Place(task("j1-0"), c.Node("n1"))
	if inner.Placed() != 2 || outer.Placed() != 3 {
		t.Errorf("the inner holds %d and the outer %d", inner.Placed(), outer.Placed())
	}
	inner.Undo()
	if diff := cmp.Diff(map[string]string{"j0-0": "n0"}, f.counts); diff != "" {
		t.Errorf("the observer is wrong (-want +got):\n%s", diff)
	}
	outer.Place(task("j1-1"), c.Node("n1"))
	outer.Commit()
	if len(s.Binds) != 2 || s.Binds[0].Pod.Name != "j0-0" || s.Binds[1].Pod.Name != "j1-1" || s.Binds[1].Node != "n1" || s.Binds[1].IsNominated {
		t.Errorf("decided %+v", s.Binds)
	}
	if task("j0-1").Status != cluster.Pending || task("j1-1").Status != cluster.Binding {
		t.Error("the tasks are not where they were left")
	}
	want := "j0-0:Allocated j0-1:Allocated j1-0:Allocated j1-0:Pending j0-1:Pending j1-1:Allocated"
	if told := strings.Join(f.told, " "); told != want {
		t.Errorf("the observer was told %s", told)
	}
}

func TestWhatIsPromisedAndEvictedBecomesAPlan(t *testing.T) {
	f := &observer{named: "f"}
	s, k := openCache(policyOf(t, nil, []framework.Plugin{f}), running(gangs(2))...)
	c := s.Cluster
	task := func(name string) *cluster.Task { return c.Task(fixture.Key(name)) }
	x := s.Begin()
	x.Evict(task("j0-0"))
	x.Evict(task("j0-1"))
	x.Pipeline(task("j1-0"), c.Node("n0"))
	x.Spare(task("j0-0")) // it was not needed
	inner := s.Begin()
	inner.Unpipeline(task("j1-0"))
	inner.Pipeline(task("j1-0"), c.Node("n1"))
	inner.Undo()
	planned := &framework.Planned{Plan: &cluster.Plan{ID: "1", Job: c.Job(cluster.GroupID(fixture.Key("j1"))), Victims: []*cluster.Task{task("j0-1")}, Evictions: 1}}
	x.Promise(planned)
	if len(s.Plans) != 1 || s.Plans[0] != planned || c.Job(cluster.GroupID(fixture.Key("j1"))).Plan != planned.Plan || len(s.Binds) != 0 {
		t.Errorf("decided %d plans, %d binds", len(s.Plans), len(s.Binds))
	}
	for name, want := range map[string]cluster.Status{"j0-0": cluster.Running, "j0-1": cluster.Evicting, "j1-0": cluster.Pipelined, "j1-1": cluster.Pending} {
		if have := task(name).Status; have != want {
			t.Errorf("%s is %s, want %s", name, have, want)
		}
	}
	if diff := cmp.Diff(map[string]string{"j0-0": "n0", "j1-0": "n0"}, f.counts); diff != "" {
		t.Errorf("the observer is wrong (-want +got):\n%s", diff)
	}
	if problems := k.Audit(); len(problems) > 0 || c.Mark() != 0 {
		t.Error(problems)
	}
	s.Begin().Undo()
	if len(f.told) != 8 {
		t.Errorf("what is in force is taken back with the next transaction: the observer was told %v", f.told)
	}
	x = s.Begin()
	x.Place(task("j1-1"), c.Node("n1"))
	x.Commit()
	if len(s.Binds) != 1 || !s.Binds[0].IsNominated {
		t.Errorf("decided %+v, though the job of the pod has a plan", s.Binds)
	}
}

func TestAJobWithAPlanIsNotLookedAt(t *testing.T) {
	policy := policyOf(t, nil)
	s, c := openCache(policy, gangs(2)...)
	x := s.Begin()
	x.Pipeline(c.Task(fixture.Key("j1-0")), c.Node("n0"))
	p := &cluster.Plan{ID: "1", Job: c.Job(cluster.GroupID(fixture.Key("j1")))}
	x.Promise(&framework.Planned{Plan: p})
	looked := func() (names string) {
		s := framework.Open(c, policy, nil, now)
		for _, q := range s.Queues() {
			for _, j := range s.Jobs(q) {
				names += j.ID.Name
			}
		}
		return names
	}
	if have := looked(); have != "j0" {
		t.Errorf("looked at %s while room is being made for j1", have)
	}
	c.Plans().Cancel(p, "a test says so")
	if have := looked(); have != "j0j1" {
		t.Errorf("looked at %s after the plan was cancelled", have)
	}
}

func TestATransactionThatBreaksItsContractIsFoundAtOnce(t *testing.T) {
	plan := func(s *framework.Session, victims ...*cluster.Task) *framework.Planned {
		return &framework.Planned{Plan: &cluster.Plan{ID: "1", Job: s.Cluster.Job(cluster.GroupID(fixture.Key("j1"))), Victims: victims}}
	}
	for name, breakIt := range map[string]func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node){
		"an inner transaction is committed": func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node) {
			s.Begin().Place(waits, n)
			s.Begin().Commit()
		},
		"an inner transaction is promised": func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node) {
			s.Begin().Pipeline(waits, n)
			s.Begin().Promise(plan(s))
		},
		"what is placed is promised": func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node) {
			x := s.Begin()
			x.Place(waits, n)
			x.Promise(plan(s))
		},
		"an eviction is committed without a plan": func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node) {
			x := s.Begin()
			x.Evict(runs)
			x.Commit()
		},
		"a promise is committed without a plan": func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node) {
			x := s.Begin()
			x.Pipeline(waits, n)
			x.Commit()
		},
		"a plan leaves out who is evicted": func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node) {
			x := s.Begin()
			x.Pipeline(waits, n)
			x.Evict(runs)
			x.Promise(plan(s))
		},
		"a plan is of another job than what is promised": func(s *framework.Session, runs, waits *cluster.Task, n *cluster.Node) {
			x := s.Begin()
			x.Pipeline(s.Cluster.Task(fixture.Key("j2-0")), n)
			x.Promise(plan(s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(policyOf(t, nil), running(gangs(3))...)
			c := s.Cluster
			defer func() {
				if recover() == nil {
					t.Error("nobody minds")
				}
			}()
			breakIt(s, c.Task(fixture.Key("j0-0")), c.Task(fixture.Key("j1-0")), c.Node("n1"))
		})
	}
}

func TestWhatAnInnerTransactionPlacedIsCommittedWithTheOuter(t *testing.T) {
	s := open(policyOf(t, nil), gangs(1)...)
	c := s.Cluster
	outer := s.Begin()
	s.Begin().Place(c.Task(fixture.Key("j0-0")), c.Node("n0"))
	outer.Commit()
	if len(s.Binds) != 1 || s.Binds[0].UID != "j0-0-uid" || s.Binds[0].Job != cluster.GroupID(fixture.Key("j0")) {
		t.Errorf("decided %+v", s.Binds)
	}
	if s.Begin().Placed() != 0 {
		t.Error("a new transaction begins with what the last one placed")
	}
}

// After any series of changes and undos, an observer knows from its calls alone which tasks count. After the last undo
// the model is what it was.
func TestFollowersAndTheModelAgreeWhateverIsTakenBack(t *testing.T) {
	policyless := func(f *observer) *framework.Policy { return policyOf(t, nil, []framework.Plugin{f}) }
	rapid.Check(t, func(t *rapid.T) {
		f := &observer{named: "f"}
		s, k := openCache(policyless(f), running(gangs(4))...)
		c := s.Cluster
		before, made := harness.Picture(c), 0
		podset := cluster.Podset{Name: "worker", Count: 9, Template: pods.New(fixture.Pod("template", fixture.Asks("cpu=1"), fixture.Near("app", "x")))}
		var begun []framework.Transaction
		node := func(t *rapid.T) *cluster.Node {
			return c.Node(rapid.SampledFrom([]string{"n0", "n1"}).Draw(t, "node"))
		}
		// do changes one of the tasks of a status, in the innermost transaction.
		do := func(status cluster.Status, something func(*rapid.T, framework.Transaction, *cluster.Task)) func(*rapid.T) {
			return func(t *rapid.T) {
				all := slices.DeleteFunc(tasks(c), func(task *cluster.Task) bool { return task.Status != status })
				if len(begun) > 0 && len(all) > 0 {
					something(t, begun[len(begun)-1], rapid.SampledFrom(all).Draw(t, "task"))
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) { begun = append(begun, s.Begin()) },
			"place": do(cluster.Pending, func(t *rapid.T, x framework.Transaction, task *cluster.Task) { x.Place(task, node(t)) }),
			"pipeline": do(cluster.Pending, func(t *rapid.T, x framework.Transaction, task *cluster.Task) {
				x.Pipeline(task, node(t))
			}),
			"unpipeline": do(cluster.Pipelined, func(_ *rapid.T, x framework.Transaction, task *cluster.Task) { x.Unpipeline(task) }),
			"add a stand-in": func(t *rapid.T) {
				if len(begun) > 0 {
					made++
					begun[len(begun)-1].AddStandIn(c.Job(cluster.GroupID(fixture.Key(rapid.SampledFrom([]string{"j0", "j1"}).Draw(t, "job")))), &podset, made)
				}
			},
			"drop a stand-in": func(t *rapid.T) {
				all := slices.DeleteFunc(tasks(c), func(task *cluster.Task) bool { return !task.IsStandIn })
				if len(begun) > 0 && len(all) > 0 {
					begun[len(begun)-1].DropStandIn(rapid.SampledFrom(all).Draw(t, "stand-in"))
				}
			},
			"evict": do(cluster.Running, func(_ *rapid.T, x framework.Transaction, task *cluster.Task) { x.Evict(task) }),
			"spare": do(cluster.Evicting, func(_ *rapid.T, x framework.Transaction, task *cluster.Task) { x.Spare(task) }),
			"undo": func(*rapid.T) {
				if last := len(begun) - 1; last >= 0 {
					begun[last].Undo()
					begun = begun[:last]
				}
			},
			"": func(t *rapid.T) {
				if counts := counting(c); !maps.Equal(counts, f.counts) {
					t.Fatalf("the observer knows of %v, what counts is %v", f.counts, counts)
				}
				if problems := k.Audit(); len(problems) > 0 {
					t.Fatal(problems)
				}
			},
		})
		if len(begun) > 0 {
			begun[0].Undo()
		}
		if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(harness.Picture(c), "\n")); diff != "" {
			t.Fatalf("undone it is not what it was, attention included (-before +after)\n%s", diff)
		}
	})
}

func tasks(c *model.Cluster) []*cluster.Task {
	var all []*cluster.Task
	for _, j := range c.Jobs() {
		all = append(all, j.Tasks()...)
	}
	slices.SortFunc(all, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	return all
}

// amounts lists the amounts other than zero. Whether a vector stores zeros does not matter.
func amounts(v resources.Vector) (all string) {
	for d, amount := range v {
		if amount != 0 {
			all += fmt.Sprintf("%d=%d ", d, amount)
		}
	}
	return all
}

// sketch lists everything in a model that a decision depends on.
func sketch(c *model.Cluster) string {
	var b strings.Builder
	for _, n := range c.Nodes() {
		fmt.Fprintln(&b, n.Name, amounts(n.Used), amounts(n.Releasing), amounts(n.Promised), n.NonZero, len(n.Tasks()))
	}
	for _, task := range tasks(c) {
		node := ""
		if task.Node != nil {
			node = task.Node.Name
		}
		fmt.Fprintln(&b, task.Key(), task.Status, node)
	}
	for _, j := range c.Jobs() {
		fmt.Fprintln(&b, j.ID, amounts(j.Usage.Allocated), amounts(j.Usage.Inqueue), j.Ready(), amounts(j.Queue.Subtree.Allocated))
	}
	return b.String()
}

// A podset without pods is placed by stand-ins made for the trial. Committed they hold their nodes, no pod is bound,
// and a pod can take the place of one.
func TestStandInsHoldTheNodesOfPodsThatDoNotExist(t *testing.T) {
	s, k := openCache(policyOf(t, nil), gangs(1)...)
	c := s.Cluster
	j := c.Job(cluster.GroupID(fixture.Key("j0")))
	podset := cluster.Podset{Name: "driver", Count: 2, Template: pods.New(fixture.Pod("template", fixture.Asks("cpu=1")))}
	before := sketch(c)
	x := s.Begin()
	for i := range podset.Count {
		x.Place(x.AddStandIn(j, &podset, i), c.Node("n0"))
	}
	if j.Ready() != 2 || len(j.StandIns(cluster.Allocated)) != 2 {
		t.Errorf("%d tasks are ready", j.Ready())
	}
	x.Undo()
	if after := sketch(c); after != before {
		t.Errorf("undone it is\n%s\nbefore it was\n%s", after, before)
	}
	x = s.Begin()
	for i := range podset.Count {
		x.Place(x.AddStandIn(j, &podset, i), c.Node("n0"))
	}
	x.Commit()
	held := j.StandIns(cluster.Awaited)
	if len(s.Binds) != 0 || len(held) != 2 || c.Node("n0").Used.At(resources.CPU) != 2000 || j.Usage.Allocated.At(resources.CPU) != 2000 {
		t.Fatalf("bound are %v, held are %d, used is %v", s.Binds, len(held), c.Node("n0").Used)
	}
	x = s.Begin()
	x.DropStandIn(held[0])
	x.Place(c.Task(fixture.Key("j0-0")), c.Node("n0"))
	x.Commit()
	if len(s.Binds) != 1 || len(j.StandIns(cluster.Awaited)) != 1 || c.Task(held[0].Key()) != nil {
		t.Errorf("bound are %v", s.Binds)
	}
	if problems := k.Audit(); len(problems) > 0 {
		t.Error(problems)
	}
}
