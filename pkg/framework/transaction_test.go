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
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
)

func TestUndoingAnInnerTransactionLeavesTheOuterOneAsItWas(t *testing.T) {
	f := &follower{named: "f", placed: map[string]string{}}
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
	if diff := cmp.Diff(map[string]string{"j0-0": "n0"}, f.placed); diff != "" {
		t.Errorf("the follower is wrong (-want +got):\n%s", diff)
	}
	outer.Place(task("j1-1"), c.Node("n1"))
	outer.Commit()
	if len(s.Binds) != 2 || s.Binds[0].Pod.Name != "j0-0" || s.Binds[1].Pod.Name != "j1-1" || s.Binds[1].Node != "n1" {
		t.Errorf("decided %+v", s.Binds)
	}
	if task("j0-1").Status != cluster.Pending || task("j1-1").Status != cluster.Binding {
		t.Error("the tasks are not where they were left")
	}
	if told := strings.Join(f.told, " "); told != "+j0-0 +j0-1 +j1-0 -j1-0 -j0-1 +j1-1" {
		t.Errorf("the follower was told %s", told)
	}
}

func TestWhatAnInnerTransactionPlacedIsCommittedWithTheOuter(t *testing.T) {
	s := open(policyOf(t, nil), gangs(1)...)
	c := s.Cluster
	outer := s.Begin()
	s.Begin().Place(c.Task(fixture.Key("j0-0")), c.Node("n0"))
	outer.Commit()
	if len(s.Binds) != 1 || s.Binds[0].UID != "j0-0-uid" || s.Binds[0].Job != fixture.Key("j0") {
		t.Errorf("decided %+v", s.Binds)
	}
	if s.Begin().Placed() != 0 {
		t.Error("a new transaction begins with what the last one placed")
	}
}

func TestATransactionInsideAnotherCannotBeCommitted(t *testing.T) {
	s := open(policyOf(t, nil), gangs(1)...)
	s.Begin().Place(s.Cluster.Task(fixture.Key("j0-0")), s.Cluster.Node("n0"))
	defer func() {
		if recover() == nil {
			t.Error("it is committed")
		}
	}()
	s.Begin().Commit()
}

// Whatever is placed, nested and taken back, a follower that only listens knows what is placed, and the model is as it was
// once all is taken back.
func TestFollowersAndTheModelAgreeWhateverIsTakenBack(t *testing.T) {
	policyless := func(f *follower) *framework.Policy { return policyOf(t, nil, []framework.Plugin{f}) }
	rapid.Check(t, func(t *rapid.T) {
		f := &follower{named: "f", placed: map[string]string{}}
		s := open(policyless(f), gangs(4)...)
		c := s.Cluster
		before := sketch(c)
		var begun []framework.Transaction
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) { begun = append(begun, s.Begin()) },
			"place": func(t *rapid.T) {
				waiting := slices.DeleteFunc(tasks(c), func(task *cluster.Task) bool { return task.Status != cluster.Pending })
				if len(begun) > 0 && len(waiting) > 0 {
					n := c.Node(rapid.SampledFrom([]string{"n0", "n1"}).Draw(t, "node"))
					begun[len(begun)-1].Place(rapid.SampledFrom(waiting).Draw(t, "task"), n)
				}
			},
			"undo": func(*rapid.T) {
				if last := len(begun) - 1; last >= 0 {
					begun[last].Undo()
					begun = begun[:last]
				}
			},
			"": func(t *rapid.T) {
				placed := map[string]string{}
				for _, task := range tasks(c) {
					if task.Status == cluster.Allocated {
						placed[task.Key().Name] = task.Node.Name
					}
				}
				if !maps.Equal(placed, f.placed) {
					t.Fatalf("the follower knows of %v, placed are %v", f.placed, placed)
				}
				if problems := c.Audit(); len(problems) > 0 {
					t.Fatal(problems)
				}
			},
		})
		if len(begun) > 0 {
			begun[0].Undo()
		}
		if after := sketch(c); after != before {
			t.Fatalf("undone it is\n%s\nbefore it was\n%s", after, before)
		}
	})
}

func tasks(c *cluster.Cluster) []*cluster.Task {
	var all []*cluster.Task
	for _, j := range c.Jobs() {
		all = append(all, j.Tasks()...)
	}
	slices.SortFunc(all, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	return all
}

// amounts are those that are not zero: a vector may or may not hold zeros.
func amounts(v resources.Vector) (all string) {
	for d, amount := range v {
		if amount != 0 {
			all += fmt.Sprintf("%d=%d ", d, amount)
		}
	}
	return all
}

// sketch is all that a decision could see of a model.
func sketch(c *cluster.Cluster) string {
	var b strings.Builder
	for _, n := range c.Nodes() {
		fmt.Fprintln(&b, n.Name, amounts(n.Used), n.NonZero, len(n.Tasks()))
	}
	for _, task := range tasks(c) {
		fmt.Fprintln(&b, task.Key(), task.Status, task.Node)
	}
	for _, j := range c.Jobs() {
		fmt.Fprintln(&b, j.ID, amounts(j.Usage.Allocated), amounts(j.Usage.Elastic), j.Ready(), amounts(j.Queue.Subtree.Allocated))
	}
	return b.String()
}
