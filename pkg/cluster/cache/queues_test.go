package cache

import (
	"testing"

	"hekla.sh/hekla/pkg/verdict"

	"github.com/google/go-cmp/cmp"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// holding are queues, of which q, r and s hold a gang of one, two and three pods of one CPU.
func holding(queues ...*schedulingv1beta1.Queue) *Cache {
	c := newCluster()
	for _, q := range queues {
		c.Apply(Set{q})
	}
	for i, name := range []string{"q", "r", "s"} {
		c.Apply(Set{group("in-"+name, name)})
		for n := range i + 1 {
			c.Apply(Set{pod(name+string(rune('a'+n)), in("in-"+name), on("n"))})
		}
	}
	c.Settle()
	return c
}

// cpus lists what is allocated to the subtree of each queue that has anything, in cores.
func cpus(c *Cache) map[string]int64 {
	all := map[string]int64{}
	for _, q := range c.Queues() {
		if value := q.Subtree.Allocated.At(0); value > 0 {
			all[q.Name] = value / 1000
		}
	}
	return all
}

func problems(c *Cache) map[string]string {
	all := map[string]string{}
	for _, q := range c.Queues() {
		if q.Problem != "" {
			all[q.Name] = q.Problem
		}
	}
	return all
}

func TestTheQueueTree(t *testing.T) {
	type words = map[string]string
	type cores = map[string]int64
	for name, test := range map[string]struct {
		queues   []*schedulingv1beta1.Queue
		events   []Event
		cpus     cores
		problems words
	}{
		"is flat unless told otherwise": {
			[]*schedulingv1beta1.Queue{queue("q", ""), queue("r", "root"), queue("s", "")}, nil,
			cores{"q": 1, "r": 2, "s": 3, "root": 6}, words{}},
		"adds up from below": {
			[]*schedulingv1beta1.Queue{queue("q", "r"), queue("r", "s"), queue("s", "")}, nil,
			cores{"q": 1, "r": 3, "s": 6, "root": 6}, words{}},
		"has a root whether it has an object or not": {
			[]*schedulingv1beta1.Queue{queue("root", "q"), queue("q", "")}, nil,
			cores{"q": 1, "root": 1}, words{}},
		"does without a queue of a missing parent, and those below": {
			[]*schedulingv1beta1.Queue{queue("q", "gone"), queue("r", "q"), queue("s", "")}, nil,
			cores{"q": 1, "r": 2, "s": 3, "root": 3},
			words{"q": `its parent "gone" does not exist`, "r": `queue q above it: its parent "gone" does not exist`}},
		"does without a queue that is its own parent": {
			[]*schedulingv1beta1.Queue{queue("q", "q"), queue("s", "")}, nil,
			cores{"q": 1, "s": 3, "root": 3}, words{"q": "it is below itself: its parents form a cycle"}},
		"does without a circle, and what hangs on it": {
			[]*schedulingv1beta1.Queue{queue("q", "r"), queue("r", "q"), queue("a", "q"), queue("s", "")}, nil,
			cores{"q": 1, "r": 2, "s": 3, "root": 3}, words{
				"a": "queue q above it: it is below itself: its parents form a cycle",
				"q": "it is below itself: its parents form a cycle",
				"r": "it is below itself: its parents form a cycle"}},
		"does without a large circle, and what hangs on it": {
			[]*schedulingv1beta1.Queue{queue("q", "r"), queue("r", "s"), queue("s", "t"), queue("t", "u"), queue("u", "q"), queue("a", "u")}, nil,
			cores{"q": 1, "r": 2, "s": 3}, words{
				"a": "queue u above it: it is below itself: its parents form a cycle",
				"q": "it is below itself: its parents form a cycle", "r": "it is below itself: its parents form a cycle",
				"s": "it is below itself: its parents form a cycle", "t": "it is below itself: its parents form a cycle",
				"u": "it is below itself: its parents form a cycle"}},
		"moves a queue with all below it": {
			[]*schedulingv1beta1.Queue{queue("q", "r"), queue("r", ""), queue("s", "")}, []Event{Set{queue("r", "s")}},
			cores{"q": 1, "r": 3, "s": 6, "root": 6}, words{}},
		"takes in a queue whose parent is late": {
			[]*schedulingv1beta1.Queue{queue("q", "r")}, []Event{Set{queue("r", "")}},
			cores{"q": 1, "r": 3, "root": 3}, words{}},
		"lets go of what is below a queue that is gone": {
			[]*schedulingv1beta1.Queue{queue("q", "r"), queue("r", ""), queue("s", "")}, []Event{Delete{queue("r", "")}},
			cores{"q": 1, "s": 3, "root": 3}, words{"q": `its parent "r" does not exist`}},
		"opens a circle": {
			[]*schedulingv1beta1.Queue{queue("q", "r"), queue("r", "q")}, []Event{Set{queue("r", "")}},
			cores{"q": 1, "r": 3, "root": 3}, words{}},
		"keeps its root when the object is deleted": {
			[]*schedulingv1beta1.Queue{queue("q", "root"), queue("root", "")}, []Event{Delete{queue("root", "")}},
			cores{"q": 1, "root": 1}, words{}},
		"keeps a queue that was made again": {
			[]*schedulingv1beta1.Queue{queue("q", ""), queue("r", "q")},
			[]Event{Delete{queue("q", "")}, Set{queue("q", "", func(q *schedulingv1beta1.Queue) { q.UID = "later" })}},
			cores{"q": 3, "r": 2, "root": 3}, words{}},
		"keeps a queue made again if the first deletion comes late": {
			[]*schedulingv1beta1.Queue{queue("q", ""), queue("r", "q")},
			[]Event{Set{queue("q", "", func(q *schedulingv1beta1.Queue) { q.UID = "later" })}, Delete{queue("q", "")}},
			cores{"q": 3, "r": 2, "root": 3}, words{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := holding(test.queues...)
			c.Apply(test.events...)
			sound(t, c)
			c.Settle()
			sound(t, c)
			if diff := cmp.Diff(test.cpus, cpus(c)); diff != "" {
				t.Errorf("allocated (-want +have):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, problems(c)); diff != "" {
				t.Errorf("problems (-want +have):\n%s", diff)
			}
		})
	}
}

func TestTotalsFollowEveryChangeUpTheTree(t *testing.T) {
	c := holding(queue("q", "r"), queue("r", "s"), queue("s", ""))
	c.Apply(Delete{pod("qa")}, Set{pod("ra", in("in-r"), on("n"), asks("cpu=5"))}, Set{pod("new", in("in-q"), on("n"), asks("cpu=2"))})
	if diff := cmp.Diff(map[string]int64{"q": 2, "r": 8, "s": 11, "root": 11}, cpus(c)); diff != "" {
		t.Errorf("allocated (-want +have):\n%s", diff)
	}
	sound(t, c)
}

func TestTheTreeShowsParentsChildrenAndDepth(t *testing.T) {
	c := newCluster(Set{queue("c", "a")}, Set{queue("b", "a")}, Set{queue("a", "")}, Set{queue("lost", "gone")})
	a := c.Queue("a")
	if len(a.Children) != 2 || a.Children[0].Name != "b" || a.Children[1].Name != "c" || a.Parent != c.Root() {
		t.Errorf("a has the children %v and the parent %v", a.Children, a.Parent)
	}
	for name, depth := range map[string]int{"a": 1, "b": 2, "c": 2} {
		if have := c.Queue(name).Depth; have != depth {
			t.Errorf("queue %s has depth %d, want %d", name, have, depth)
		}
	}
	if lost := c.Queue("lost"); lost.Parent != nil || len(c.Root().Children) != 1 {
		t.Error("a queue without a place has one")
	}
	c.Apply(Set{queue("a", "gone")})
	c.Settle()
	if c.Queue("b").Parent != nil || len(c.Root().Children) != 0 {
		t.Error("a queue that lost its place still has one")
	}
}

func TestAQueueReadsItsObject(t *testing.T) {
	no := false
	c := newCluster(Set{queue("plain", "")}, Set{queue("full", "", func(q *schedulingv1beta1.Queue) {
		q.Spec.Weight, q.Spec.Priority, q.Spec.Reclaimable = 5, 7, &no
		q.Spec.Capability, q.Spec.Deserved = list("cpu=4 memory=0"), list("cpu=2")
		q.Spec.Guarantee.Resource = list("cpu=1")
	})})
	plain, full := c.Queue("plain"), c.Queue("full")
	if plain.Weight != 1 || plain.Priority != 0 || !plain.Reclaimable || !plain.Capability.IsEmpty() || !plain.Deserved.IsEmpty() {
		t.Errorf("a queue that says nothing is %+v", plain)
	}
	if full.Weight != 5 || full.Priority != 7 || full.Reclaimable {
		t.Errorf("the queue is %+v", full)
	}
	amounts(t, c, "the guarantee", full.Guarantee.Vector(), "cpu=1")
	amounts(t, c, "what it deserves", full.Deserved.Vector(), "cpu=2")
	if diff := cmp.Diff(list("cpu=4 memory=0"), c.Resources.LimitList(full.Capability)); diff != "" {
		t.Errorf("the capability (-want +have):\n%s", diff)
	}
}

func TestTheRootForgetsWhatItsObjectSaid(t *testing.T) {
	want := meaning(newCluster())
	rootWithLimits := queue("root", "", func(q *schedulingv1beta1.Queue) {
		q.Spec.Weight, q.Spec.Priority = 5, 7
		q.Spec.Capability, q.Spec.Deserved, q.Spec.Guarantee.Resource = list("cpu=1"), list("cpu=1"), list("cpu=1")
	})
	c := newCluster(Set{rootWithLimits})
	if c.Queue("root") == nil || c.Root().Capability.IsEmpty() {
		t.Fatal("the root does not have its object")
	}
	c.Apply(Delete{rootWithLimits})
	c.Settle()
	if diff := cmp.Diff(want, meaning(c)); diff != "" {
		t.Errorf("the model of an empty cluster (-want +have):\n%s", diff)
	}
	if c.Queue("root") != nil {
		t.Error("the root has an object")
	}
}

func TestAQueueIsOpenUnlessItsStateSaysOtherwise(t *testing.T) {
	for state, want := range map[schedulingv1beta1.QueueState]bool{"": true, schedulingv1beta1.QueueStateOpen: true,
		schedulingv1beta1.QueueStateClosed: false, schedulingv1beta1.QueueStateClosing: false, "Unknown": false} {
		c := newCluster(Set{queue("q", "", func(q *schedulingv1beta1.Queue) { q.Status.State = state })})
		if have := c.Queue("q").Open(); have != want {
			t.Errorf("a queue in state %q is open: %t", state, have)
		}
	}
	if !newCluster().Root().Open() {
		t.Error("a root without object is closed")
	}
}

func TestAnUpdateOfAQueueThatDecidesNothingWakesNoJob(t *testing.T) {
	first := func(changes ...func(*schedulingv1beta1.Queue)) *schedulingv1beta1.Queue {
		return queue("q", "", append([]func(*schedulingv1beta1.Queue){func(q *schedulingv1beta1.Queue) { q.Generation = 1 }}, changes...)...)
	}
	for name, test := range map[string]struct {
		next    *schedulingv1beta1.Queue
		matters bool
	}{
		"its counts":              {first(func(q *schedulingv1beta1.Queue) { q.Status.Running = 3 }), false},
		"its state":               {first(func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed }), true},
		"its spec":                {first(func(q *schedulingv1beta1.Queue) { q.Generation = 2 }), true},
		"its place in hierarchy":  {first(func(q *schedulingv1beta1.Queue) { q.Annotations = map[string]string{"volcano.sh/hierarchy": "root/a"} }), true},
		"it was made again":       {first(func(q *schedulingv1beta1.Queue) { q.UID = "later" }), true},
		"it counts no generation": {queue("q", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{first()})
			before := countOf(counts(c), verdict.HelpQueue)
			c.Apply(Set{test.next})
			if (countOf(counts(c), verdict.HelpQueue) != before) != test.matters || c.Queue("q").Object != test.next {
				t.Errorf("the change is heard: %t, want %t", countOf(counts(c), verdict.HelpQueue) != before, test.matters)
			}
		})
	}
}
