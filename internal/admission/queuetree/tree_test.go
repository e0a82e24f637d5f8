package queuetree_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/admission/queuetree"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// cpus are so many CPUs.
func cpus(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

// queue returns a queue below another, which changes alter.
func queue(name, parent string, changes ...func(*scheduling.QueueSpec)) *scheduling.Queue {
	q := &scheduling.Queue{}
	q.Name, q.Spec.Parent = name, parent
	for _, change := range changes {
		change(&q.Spec)
	}
	return q
}

func deserves(n string) func(*scheduling.QueueSpec) {
	return func(s *scheduling.QueueSpec) { s.Deserved = cpus(n) }
}

func isCapped(n string) func(*scheduling.QueueSpec) {
	return func(s *scheduling.QueueSpec) { s.Capability = cpus(n) }
}

// A webhook looks at the tree as it would be with the queue that a user writes.
func ExampleTree_With() {
	stored := queuetree.New([]*scheduling.Queue{queue("root", ""), queue("org", "root", deserves("8")), queue("team", "org", deserves("5"))})
	written := queue("other", "org", deserves("4"))
	tree := stored.With(written)
	fmt.Println("levels above", tree.LevelsAbove(written), "below root", tree.LevelsBelow("root"))
	for _, problem := range tree.Sums(written) {
		fmt.Println(problem.Field, problem.BadValue)
	}
	fmt.Println("stored are", len(stored.Sorted))
	// Output:
	// levels above 2 below root 2
	// spec.deserved[cpu] 4
	// stored are 3
}

func TestNoFunctionNeedsATreeThatIsOne(t *testing.T) {
	for name, queues := range map[string][]*scheduling.Queue{
		"a queue that is its own parent": {queue("a", "a", isCapped("1"), deserves("2"))},
		"a circle":                       {queue("a", "b", isCapped("1")), queue("b", "c", isCapped("2")), queue("c", "a", isCapped("3"))},
		"a parent that does not exist":   {queue("a", "none", isCapped("1"), deserves("2"))},
	} {
		tree := queuetree.New(append(queues, queue("root", "")))
		for _, q := range queues {
			if got := tree.LevelsAbove(q); got != queuetree.NoRoot {
				t.Errorf("%s: %s is %d levels below root", name, q.Name, got)
			}
			tree.Sums(q)
			weighty := q.DeepCopy()
			weighty.Spec.Weight = 2
			if got := tree.SharesWithoutEffect(weighty, nil); got != nil {
				t.Errorf("%s: %s has the warnings %q", name, q.Name, got)
			}
		}
	}
	missing := queuetree.New(nil)
	if got := missing.LevelsAbove(queue("a", "")); got != queuetree.NoRoot {
		t.Errorf("in a tree without it a queue is %d levels below root", got)
	}
}

// A queue without a parent is below root, also before root is stored.
func TestTheLevelsOfAQueueAreCountedUpToRoot(t *testing.T) {
	tree := queuetree.New([]*scheduling.Queue{queue("org", ""), queue("team", "org"), queue("one", "team")})
	for name, want := range map[string]int{"org": 1, "team": 2, "one": 3} {
		if got := tree.LevelsAbove(tree.ByName[name]); got != want {
			t.Errorf("%s is %d levels below root, want %d", name, got, want)
		}
	}
	if got := tree.LevelsBelow("org"); got != 2 {
		t.Errorf("there are %d levels below org", got)
	}
}

func TestSumsAreComparedWithTheNearestQueueThatHasABound(t *testing.T) {
	guarantees := func(n string) func(*scheduling.QueueSpec) {
		return func(s *scheduling.QueueSpec) { s.Guarantee.Resource = cpus(n) }
	}
	for name, c := range map[string]struct {
		others []*scheduling.Queue
		looked *scheduling.Queue
		want   string // the fields
	}{
		"what adds up": {[]*scheduling.Queue{queue("org", "", deserves("8")), queue("a", "org", deserves("4"))},
			queue("b", "org", deserves("4")), ""},
		"siblings that ask for too much, and it for nothing": {[]*scheduling.Queue{queue("org", "", deserves("8")), queue("a", "org", deserves("9"))},
			queue("b", "org"), ""},
		"a capability above that of its grandparent": {[]*scheduling.Queue{queue("org", "", isCapped("4")), queue("a", "org")},
			queue("b", "a", isCapped("5")), "spec.capability[cpu]"},
		"a capability below that of its grandchild": {[]*scheduling.Queue{queue("a", "org"), queue("b", "a", isCapped("5"))},
			queue("org", "", isCapped("4")), "spec.capability[cpu]"},
		"guarantees above the capability, for want of one": {[]*scheduling.Queue{queue("a", "org", guarantees("3")), queue("b", "org", guarantees("3"))},
			queue("org", "", isCapped("4")), "spec.guarantee.resource[cpu]"},
		"more than root has, which bounds nothing": {[]*scheduling.Queue{queue("root", "", isCapped("1"), deserves("1"))},
			queue("a", "root", isCapped("9"), deserves("9")), ""},
	} {
		tree := queuetree.New(c.others).With(c.looked)
		var fields []string
		for _, problem := range tree.Sums(c.looked) {
			fields = append(fields, problem.Field)
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%s: the problems are of %q, want %q", name, got, c.want)
		}
	}
}

func TestTheOrderOfQueuesDoesNotMatterAndNoneIsChanged(t *testing.T) {
	queues := []*scheduling.Queue{queue("org", "", isCapped("2"), deserves("4")), queue("a", "org", isCapped("3"), deserves("4"), func(s *scheduling.QueueSpec) {
		s.Capability[corev1.ResourceMemory], s.Deserved[corev1.ResourceMemory] = resource.MustParse("1"), resource.MustParse("1")
	}), queue("b", "org", isCapped("4"), deserves("5")), queue("c", "a", isCapped("9"))}
	var before []*scheduling.Queue
	for _, q := range queues {
		before = append(before, q.DeepCopy())
	}
	words := func() (all []string) {
		tree := queuetree.New(queues)
		for _, q := range tree.Sorted {
			all = append(all, tree.Sums(q).ToAggregate().Error())
		}
		return all
	}
	first := words()
	for range queues {
		queues = append(queues[1:], queues[0])
		if again := words(); !slices.Equal(again, first) {
			t.Errorf("the words are %q,\nand in another order %q", first, again)
		}
	}
	if !apiequality.Semantic.DeepEqual(queues, before) {
		t.Errorf("the queues are %v", queues)
	}
}
