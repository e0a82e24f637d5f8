package cache

import (
	"fmt"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/verdict"
)

// crowded is a model with a full node, a queue with two jobs that wait and one that runs, and another queue.
func crowded() *Cache {
	return newCluster(Set{node("n", "cpu=4")}, Set{queue("q", "")}, Set{queue("r", "")},
		Set{group("g", "q")}, Set{pod("p", in("g"))}, Set{group("h", "q")}, Set{pod("w", in("h"))},
		Set{group("busy", "q", needs("cpu=9"), at(schedulingv1beta1.PodGroupInqueue))},
		Set{pod("b", in("busy"), on("n"), asks("cpu=4"), phase(corev1.PodRunning))})
}

func TestARefusedJobIsTriedAgainOnceWhatHelpsItHasHappened(t *testing.T) {
	const never, node_, queue_, job, timePasses = verdict.Help(0), verdict.HelpNode, verdict.HelpQueue, verdict.HelpJob, verdict.HelpTime
	set := func(events ...Event) func(*Cache) { return func(c *Cache) { c.Apply(events...) } }
	for name, test := range map[string]struct {
		happens func(*Cache)
		helps   verdict.Help // the kinds of verdict that it turns
	}{
		"nothing":                       {set(), timePasses},
		"a node joins":                  {set(Set{node("m", "cpu=1")}), node_ | queue_ | timePasses},
		"a node grows":                  {set(Set{node("n", "cpu=8")}), node_ | queue_ | timePasses},
		"a node goes":                   {set(Delete{node("n", "")}), queue_ | timePasses},
		"a heartbeat":                   {set(Set{node("n", "cpu=4")}), timePasses},
		"a pod there finishes":          {set(Set{pod("b", in("busy"), on("n"), asks("cpu=4"), phase(corev1.PodFailed))}), node_ | queue_ | timePasses},
		"a pod there is deleted":        {set(Delete{pod("b")}), node_ | queue_ | timePasses},
		"a pod there shrinks":           {set(Set{pod("b", in("busy"), on("n"), asks("cpu=1"), phase(corev1.PodRunning))}), node_ | queue_ | timePasses},
		"a pod there is on its way out": {set(Set{pod("b", in("busy"), on("n"), asks("cpu=4"), deleting)}), node_ | queue_ | timePasses},
		"a pod there grows":             {set(Set{pod("b", in("busy"), on("n"), asks("cpu=6"), phase(corev1.PodRunning))}), queue_ | timePasses},
		"a pod of another job comes":    {set(Set{pod("v", in("h"))}), timePasses},
		"a pod that waits is deleted":   {set(Delete{pod("w")}), queue_ | timePasses},
		"a pod that waits is given up":  {set(Set{pod("w", in("h"), deleting)}), queue_ | timePasses},
		"a pod that waits wants less":   {set(Set{pod("w", in("h"), asks("cpu=500m"))}), queue_ | timePasses},
		"another job goes":              {set(Delete{group("h", "q")}), queue_ | timePasses},
		"another job leaves the queue":  {set(Set{group("h", "r")}), queue_ | timePasses},
		"another job needs less":        {set(Set{group("busy", "q", needs("cpu=5"))}), queue_ | timePasses},
		"another job needs more":        {set(Set{group("busy", "q", needs("cpu=10"))}), timePasses},
		"another job is no longer let in": {func(c *Cache) { c.SetPhase(c.Job(jobID("busy")), schedulingv1beta1.PodGroupPending) },
			queue_ | timePasses},
		"a queue changes": {set(Set{queue("r", "", func(q *schedulingv1beta1.Queue) { q.Spec.Weight = 3 })}), queue_ | timePasses},
		"a queue goes":    {set(Delete{queue("r", "")}), queue_ | timePasses},
		"the job changes": {set(Set{group("g", "q", ranked("high"))}), job | node_ | queue_ | timePasses},
		"the job has a new pod": {set(Set{pod("v", in("g"))}),
			never | job | node_ | queue_ | timePasses},
		"the rules change": {func(c *Cache) { c.Reconsider() }, job | node_ | queue_ | timePasses},
	} {
		t.Run(name, func(t *testing.T) {
			for _, help := range []verdict.Help{node_, queue_, job, timePasses} {
				c := crowded()
				j := c.Job(jobID("g"))
				c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: help})
				test.happens(c)
				c.Settle()
				if have, want := c.ShouldRetry(j, birth), test.helps&help != 0; have != want {
					t.Errorf("tried again when %d would help: %t, want %t", help, have, want)
				}
			}
		})
	}
}

func TestAJobWithoutAVerdictMayBeHelped(t *testing.T) {
	c := crowded()
	j := c.Job(jobID("g"))
	if !c.ShouldRetry(j, birth) {
		t.Error("a new job is not tried")
	}
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.OverShare})
	if c.ShouldRetry(j, birth) {
		t.Error("a job that nothing can help is tried again")
	}
	c.SetVerdict(j, nil)
	if !c.ShouldRetry(j, birth) {
		t.Error("a job that nothing stands in the way of is not tried")
	}
}

func TestAnotherPlacementWakesNoRefusedJob(t *testing.T) {
	c := crowded()
	j := c.Job(jobID("g"))
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.OverCommitted, Help: verdict.HelpNode | verdict.HelpQueue})
	c.Admit(c.Job(jobID("h")))
	mark := c.Mark()
	c.Place(c.Task(key("w")), c.Node("n"))
	c.Undo(mark)
	c.bind("w", "n")
	c.Apply(Set{pod("w", in("h"), on("n"))}, Set{pod("w", in("h"), on("n"), phase(corev1.PodRunning))})
	if c.ShouldRetry(j, birth) {
		t.Error("it is tried again though others have taken room")
	}
}

// refuse binds a task and reports that the API server refused the binding.
func (c *Cache) refuse(name string, at time.Time) {
	c.bind(name, "n")
	c.Apply(BindFailed{Pod: key(name), UID: c.Task(key(name)).UID(), At: at})
}

func TestAJobBacksOffLongerWithEveryRefusalInARow(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{group("g", "")}, Set{pod("p", in("g"))}, Set{pod("r", in("g"), on("n"))})
	j := c.Job(jobID("g"))
	now := birth
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		c.refuse("p", now)
		if have := j.NotBefore.Sub(now); have != want*time.Second {
			t.Fatalf("backs off for %s, want %ds", have, want)
		}
		if c.ShouldRetry(j, j.NotBefore.Add(-1)) || !c.ShouldRetry(j, j.NotBefore) {
			t.Fatal("a job is tried again exactly from the end of its back-off")
		}
		if next := c.NextDeadline(now); !next.Equal(j.NotBefore) {
			t.Fatalf("the next deadline is %s, want %s", next, j.NotBefore)
		}
		now = j.NotBefore
		// An update of a pod that is bound already is no success.
		c.Apply(Set{pod("r", in("g"), on("n"), annotated("a", now.String()))})
	}
	c.bind("p", "n")
	c.Apply(Set{pod("p", in("g"), on("n"))})
	c.Apply(Set{pod("again", in("g"))})
	c.refuse("again", now)
	if have := j.NotBefore.Sub(now); have != time.Second {
		t.Errorf("after a success it backs off for %s", have)
	}
	if next := c.NextDeadline(j.NotBefore); !next.IsZero() {
		t.Errorf("when the back-off is over there is a deadline at %s", next)
	}
}

func TestAGangRefusedAtOnceIsOneRefusal(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=64")}, Set{group("g", "")})
	for i := range 20 {
		name := fmt.Sprint("p", i)
		c.Apply(Set{pod(name, in("g"))})
		c.bind(name, "n")
	}
	for i := range 20 {
		c.Apply(BindFailed{Pod: key(fmt.Sprint("p", i)), UID: c.Task(key(fmt.Sprint("p", i))).UID(), At: birth.Add(time.Duration(i) * time.Millisecond)})
	}
	if have := c.Job(jobID("g")).NotBefore.Sub(birth); have > 2*time.Second {
		t.Errorf("a gang of twenty, refused once, backs off for %s", have)
	}
	sound(t, c)
}

func TestAGangThatWasMadeAgainDoesNotBackOff(t *testing.T) {
	for name, events := range map[string][]Event{
		"seen to go":     {Delete{group("g", "")}},
		"not seen to go": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{node("n", "cpu=4")}, Set{group("g", "")}, Set{pod("p", in("g"))})
			c.refuse("p", birth)
			c.Apply(events...)
			c.Apply(Set{group("g", "", func(g *schedulingv1beta1.PodGroup) { g.UID = "later" })})
			if !c.ShouldRetry(c.Job(jobID("g")), birth) {
				t.Error("it waits for what happened to another gang of its name")
			}
		})
	}
}

func TestChangesTellsWhichNodesChangedSince(t *testing.T) {
	c := newCluster(Set{node("b", "cpu=4")}, Set{node("a", "cpu=4")}, Set{pod("p")})
	a, b := int32(c.Node("a").Slot), int32(c.Node("b").Slot)
	_, since, ok := c.Changes(0)
	if !ok {
		t.Fatal("the beginning is forgotten already")
	}
	mark := c.Mark()
	c.Place(c.Task(key("p")), c.Node("b"))
	slots, next, _ := c.Changes(since)
	if diff := cmp.Diff([]int32{b}, slots); diff != "" {
		t.Errorf("after a placement (-want +have):\n%s", diff)
	}
	c.Undo(mark)
	if slots, _, _ = c.Changes(next); len(slots) != 1 || slots[0] != b {
		t.Errorf("undoing a placement changes %v", slots)
	}
	_, next, _ = c.Changes(since)
	c.Apply(Delete{node("a", "")})
	c.Apply(Set{node("c", "cpu=1")})
	if slots, _, _ = c.Changes(next); len(slots) != 2 || slots[0] != a || slots[1] != a || c.Node("c").Slot != int(a) {
		t.Errorf("a node that goes and one that takes its slot change %v", slots)
	}
}

// maxChanges is how many changes the model remembers.
const maxChanges = 1 << 18

func TestChangesForgetsTheOldestAndSaysSo(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")})
	_, first, _ := c.Changes(0)
	for range maxChanges {
		c.writer.Nodes.Renew(c.Node("n"))
	}
	_, middle, ok := c.Changes(first)
	if ok {
		t.Error("more changes are remembered than there is space for")
	}
	for range 10 {
		c.writer.Nodes.Renew(c.Node("n"))
	}
	slots, next, ok := c.Changes(middle)
	if !ok || len(slots) != 1 || next != middle+10 || middle != first+maxChanges {
		t.Errorf("of the ten changes of one node after %d, %d are told, next %d", middle, len(slots), next)
	}
	if slots, _, ok = c.Changes(next); !ok || len(slots) != 0 {
		t.Error("nothing has changed, and something is told")
	}
}

func TestWhatChangedIsToldOnceAndInOrder(t *testing.T) {
	c := newCluster(Set{queue("r", "")}, Set{queue("q", "")}, Set{group("h", "q")}, Set{group("g", "q")}, Set{pod("p", in("later"))},
		Set{group("gone", "q")}, Delete{group("gone", "q")}, Set{queue("gone", "")}, Delete{queue("gone", "")})
	names := func() []string {
		var all []string
		jobs, queues := c.TakeTouchedJobs(), c.TakeTouchedQueues()
		for _, j := range jobs {
			all = append(all, j.ID.Name)
		}
		for _, q := range queues {
			all = append(all, "queue "+q.Name)
		}
		return all
	}
	for _, step := range []struct {
		what    string
		happens func()
		want    []string
	}{
		{"all is new", func() {}, []string{"g", "h", "later", "queue q", "queue r"}}, // of later there are pods, which are told that it does not exist
		{"nothing happens", func() {}, nil},
		{"a pod comes", func() { c.Apply(Set{pod("p2", in("g"))}) }, []string{"g", "queue q"}},
		{"a gang is late", func() { c.Apply(Set{group("later", "r")}) }, []string{"later", "queue r"}},
		{"a gang moves", func() { c.Apply(Set{group("h", "r")}) }, []string{"h", "queue q", "queue r"}},
		{"a job is judged", func() { c.SetVerdict(c.Job(jobID("g")), &verdict.Verdict{Code: verdict.OverShare}) }, []string{"g"}},
		{"it is judged the same", func() { c.SetVerdict(c.Job(jobID("g")), &verdict.Verdict{Code: verdict.OverShare}) }, nil},
	} {
		step.happens()
		c.Settle()
		if diff := cmp.Diff(step.want, names()); diff != "" {
			t.Errorf("%s (-want +have):\n%s", step.what, diff)
		}
	}
}

func TestAJobWaitsForPlacesPodsOrAdmission(t *testing.T) {
	running := at(schedulingv1beta1.PodGroupRunning)
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"at the door, without pods": {[]Event{Set{group("g", "")}}, true},
		"at the door by name":       {[]Event{Set{group("g", "", at(schedulingv1beta1.PodGroupPending))}}, true},
		"let in, without pods":      {[]Event{Set{group("g", "", at(schedulingv1beta1.PodGroupInqueue))}}, true},
		"let in, with a pod":        {[]Event{Set{group("g", "", at(schedulingv1beta1.PodGroupInqueue))}, Set{pod("p", in("g"))}}, true},
		"running, with another pod": {[]Event{Set{group("g", "", running)}, Set{pod("p", in("g"))}}, true},
		"running, with a gated pod": {[]Event{Set{group("g", "", running)}, Set{pod("p", in("g"), gated)}}, true},
		"running, and a gated pod more": {[]Event{Set{group("g", "", running)}, Set{pod("p", in("g"), on("n"))}, Set{pod("q", in("g"), gated)}},
			false},
		"all that it needs are done": {[]Event{Set{group("g", "", running)}, Set{pod("p", in("g"), on("n"), phase(corev1.PodSucceeded))}},
			false},
		"all that it needs were done, and are cleaned away": {[]Event{Set{group("g", "", running)},
			Set{pod("p", in("g"), on("n"), phase(corev1.PodSucceeded))}, Delete{pod("p")}}, true},
		"completed, and its pods are cleaned away": {[]Event{Set{group("g", "", at(schedulingv1beta1.PodGroupCompleted))},
			Set{pod("p", in("g"), on("n"), phase(corev1.PodSucceeded))}, Delete{pod("p")}}, false},
		"running, all pods placed":    {[]Event{Set{group("g", "", running)}, Set{pod("p", in("g"))}, Set{pod("p", in("g"), on("n"))}}, false},
		"running, then it is deleted": {[]Event{Set{group("g", "", running)}, Set{pod("p", in("g"))}, Delete{group("g", "")}}, false},
		"deleted, then made again":    {[]Event{Set{group("g", "")}, Delete{group("g", "")}, Set{group("g", "")}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(test.events...)
			want := 0
			if test.want {
				want = 1
			}
			if have := c.Waiting(); len(have) != want {
				t.Errorf("%d jobs wait, want %d", len(have), want)
			}
			sound(t, c)
		})
	}
}

func TestATransactionIsUndoneBitForBit(t *testing.T) {
	c := crowded()
	c.Apply(Set{pod("x", in("g"))}, Set{pod("y", in("g"))})
	c.Settle()
	before := exactly(c)
	outer := c.Mark()
	c.Admit(c.Job(jobID("g")))
	c.Place(c.Task(key("x")), c.Node("n"))
	between, inner := exactly(c), c.Mark()
	c.Place(c.Task(key("y")), c.Node("n"))
	c.Commit(c.Task(key("x")))
	c.Undo(inner)
	if diff := cmp.Diff(between, exactly(c)); diff != "" {
		t.Errorf("undoing the inner transaction left (-before +after):\n%s", diff)
	}
	c.Undo(outer)
	if diff := cmp.Diff(before, exactly(c)); diff != "" {
		t.Errorf("undoing all left (-before +after):\n%s", diff)
	}
	sound(t, c)
}

func TestABrokenCallerIsFoundAtOnce(t *testing.T) {
	for name, breakIt := range map[string]func(c *Cache){
		"placing what is placed":            func(c *Cache) { c.Place(c.Task(key("p")), c.Node("n")); c.Place(c.Task(key("p")), c.Node("n")) },
		"placing what runs":                 func(c *Cache) { c.Place(c.Task(key("b")), c.Node("n")) },
		"committing what is not placed":     func(c *Cache) { c.Commit(c.Task(key("p"))) },
		"an event inside a transaction":     func(c *Cache) { c.Place(c.Task(key("p")), c.Node("n")); c.Apply(Set{node("m", "")}) },
		"setting a phase in a transaction":  func(c *Cache) { c.Admit(c.Job(jobID("g"))); c.SetPhase(c.Job(jobID("g")), "") },
		"letting in what has long been let": func(c *Cache) { c.Admit(c.Job(jobID("busy"))) },
		"promising what runs":               func(c *Cache) { c.Pipeline(c.Task(key("b")), c.Node("n")) },
		"unpromising what was not promised": func(c *Cache) { c.Unpipeline(c.Task(key("p"))) },
		"evicting what waits":               func(c *Cache) { c.Evict(c.Task(key("p"))) },
		"evicting twice":                    func(c *Cache) { c.Evict(c.Task(key("b"))); c.Evict(c.Task(key("b"))) },
		"sparing what stays":                func(c *Cache) { c.Spare(c.Task(key("b"))) },
		"expiring in a transaction":         func(c *Cache) { c.Evict(c.Task(key("b"))); c.Expire(birth) },
		"a plan in a transaction": func(c *Cache) {
			c.Pipeline(c.Task(key("p")), c.Node("n"))
			c.Plans().Adopt(&cluster.Plan{ID: "1", Job: c.Job(jobID("g"))})
		},
		"two plans of one job": func(c *Cache) { c.promise("p", "n"); c.Plans().Adopt(&cluster.Plan{ID: "2", Job: c.Job(jobID("g"))}) },
		"two plans of one name": func(c *Cache) {
			c.Plans().Adopt(&cluster.Plan{ID: "1", Job: c.Job(jobID("g"))})
			c.Plans().Adopt(&cluster.Plan{ID: "1", Job: c.Job(jobID("h"))})
		},
		"leaving for two plans": func(c *Cache) {
			p := c.promise("p", "n", "b")
			c.Plans().Adopt(&cluster.Plan{ID: "2", Job: c.Job(jobID("h")), Victims: p.Victims})
		},
		"fulfilling what is promised still": func(c *Cache) { c.Plans().Fulfil(c.promise("p", "n")) },
		"fulfilling in a transaction":       func(c *Cache) { p := c.plan("1", nil, "b"); c.Admit(c.Job(jobID("h"))); c.Plans().Fulfil(p) },
		"cancelling in a transaction":       func(c *Cache) { p := c.promise("p", "n"); c.Admit(c.Job(jobID("h"))); c.Plans().Cancel(p, "") },
		"cancelling what is not in force":   func(c *Cache) { p := c.promise("p", "n"); c.Plans().Cancel(p, ""); c.Plans().Cancel(p, "") },
		"fulfilling what is not in force":   func(c *Cache) { c.Plans().Fulfil(&cluster.Plan{ID: "1", Job: c.Job(jobID("g"))}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no invariant was found broken")
				}
			}()
			breakIt(crowded())
		})
	}
}

func TestKindsThatTheModelDoesNotHoldAreIgnored(t *testing.T) {
	c := crowded()
	before := exactly(c)
	c.Apply(Set{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}, Delete{&corev1.ConfigMap{}}, Delete{pod("unknown")},
		Delete{node("unknown", "")}, Delete{group("unknown", "")}, Delete{queue("unknown", "")}, Delete{queue("root", "")},
		Delete{priorityClass("unknown", 0)}, BindFailed{Pod: key("unknown")}, PlanFailed{Job: jobID("g"), Plan: "unknown"},
		Delete{pdbOf("unknown", "", 0)}, Delete{&corev1.ResourceQuota{ObjectMeta: meta("unknown")}})
	if diff := cmp.Diff(before, exactly(c)); diff != "" {
		t.Errorf("the model changed (-before +after):\n%s", diff)
	}
}
