package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
)

// fill returns a model of some objects, as package cache fills it.
func fill(objects ...runtime.Object) *cache.Cache {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	show(c, objects...)
	return c
}

func show(c *cache.Cache, objects ...runtime.Object) {
	for _, o := range objects {
		c.Apply(cache.Set{Object: o})
	}
	c.Settle()
}

// contested are a node that a running pod fills, an empty one, and a gang of two that waits. Both jobs are in a queue
// below another. A budget allows one eviction of the running pod.
func contested() []runtime.Object {
	return slices.Concat([]runtime.Object{fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=2"),
		fixture.Queue("team"), fixture.Queue("part", fixture.Below("team")), fixture.Budget("b", "old", 1),
		fixture.Group("old", "part", 1), fixture.Pod("v", fixture.In("old"), fixture.On("n1"), fixture.Asks("cpu=2"), fixture.Labelled("app", "old"))},
		fixture.Gang("new", "part", 2, 2))
}

func ExampleCluster_Undo() {
	c := fill(fixture.Node("n1", "cpu=4"), fixture.Queue("default"), fixture.Group("gang", "default", 1), fixture.Pod("pod", fixture.In("gang")))
	node, task := c.Node("n1"), c.Task(fixture.Key("pod"))
	tell := func(when string) {
		fmt.Printf("%s: pod %s, node uses %d mCPU, queue %d\n", when, task.Status, node.Used.At(resources.CPU), c.Queue("default").Own.Allocated.At(resources.CPU))
	}

	tell("at first")
	mark := c.Mark()
	c.Place(task, node)
	tell("placed")
	c.Undo(mark) // it was only a trial
	tell("undone")
	// Output:
	// at first: pod Pending, node uses 0 mCPU, queue 0
	// placed: pod Allocated, node uses 1000 mCPU, queue 1000
	// undone: pod Pending, node uses 0 mCPU, queue 0
}

// totals are all amounts that the model keeps, and where each task is.
func totals(c *model.Cluster) map[string]string {
	all := map[string]string{}
	add := func(what string, v resources.Vector) { all[what] = amounts(v) }
	ofNodes := func(what string, t *cluster.Totals) {
		add(what+" has", t.Total)
		add(what+" uses", t.Used)
		add(what+" frees", t.Releasing)
		add(what+" promises", t.Promised)
		add(what+" has idle", t.Idle)
	}
	ofUsage := func(what string, u *cluster.Usage) {
		add(what+" holds", u.Allocated)
		add(what+" asks", u.Request)
		add(what+" claims", u.Inqueue)
		add(what+" may hold more", u.Unsettled)
		add(what+" leaves", u.Leaving)
	}
	ofNodes("cluster", &c.Totals)
	ofNodes("tainted", &c.Tainted)
	ofNodes("unusable", &c.Unusable)
	for _, n := range c.Nodes() {
		ofNodes(n.Name, &cluster.Totals{Total: n.Allocatable, Used: n.Used, Releasing: n.Releasing, Promised: n.Promised})
		all[n.Name+" counts in scores"] = fmt.Sprint(n.NonZero)
	}
	for _, j := range c.Jobs() {
		ofUsage(j.Name(), &j.Usage)
		for status := range gang.NumStatuses {
			all[fmt.Sprintf("%s counts as %s", j.Name(), status)] = fmt.Sprint(j.Count(status))
		}
		all[j.Name()+" is"] = string(j.Phase)
	}
	for _, q := range c.Queues() {
		ofUsage(q.Name, &q.Own)
		ofUsage(q.Name+" with all below", &q.Subtree)
	}
	for _, b := range c.BudgetsIn(fixture.Namespace) {
		all["budget "+b.Name+" leaves"] = fmt.Sprint(b.Left())
	}
	c.EachTask(func(t *cluster.Task) { all["task "+t.Key().Name] = fmt.Sprint(t.Status, " on ", t.NodeName()) })
	return all
}

// amounts prints a vector. One that is shorter has zeros.
func amounts(v resources.Vector) string {
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	return fmt.Sprint([]int64(v))
}

// sums are some of these totals, worked out from the tasks alone.
func sums(c *model.Cluster) map[string]string {
	all := map[string]resources.Vector{}
	add := func(what string, t *cluster.Task) {
		v := all[what].Clone()
		v.Add(t.Request())
		all[what] = v
	}
	c.EachTask(func(t *cluster.Task) {
		if t.Node != nil && t.Status.Holds() {
			add(t.Node.Name+" uses", t)
			add("cluster uses", t)
			if t.Status.Leaves() {
				add(t.Node.Name+" frees", t)
				add("cluster frees", t)
			}
		}
		if t.Node != nil && t.Status == cluster.Pipelined {
			add(t.Node.Name+" promises", t)
			add("cluster promises", t)
		}
		whose := []string{t.Job.Name(), t.Job.QueueName}
		for n := &t.Job.Queue.Node; n != nil; n = n.Above() {
			whose = append(whose, n.Name+" with all below")
		}
		for _, who := range whose {
			if t.Status.Counts() {
				add(who+" holds", t)
			}
			if t.Status.Asks() {
				add(who+" asks", t)
			}
		}
	})
	said := map[string]string{}
	for what, v := range all {
		said[what] = amounts(v)
	}
	return said
}

// expectSums fails a test if a total is not the sum of its tasks.
func expectSums(t *rapid.T, c *model.Cluster) {
	t.Helper()
	fresh := sums(c)
	for what, have := range totals(c) {
		for _, ending := range []string{" uses", " frees", " promises", " holds", " asks"} {
			if before, is := strings.CutSuffix(what, ending); is && before != "tainted" && before != "unusable" {
				want, there := fresh[what]
				if !there {
					want = "[]"
				}
				if have != want {
					t.Fatalf("%s %s, and its tasks sum up to %s", what, have, want)
				}
			}
		}
	}
}

// operations are all that an action may do, each with the tasks that it may be done to.
func operations(t *rapid.T, c *cache.Cache, of *cluster.Podset) map[string]func(*cluster.Task) {
	node := func() *cluster.Node { return rapid.SampledFrom(c.Nodes()).Draw(t, "node") }
	in := func(statuses ...cluster.Status) func(*cluster.Task) bool {
		return func(task *cluster.Task) bool { return slices.Contains(statuses, task.Status) }
	}
	standIns := 0
	all := map[string]func(*cluster.Task){}
	add := func(name string, may func(*cluster.Task) bool, do func(*cluster.Task)) {
		all[name] = func(task *cluster.Task) {
			if may(task) {
				do(task)
			}
		}
	}
	add("place", in(cluster.Pending), func(task *cluster.Task) { c.Place(task, node()) })
	add("pipeline", in(cluster.Pending), func(task *cluster.Task) { c.Pipeline(task, node()) })
	add("claim", in(cluster.Pending), c.Claim)
	add("unpipeline", in(cluster.Pipelined), c.Unpipeline)
	add("evict", in(cluster.Bound, cluster.Running, cluster.Awaited), c.Evict)
	add("spare", in(cluster.Evicting), c.Spare)
	add("commit", in(cluster.Allocated), c.Commit)
	add("finish", in(cluster.Bound, cluster.Running, cluster.Binding), func(task *cluster.Task) { c.Finish(task.Job, task) })
	add("admit", func(task *cluster.Task) bool { return task.Job.IsPendingAdmission() }, func(task *cluster.Task) { c.Admit(task.Job) })
	add("stand in", func(*cluster.Task) bool { return true }, func(task *cluster.Task) { c.AddStandIn(task.Job, of, standIns); standIns++ })
	add("drop", func(task *cluster.Task) bool { return task.IsStandIn }, c.DropStandIn)
	return all
}

func TestUndoingAnyOperationsLeavesAllTotalsAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := fill(append(contested(), fixture.Group("later", "team", 1, fixture.PendingAdmission, fixture.Wanting("cpu=3")), fixture.Pod("l", fixture.In("later")))...)
		all := operations(t, c, &cluster.Podset{Name: "worker", Count: 9, Template: pods.New(fixture.Pod("form"))})
		names := slices.Sorted(maps.Keys(all))
		some := func() {
			for range rapid.IntRange(0, 8).Draw(t, "operations") {
				var tasks []*cluster.Task
				c.EachTask(func(task *cluster.Task) { tasks = append(tasks, task) })
				slices.SortFunc(tasks, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
				all[rapid.SampledFrom(names).Draw(t, "operation")](rapid.SampledFrom(tasks).Draw(t, "task"))
				expectSums(t, c.Cluster)
			}
		}
		atFirst := totals(c.Cluster)
		some()
		mark, between := c.Mark(), totals(c.Cluster)
		some()
		c.Undo(mark)
		if diff := cmp.Diff(between, totals(c.Cluster)); diff != "" {
			t.Fatalf("undone to a mark in between (-before +after):\n%s", diff)
		}
		c.Undo(0)
		if diff := cmp.Diff(atFirst, totals(c.Cluster)); diff != "" {
			t.Fatalf("undone to the begin (-before +after):\n%s", diff)
		}
	})
}

func TestAPlacedTaskStaysUntilAnEventSaysOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		event   cache.Event // nil if nothing happens
		want    cluster.Status
		isThere bool // still on its node
	}{
		"only time passes":      {nil, cluster.Binding, true},
		"its pod is bound":      {cache.Set{Object: fixture.Pod("new-0", fixture.In("new"), fixture.As("worker", 0), bound("n2"))}, cluster.Bound, true},
		"its pod is relabelled": {cache.Set{Object: fixture.Pod("new-0", fixture.In("new"), fixture.As("worker", 0), fixture.Labelled("a", "b"))}, cluster.Binding, true},
		"its pod has failed":    {cache.Set{Object: fixture.Pod("new-0", fixture.In("new"), fixture.As("worker", 0), failed)}, cluster.Failed, false},
		"its binding failed":    {cache.BindFailed{Pod: fixture.Key("new-0"), UID: "new-0-uid", At: fixture.Birth, Reason: "no"}, cluster.Pending, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := fill(contested()...)
			task, node := c.Task(fixture.Key("new-0")), c.Node("n2")
			c.Place(task, node)
			c.Commit(task)
			c.Keep()
			if test.event != nil {
				c.Apply(test.event)
			}
			c.Settle()
			c.Expire(fixture.Birth.AddDate(1, 0, 0))
			used := int64(0)
			if test.isThere {
				used = 1000
			}
			if have := node.Used.At(resources.CPU); task.Status != test.want || have != used || (task.Node == node) != test.isThere {
				t.Errorf("the task is %s on %q, and its node uses %d mCPU; want %s, %d mCPU", task.Status, task.NodeName(), have, test.want, used)
			}
		})
	}
}

func bound(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func failed(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }

// planned returns a model in which a plan gives one pod of the gang the room of the running pod.
func planned() (c *cache.Cache, p *cluster.Plan) {
	c = fill(contested()...)
	promised, victim := c.Task(fixture.Key("new-0")), c.Task(fixture.Key("v"))
	c.Pipeline(promised, victim.Node)
	c.Evict(victim)
	c.Keep()
	p = &cluster.Plan{ID: "1", Job: promised.Job, Victims: []*cluster.Task{victim}, Evictions: 1, Since: fixture.Birth, Deadline: fixture.Birth.Add(time.Hour)}
	c.Plans().Adopt(p)
	return c, p
}

func TestWhatAPlanPromisesAndTakesCountsAsIfItWereDone(t *testing.T) {
	c, p := planned()
	node, victim := c.Node("n1"), p.Victims[0]
	counts := func() [4]int64 {
		return [4]int64{node.Used.At(resources.CPU), node.Promised.At(resources.CPU), victim.Job.Usage.Allocated.At(resources.CPU), p.Job.Usage.Allocated.At(resources.CPU)}
	}
	if have, want := counts(), [4]int64{2000, 1000, 0, 1000}; have != want {
		t.Errorf("used, promised, held by the victim's job and by the preemptor's are %d, want %d", have, want)
	}
	c.Expire(fixture.Birth.Add(time.Minute))
	if task := c.Task(fixture.Key("new-0")); task.Status != cluster.Pipelined || victim.Status != cluster.Evicting {
		t.Errorf("before the deadline the task is %s, and the victim %s", task.Status, victim.Status)
	}
	c.Plans().Cancel(p, "a test says so")
	if task := c.Task(fixture.Key("new-0")); task.Status != cluster.Pending || victim.Status != cluster.Running {
		t.Errorf("after its end the task is %s, and the victim %s", task.Status, victim.Status)
	}
	if have, want := counts(), [4]int64{2000, 0, 2000, 0}; have != want {
		t.Errorf("after its end they are %d, want %d", have, want)
	}
}

func TestAnEvictionCountsInItsBudgetUntilTheAPIShowsIt(t *testing.T) {
	c, p := planned()
	left := func() int { return c.BudgetsIn(fixture.Namespace)[0].Left() }
	if left() != 0 {
		t.Errorf("with the eviction decided the budget leaves %d", left())
	}
	victim := fixture.Pod("v", fixture.In("old"), fixture.On("n1"), fixture.Asks("cpu=2"), fixture.Labelled("app", "old"))
	victim.DeletionTimestamp = &victim.CreationTimestamp
	show(c, victim)
	if left() != 1 {
		t.Errorf("with the eviction in the API the budget leaves %d, and its status will say the rest", left())
	}
	if p.Victims[0].Status != cluster.Releasing {
		t.Errorf("the victim is %s", p.Victims[0].Status)
	}
}

func TestACommittedStandInHoldsItsNodeLikeABoundPod(t *testing.T) {
	c := fill(contested()...)
	j, node := c.Task(fixture.Key("new-0")).Job, c.Node("n2")
	atFirst := totals(c.Cluster)
	standIn := c.AddStandIn(j, &cluster.Podset{Name: "worker", Count: 3, Template: pods.New(fixture.Pod("form"))}, 2)
	c.Place(standIn, node)
	c.Commit(standIn)
	c.Keep()
	if standIn.Status != cluster.Awaited || node.Used.At(resources.CPU) != 1000 || j.Usage.Allocated.At(resources.CPU) != 1000 || !node.Room(standIn.Request()) {
		t.Errorf("it is %s, its node uses %v, and its job holds %v", standIn.Status, node.Used, j.Usage.Allocated)
	}
	c.DropStandIn(standIn)
	c.Keep()
	if diff := cmp.Diff(atFirst, totals(c.Cluster)); diff != "" {
		t.Errorf("dropped (-before +after):\n%s", diff)
	}
}
