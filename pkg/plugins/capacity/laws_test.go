package capacity

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// drawTree is a few queues in a tree, with capabilities, guarantees and shares as users might write them, and jobs.
func drawTree(t *rapid.T) []runtime.Object {
	objects := []runtime.Object{fixture.Node("n1", fmt.Sprintf("cpu=%d memory=100Gi", rapid.IntRange(0, 30).Draw(t, "cluster")))}
	var queues []string
	for i := range rapid.IntRange(1, 8).Draw(t, "queues") {
		name := fmt.Sprintf("q%d", i)
		options := []fixture.QueueOption{fixture.Ranking(rapid.Int32Range(0, 1).Draw(t, "priority"))}
		options = append(options, fixture.Below(rapid.SampledFrom(append([]string{"root"}, queues...)).Draw(t, "parent")))
		if rapid.Bool().Draw(t, "capped") {
			options = append(options, fixture.Capped(fmt.Sprintf("cpu=%d", rapid.IntRange(0, 9).Draw(t, "capability"))))
		}
		if rapid.Bool().Draw(t, "guaranteed") {
			options = append(options, fixture.Guaranteed(fmt.Sprintf("cpu=%d", rapid.IntRange(0, 3).Draw(t, "guarantee"))))
		}
		if rapid.Bool().Draw(t, "deserving") {
			options = append(options, fixture.Deserving(fmt.Sprintf("cpu=%d", rapid.IntRange(0, 4).Draw(t, "deserved"))))
		}
		objects = append(objects, fixture.Queue(name, options...))
		queues = append(queues, name)
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
		name := fmt.Sprintf("j%d", i)
		pods, cpu := rapid.IntRange(1, 3).Draw(t, "pods"), rapid.IntRange(1, 4).Draw(t, "cpu")
		objects = append(objects, fixture.Group(name, rapid.SampledFrom(queues).Draw(t, "queue"), int32(pods), fixture.PendingAdmission,
			fixture.Wanting(fmt.Sprintf("cpu=%d", pods*cpu))))
		for k := range pods {
			objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, k), fixture.In(name), fixture.Asks(fmt.Sprintf("cpu=%d", cpu))))
		}
	}
	return objects
}

func TestWhateverIsAcceptedNoQueueExceedsItsCeilingAtAnyLevel(t *testing.T) {
	for _, switches := range [][]conf.Switch{nil, {conf.EnableHierarchy}} {
		t.Run(fmt.Sprint(switches), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := harness.ForPlugin(t, Factory(), "", switches...).Set(drawTree(r))
				s := w.Open()
				x := s.Begin()
				for range rapid.IntRange(0, 40).Draw(r, "steps") {
					step(r, w, s, x)
					checkCeilings(r, w, len(switches) > 0)
				}
				x.Undo()
				w.Check()
			})
		})
	}
}

// step admits a job, places a pod, or tries one and undoes that.
func step(t *rapid.T, w *harness.Model, s *framework.Session, x framework.Transaction) {
	if len(s.Queues()) == 0 {
		return
	}
	j := rapid.SampledFrom(s.Jobs(rapid.SampledFrom(s.Queues()).Draw(t, "queue"))).Draw(t, "job")
	if j.IsPendingAdmission() {
		if x.Placed() == 0 && s.MayEnqueue(j) == nil {
			s.Admit(j)
		}
		return
	}
	tasks := s.Pending(j)
	if len(tasks) == 0 || s.MayAllocate(tasks[0]) != nil {
		return
	}
	if rapid.Bool().Draw(t, "for good") {
		x.Place(tasks[0], w.Node("n1"))
	} else {
		inner := s.Begin()
		inner.Place(tasks[0], w.Node("n1"))
		inner.Undo()
	}
}

// checkCeilings holds the totals against what users wrote: capability at every level, and what others are guaranteed if
// the cluster has that much.
func checkCeilings(t *rapid.T, w *harness.Model, tree bool) {
	total := w.Total.At(resources.CPU)
	var guarantees int64
	for _, q := range w.Queues() {
		guarantees += q.Guarantee.Amount(resources.CPU)
	}
	for _, q := range w.Queues() {
		usage := &q.Own
		if tree {
			usage = &q.Subtree
		}
		held := usage.Allocated.At(resources.CPU)
		booked := held + usage.Inqueue.At(resources.CPU)
		if limit := q.Capability.Value(resources.CPU); held > limit || booked > limit {
			t.Fatalf("queue %s holds %d and has booked %d, its capability is %d", q.Name, held, booked, limit)
		}
		for _, other := range w.Queues() {
			guarantee := other.Guarantee.Amount(resources.CPU)
			related := other == q || tree && other.Parent != q.Parent
			if !related && guarantees <= total && held > total-guarantee {
				t.Fatalf("queue %s holds %d, and queue %s is guaranteed %d of %d", q.Name, held, other.Name, guarantee, total)
			}
		}
	}
}

func TestTheOrderOfQueuesIsAStrictWeakOrder(t *testing.T) {
	for _, switches := range [][]conf.Switch{nil, {conf.EnableHierarchy}} {
		t.Run(fmt.Sprint(switches), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := harness.ForPlugin(t, Factory(), "", switches...).Set(drawTree(r))
				s := w.Open()
				x := s.Begin()
				for range rapid.IntRange(0, 20).Draw(r, "steps") {
					step(r, w, s, x)
				}
				p := &plugin{hierarchical: len(switches) > 0}
				p.OpenSession(s)
				checkOrder(r, w.Queues(), p.CompareQueues)
				x.Undo()
			})
		})
	}
}

func checkOrder(t *rapid.T, queues []*cluster.Queue, compare func(a, b *cluster.Queue) int) {
	for _, a := range queues {
		for _, b := range queues {
			if compare(a, b) != -compare(b, a) {
				t.Fatalf("%s and %s: %d one way, %d the other", a.Name, b.Name, compare(a, b), compare(b, a))
			}
			for _, c := range queues {
				if compare(a, b) <= 0 && compare(b, c) <= 0 && compare(a, c) > 0 {
					t.Fatalf("%s, %s and %s go round in a circle", a.Name, b.Name, c.Name)
				}
			}
		}
	}
}

// What one queue reclaims from another of equal priority within the rules, the other cannot reclaim back. Otherwise
// pods would be evicted for ever, each time by right.
func TestWhatWasTakenByRightCannotBeTakenBackByRight(t *testing.T) {
	taken := 0
	rapid.Check(t, func(r *rapid.T) {
		for range 50 { // few random worlds allow anything
			if takesBack(t, r) {
				taken++
				break
			}
		}
	})
	if taken == 0 {
		t.Error("nothing was ever taken: the test says nothing")
	}
}

// takesBack lets one queue take from another if it may, reports that, and fails if the other may take it back.
func takesBack(t *testing.T, r *rapid.T) bool {
	draw := func(what string) string {
		text := ""
		for _, name := range []string{"cpu", "memory", "example.com/a", "pods"} {
			if rapid.Bool().Draw(r, what+" "+name) {
				text += fmt.Sprintf(" %s=%d", name, rapid.IntRange(0, 4).Draw(r, what))
			}
		}
		return text
	}
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=50 memory=50 example.com/a=50 pods=50"),
		fixture.Queue("one", fixture.Deserving(draw("one"))), fixture.Queue("other", fixture.Deserving(draw("other"))))
	for _, queue := range []string{"one", "other"} {
		w.Set(fixture.Group("in-"+queue, queue, 1))
		for i := range rapid.IntRange(1, 4).Draw(r, "running") {
			w.Set(fixture.Pod(fmt.Sprintf("%s-%d", queue, i), fixture.In("in-"+queue), fixture.Asks(draw("pod")), fixture.On("n1")))
		}
	}
	asks := draw("preemptor")
	w.Set(fixture.Pod("preemptor", fixture.In("in-one"), fixture.Asks(asks)))
	s := w.Open()
	x := s.Begin()
	defer x.Undo()
	victim := w.TaskNamed("other-0")
	mayLeave := func(preemptor, victim *cluster.Task) bool {
		d := &framework.VictimProposal{Preemptor: preemptor.Job, For: preemptor, Victims: []*cluster.Task{victim}}
		why, _ := s.PollReclaim().Ask(d)
		return why.IsNone() && s.MayReclaim(preemptor) == nil &&
			s.Policy.Shares().IsSurplus(victim.Job.QuotaNode(), victim.Request(), preemptor.Request())
	}
	preemptor := w.TaskNamed("preemptor")
	if !mayLeave(preemptor, victim) {
		return false
	}
	x.Evict(victim)
	x.Pipeline(preemptor, w.Node("n1"))
	// The same pod made again, of the same job, asks for the preemptor's room. What it deserves did not change.
	if mayLeave(victim, preemptor) {
		r.Fatalf("%v left for %v, which may leave for it again", victim.Request(), preemptor.Request())
	}
	return true
}
