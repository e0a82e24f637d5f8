package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
)

// cpus is a vector of so many CPUs.
func cpus(count int64) resources.Vector {
	var v resources.Vector
	v.Set(resources.CPU, 1000*count)
	return v
}

func ExampleNode_Room() {
	// Of four CPUs a victim holds two, which are promised to a preemptor, together with one that is free already.
	n := &cluster.Node{Name: "n1", Allocatable: cpus(4), Used: cpus(2), Releasing: cpus(2), Promised: cpus(3)}
	fmt.Println("now:", n.Free(resources.CPU), "in the end:", n.Future(resources.CPU))
	fmt.Println("room for one:", n.Room(cpus(1)), "for two:", n.Room(cpus(2)))
	// Output:
	// now: 1000 in the end: 1000
	// room for one: true for two: false
}

func TestWhatIsPromisedIsFreeForNoOtherTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, 9)
		have, stays, leaves, promised, asks := amount.Draw(t, "allocatable"), amount.Draw(t, "used"), amount.Draw(t, "releasing"), amount.Draw(t, "promised"),
			rapid.Int64Range(1, 9).Draw(t, "asks")
		n := &cluster.Node{Allocatable: cpus(have), Used: cpus(stays + leaves), Releasing: cpus(leaves), Promised: cpus(promised)}
		// It fits beside all that hold something now, and in the end beside those who stay and those who were promised.
		want := asks+stays+leaves <= have && asks+stays+promised <= have
		if n.Room(cpus(asks)) != want || (n.Free(resources.CPU) >= 1000*asks) != want {
			t.Fatalf("room for %d: %t, want %t; free are %d", asks, n.Room(cpus(asks)), want, n.Free(resources.CPU))
		}
		if idle := n.Idle(resources.CPU); idle != 1000*max(have-stays-promised, 0) {
			t.Fatalf("in the end %d are idle", idle)
		}
	})
}

// expectTotal fails a test if an order of different things is not total.
func expectTotal[T any](t *rapid.T, all []T, compare func(a, b T) int) {
	t.Helper()
	for i, a := range all {
		for k, b := range all {
			if (compare(a, b) == 0) != (i == k) || compare(a, b)*compare(b, a) > 0 {
				t.Fatalf("%d and %d compare as %d, and the other way as %d", i, k, compare(a, b), compare(b, a))
			}
			for l, c := range all {
				if compare(a, b) < 0 && compare(b, c) < 0 && compare(a, c) >= 0 {
					t.Fatalf("%d comes before %d, that before %d, and the first not before the last", i, k, l)
				}
			}
		}
	}
}

func TestOrdersEndInANameOrAUID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		created := func() metav1.Time {
			return metav1.NewTime(fixture.Birth.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second))
		}
		var tasks []*cluster.Task
		var jobs []*cluster.Job
		var queues []*cluster.Queue
		var names []types.NamespacedName
		for i := range 6 {
			pod := fixture.Pod(fmt.Sprint(i))
			pod.CreationTimestamp = created()
			tasks = append(tasks, &cluster.Task{Pod: pods.New(pod), Index: rapid.IntRange(-1, 1).Draw(t, "index")})
			j := &cluster.Job{ID: cluster.GroupID(fixture.Key(fmt.Sprint(i)))}
			if rapid.Bool().Draw(t, "has a PodGroup") {
				j.Group = fixture.Group(fmt.Sprint(i), "q", 1)
				j.Group.CreationTimestamp = created()
			}
			jobs = append(jobs, j)
			queues = append(queues, &cluster.Queue{Node: quota.Node{Name: fmt.Sprint(i), Created: created().Time}})
			names = append(names, types.NamespacedName{Namespace: fmt.Sprint(i % 2), Name: fmt.Sprint(i / 2)})
		}
		expectTotal(t, tasks, cluster.CompareTasks)
		expectTotal(t, jobs, cluster.CompareJobs)
		expectTotal(t, queues, cluster.CompareQueues)
		expectTotal(t, names, cluster.CompareNames)
	})
}

func TestAStandInDoesNotChangeTheFormOfItsPod(t *testing.T) {
	template := "devices"
	pod := fixture.Pod("form", fixture.As("other", 7), fixture.Labelled("a", "b"))
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	form, same := pods.New(pod.DeepCopy()), pods.New(pod.DeepCopy())
	j := &cluster.Job{ID: cluster.GroupID(fixture.Key("gang")), Group: fixture.Group("gang", "q", 1)}
	of := &cluster.Podset{Name: "worker", Count: 2, Template: form}
	first, second := cluster.NewStandIn(j, of, 0), cluster.NewStandIn(j, of, 1)
	if diff := cmp.Diff(same.Object(), form.Object()); diff != "" {
		t.Errorf("the form (-before +after):\n%s", diff)
	}
	if first.Key() == second.Key() || first.UID() == second.UID() || first.Role != "worker" || second.Index != 1 || first.Status != cluster.Pending {
		t.Errorf("the stand-ins are %+v and %+v", first, second)
	}
	if again := cluster.NewStandIn(j, of, 0); again.Key() != first.Key() || again.UID() != first.UID() {
		t.Errorf("made again it is %s, and was %s", again.Key(), first.Key())
	}
}

func TestDomainsAreSetsOfNodes(t *testing.T) {
	all := make([]*cluster.Node, 150)
	for i := range all {
		all[i] = &cluster.Node{Name: fmt.Sprintf("n%03d", (i*37)%150), Slot: i}
	}
	rapid.Check(t, func(t *rapid.T) {
		some := func() ([]*cluster.Node, *cluster.Domain) {
			nodes := rapid.SliceOfN(rapid.SampledFrom(all), 0, 6).Draw(t, "nodes")
			return nodes, cluster.NewDomain(nodes)
		}
		ofA, a := some()
		ofB, b := some()
		if rapid.Bool().Draw(t, "one is within the other") {
			b = cluster.NewDomain(append(ofB, ofA...))
			ofB = b.Nodes()
		}
		both, within := a.Intersect(b), true
		for _, n := range all {
			inA, inB := slices.Contains(ofA, n), slices.Contains(ofB, n)
			if a.Holds(n) != inA || both.Holds(n) != (inA && inB) || slices.Contains(both.Nodes(), n) != (inA && inB) {
				t.Fatalf("%s is in the first: %t, in both: %t; want %t, %t", n.Name, a.Holds(n), both.Holds(n), inA, inA && inB)
			}
			within = within && (!inA || inB)
		}
		if a.IsWithin(b) != within || within && both != a {
			t.Fatalf("the first is within the second: %t, want %t; both are the first: %t", a.IsWithin(b), within, both == a)
		}
		if !slices.IsSortedFunc(both.Nodes(), func(n, m *cluster.Node) int { return strings.Compare(n.Name, m.Name) }) {
			t.Fatal("the nodes are not in the order of their names")
		}
		if every := (*cluster.Domain)(nil); every.Intersect(a) != a || a.Intersect(every) != a || !a.IsWithin(every) || every.IsWithin(a) {
			t.Fatal("nil is not the set of all nodes")
		}
	})
}

func TestTheLeastRequestIsThatOfTheSmallestOfEachResource(t *testing.T) {
	class := func(cpu, memory int64) *cluster.Class {
		v := cpus(cpu)
		v.Set(resources.Memory, memory)
		return &cluster.Class{Request: v}
	}
	large, wide := class(3, 1), class(1, 5)
	tasks := []*cluster.Task{{Class: large}, {Class: wide}, {Class: large}}
	for count, want := range [][2]int64{{0, 0}, {1000, 1}, {4000, 2}, {7000, 7}, {7000, 7}} {
		least := cluster.LeastRequest(tasks, count)
		if have := [2]int64{least.At(resources.CPU), least.At(resources.Memory)}; have != want {
			t.Errorf("%d of them request at least %v, want %v", count, have, want)
		}
	}
	if least := cluster.LeastRequest(tasks[:1], 1); least.At(resources.CPU) != 3000 || tasks[0].Request().At(resources.CPU) != 3000 {
		t.Errorf("one alone requests %v", least)
	}
}

func TestAJobOfAWorkloadCountsInOneQueueAtATime(t *testing.T) {
	root, a, b := &cluster.Queue{Node: quota.Node{Name: "root"}}, &cluster.Queue{Node: quota.Node{Name: "a"}}, &cluster.Queue{Node: quota.Node{Name: "b"}}
	var tree quota.Tree
	tree.Grow(&root.Node, []*quota.Node{&root.Node, &a.Node, &b.Node}, func(n *quota.Node) *quota.Node {
		if n == &root.Node {
			return nil
		}
		return &root.Node
	})
	j := &cluster.Job{ID: cluster.WorkloadID("team", "w")}
	j.Usage.Allocated = cpus(2)
	for _, step := range []struct {
		name       string
		queue      *cluster.Queue
		a, b, root int64
	}{{"a", a, 2000, 0, 2000}, {"a", a, 2000, 0, 2000}, {"b", b, 0, 2000, 2000}, {"none", nil, 0, 0, 0}} {
		cluster.SetBelow(&tree, j, step.name, step.queue)
		have := [3]int64{a.Own.Allocated.At(resources.CPU), b.Own.Allocated.At(resources.CPU), root.Subtree.Allocated.At(resources.CPU)}
		if want := [3]int64{step.a, step.b, step.root}; have != want {
			t.Errorf("below %s: a, b and the root have %v, want %v", step.name, have, want)
		}
		if account := j.AccountOf(); (account == nil) != (step.queue == nil) || account != nil && account.Name != step.name {
			t.Errorf("below %s: it counts in %v", step.name, account)
		}
	}
}
