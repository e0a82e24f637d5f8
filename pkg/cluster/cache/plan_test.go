package cache

import (
	"slices"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

var running = phase(corev1.PodRunning)

// contested is a model with a full node n, a free node m and a queue q with two jobs. Pod v of the victim's job runs on
// n, and is evicted for pod p of job preemptor.
func contested() (*Cache, *cluster.Plan) {
	c := newCluster(Set{queue("q", "")}, Set{node("n", "cpu=1 pods=9")}, Set{node("m", "cpu=1 pods=9")},
		Set{group("giver", "q")}, Set{pod("v", in("giver"), on("n"), running)},
		Set{group("preemptor", "q")}, Set{pod("p", in("preemptor"))})
	return c, c.promise("p", "n", "v")
}

func TestRoomThatIsBeingMadeCountsForWhomItIsMade(t *testing.T) {
	c, p := contested()
	n, victim, preemptor := c.Node("n"), c.Job(jobID("giver")), c.Job(jobID("preemptor"))
	for _, step := range []struct {
		what                                 string
		happens                              func()
		used, releasing, promised            string
		victims, preemptors, ofQueue, wanted string // allocated to the jobs and their queue, and requested in it
		free, future                         int64
	}{
		{"the plan is made", func() {}, "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", "", "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", 0, 0},
		{"the victim is being deleted", func() { c.Apply(Set{pod("v", in("giver"), on("n"), running, deleting)}) },
			"cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", "", "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", 0, 0},
		{"it takes too long", func() { c.Expire(birth.Add(time.Hour + lingersAfter)) },
			"cpu=1 pods=1", "", "cpu=1 pods=1", "", "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", -1000, -1000},
		{"it is gone", func() { c.Apply(Delete{pod("v")}) },
			"", "", "cpu=1 pods=1", "", "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", 0, 0},
		{"the promise is kept", func() { c.Unpipeline(c.Task(key("p"))); c.bind("p", "n"); c.Plans().Fulfil(p) },
			"cpu=1 pods=1", "", "", "", "cpu=1 pods=1", "cpu=1 pods=1", "cpu=1 pods=1", 0, 0},
	} {
		step.happens()
		c.Settle()
		for what, amount := range map[string]struct {
			have resources.Vector
			want string
		}{
			"used on the node": {n.Used, step.used}, "used of the cluster": {c.Used, step.used},
			"releasing on the node": {n.Releasing, step.releasing}, "releasing in the cluster": {c.Releasing, step.releasing},
			"promised on the node": {n.Promised, step.promised}, "promised in the cluster": {c.Promised, step.promised},
			"allocated to the giver": {victim.Usage.Allocated, step.victims}, "allocated to the preemptor": {preemptor.Usage.Allocated, step.preemptors},
			"allocated to the queue": {c.Queue("q").Own.Allocated, step.ofQueue}, "requested in the queue": {c.Queue("q").Own.Request, step.wanted},
		} {
			amounts(t, c, step.what+": what is "+what, amount.have, amount.want)
		}
		if free, future := n.Free(resources.CPU), n.Future(resources.CPU); free != step.free || future != step.future {
			t.Errorf("%s: free %d and in the end %d, want %d and %d", step.what, free, future, step.free, step.future)
		}
		sound(t, c)
	}
	if preemptor.Plan != nil || len(c.Plans().All()) != 0 || len(c.Plans().TakeCancelled()) != 0 {
		t.Error("a plan that is fulfilled is still in force, or is told as cancelled")
	}
}

func TestAVictimIsOneUntilItIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		events []Event
		want   cluster.Status
		stays  bool // a victim
	}{
		"nothing happens":                  {nil, cluster.Evicting, true},
		"its condition changes":            {[]Event{Set{pod("v", in("giver"), on("n"), running, annotated("a", "b"))}}, cluster.Evicting, true},
		"it does not run yet, it is said":  {[]Event{Set{pod("v", in("giver"), on("n"))}}, cluster.Evicting, true},
		"its node has lost contact":        {[]Event{Set{pod("v", in("giver"), on("n"), phase(corev1.PodUnknown))}}, cluster.Evicting, true},
		"it is resized":                    {[]Event{Set{pod("v", in("giver"), on("n"), running, asks("cpu=2"))}}, cluster.Evicting, true},
		"it joins another gang":            {[]Event{Set{pod("v", in("another"), on("n"), running)}}, cluster.Evicting, true},
		"its gang is gone":                 {[]Event{Delete{group("giver", "")}}, cluster.Evicting, true},
		"its node is gone":                 {[]Event{Delete{node("n", "")}}, cluster.Evicting, true},
		"another pod of its name is gone":  {[]Event{Delete{pod("v", uid("earlier"))}}, cluster.Evicting, true},
		"it is being deleted":              {[]Event{Set{pod("v", in("giver"), on("n"), running, deleting)}}, cluster.Releasing, true},
		"it is being deleted and finishes": {[]Event{Set{pod("v", in("giver"), on("n"), phase(corev1.PodFailed), deleting)}}, cluster.Failed, false},
		"it finishes by itself":            {[]Event{Set{pod("v", in("giver"), on("n"), phase(corev1.PodSucceeded))}}, cluster.Succeeded, false},
		"it was made again":                {[]Event{Set{pod("v", in("giver"), uid("later"))}}, cluster.Pending, false},
		"it was made again and runs":       {[]Event{Delete{pod("v")}, Set{pod("v", in("giver"), uid("later"), on("n"), running)}}, cluster.Running, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := contested()
			v, version := c.Task(key("v")), p.Job.Internal.Version
			for _, event := range test.events {
				c.Apply(event)
				sound(t, c)
			}
			c.Settle()
			sound(t, c)
			if have := c.Task(key("v")).Status; have != test.want {
				t.Errorf("it is %s, want %s", have, test.want)
			}
			if have := slices.Contains(p.Victims, v); have != test.stays || (v.Evicts == p) != test.stays {
				t.Errorf("it is a victim: %t, want %t", have, test.stays)
			}
			if p.Job.Plan != p || p.Evictions != 1 {
				t.Error("the plan does not stand as it was made")
			}
			if !test.stays && p.Job.Internal.Version == version {
				t.Error("nobody looks at the preemptor though a victim is gone")
			}
			if unsent := len(p.Unsent()); (unsent == 1) != (test.want == cluster.Evicting) {
				t.Errorf("%d evictions are to be seen yet", unsent)
			}
		})
	}
}

func TestAPromiseStandsUntilItCannotBeKept(t *testing.T) {
	for name, test := range map[string]struct {
		events []Event
		want   cluster.Status
		on     string
		ends   bool // the plan is cancelled
	}{
		"nothing happens":                   {nil, cluster.Pipelined, "n", false},
		"the pod is told so":                {[]Event{Set{pod("p", in("preemptor"), func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" })}}, cluster.Pipelined, "n", false},
		"its labels change":                 {[]Event{Set{pod("p", in("preemptor"), labelled("a", "b"))}}, cluster.Pipelined, "n", false},
		"it is resized":                     {[]Event{Set{pod("p", in("preemptor"), asks("cpu=2"))}}, cluster.Pipelined, "n", false},
		"the node is not ready":             {[]Event{Set{node("n", "cpu=1", notReady)}}, cluster.Pipelined, "n", false},
		"the node is gone":                  {[]Event{Delete{node("n", "")}}, cluster.Pending, "", false},
		"it is bound there by somebody":     {[]Event{Set{pod("p", in("preemptor"), on("n"))}}, cluster.Bound, "n", false},
		"it is bound elsewhere":             {[]Event{Set{pod("p", in("preemptor"), on("m"))}}, cluster.Bound, "m", false},
		"it is being deleted":               {[]Event{Set{pod("p", in("preemptor"), deleting)}}, cluster.Releasing, "", false},
		"it was made again":                 {[]Event{Set{pod("p", in("preemptor"), uid("later"))}}, cluster.Pending, "", false},
		"it joins another gang":             {[]Event{Set{pod("p", in("giver"))}}, cluster.Pending, "", false},
		"it leaves its gang":                {[]Event{Set{pod("p")}}, cluster.Pending, "", false},
		"its gang is gone":                  {[]Event{Delete{group("preemptor", "")}}, cluster.Pending, "", true},
		"its gang was made again":           {[]Event{Set{group("preemptor", "q", func(g *schedulingv1beta1.PodGroup) { g.UID = "later" })}}, cluster.Pending, "", true},
		"a gang of its name was gone":       {[]Event{Delete{group("preemptor", "", func(g *schedulingv1beta1.PodGroup) { g.UID = "earlier" })}}, cluster.Pipelined, "n", false},
		"the plan fails":                    {[]Event{PlanFailed{Job: jobID("preemptor"), Plan: "for p", At: birth}}, cluster.Pending, "", true},
		"another plan of the job failed":    {[]Event{PlanFailed{Job: jobID("preemptor"), Plan: "before", At: birth}}, cluster.Pipelined, "n", false},
		"a plan of another job failed":      {[]Event{PlanFailed{Job: jobID("giver"), Plan: "for p", At: birth}}, cluster.Pipelined, "n", false},
		"an eviction for nobody has failed": {[]Event{PlanFailed{Plan: "for p", At: birth}}, cluster.Pipelined, "n", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := contested()
			for _, event := range test.events {
				c.Apply(event)
				sound(t, c)
			}
			c.Settle()
			sound(t, c)
			status(t, c, "p", test.want, test.on)
			if cancelled := len(c.Plans().TakeCancelled()) == 1; cancelled != test.ends || (len(c.Plans().All()) == 0) != test.ends {
				t.Errorf("the plan is cancelled: %t, want %t", cancelled, test.ends)
			}
			if test.ends && (p.Why == "" && name != "the plan fails" || c.Task(key("v")).Status != cluster.Running) {
				t.Errorf("cancelled because %q, the victim is %s", p.Why, c.Task(key("v")).Status)
			}
		})
	}
}

func TestCancellingAPlanSparesWhomTheAPIDoesNotShowAsLeaving(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=9")}, Set{group("preemptor", "")}, Set{pod("p", in("preemptor"))}, Set{pod("p2", in("preemptor"))},
		Set{group("giver", "")}, Set{pod("starting", in("giver"), on("n"))}, Set{pod("runs", in("giver"), on("n"), running)},
		Set{pod("leaves", in("giver"), on("n"), running)}, Set{pod("gone", in("giver"), on("n"), running)})
	c.Pipeline(c.Task(key("p2")), c.Node("n"))
	p := c.promise("p", "n", "starting", "runs", "leaves", "gone")
	c.Apply(Set{pod("starting", in("giver"), on("n"), running)}, Set{pod("leaves", in("giver"), on("n"), running, deleting)}, Delete{pod("gone")})
	c.Apply(Delete{pod("p2")})
	world := counts(c)
	c.Plans().Cancel(p, "the queue was closed")
	c.Settle()
	sound(t, c)
	status(t, c, "p", cluster.Pending, "")
	status(t, c, "starting", cluster.Running, "n") // it began to run while its eviction was under way
	status(t, c, "runs", cluster.Running, "n")
	status(t, c, "leaves", cluster.Releasing, "n")
	names := func(tasks []*cluster.Task) (all []string) {
		for _, task := range tasks {
			all = append(all, task.Key().Name)
		}
		return all
	}
	if diff := cmp.Diff([][]string{{"p"}, {"starting", "runs"}}, [][]string{names(p.Unpromised), names(p.Spared)}); diff != "" {
		t.Errorf("who lost a promise, and who was spared (-want +have):\n%s", diff)
	}
	if countOf(counts(c), verdict.HelpNode) == countOf(world, verdict.HelpNode) || countOf(counts(c), verdict.HelpPod) == countOf(world, verdict.HelpPod) {
		t.Error("nobody hears that the room is not promised any more, or that pods may be evicted again")
	}
	if ended := c.Plans().TakeCancelled(); len(ended) != 1 || ended[0] != p || p.Why != "the queue was closed" || p.Job.Plan != nil {
		t.Errorf("%d plans are told as cancelled", len(ended))
	}
	if len(c.Plans().TakeCancelled()) != 0 {
		t.Error("a cancelled plan is told twice")
	}
}

func TestAJobWhosePlanFailedBacksOffAndSaysWhy(t *testing.T) {
	c, p := contested()
	failed := PlanFailed{Job: jobID("preemptor"), Plan: p.ID, At: birth, Reason: "the budget allows none"}
	c.Apply(failed, failed) // a second refusal of the same plan is no news
	j := c.Job(jobID("preemptor"))
	want := &verdict.Verdict{Code: verdict.BackingOff, Help: verdict.HelpTime | verdict.HelpJob, Detail: "the budget allows none"}
	if diff := cmp.Diff(want, j.Verdict); diff != "" {
		t.Errorf("the verdict differs (-want +have):\n%s", diff)
	}
	c.Settle()
	if end := birth.Add(time.Second); c.ShouldRetry(j, end.Add(-1)) || !c.ShouldRetry(j, end) || !c.NextDeadline(birth).Equal(end) {
		t.Error("the job is not looked at again exactly when its back-off ends")
	}
	sound(t, c)
}

func TestAPlanWithoutPreemptorStandsUntilItsVictimsAreGone(t *testing.T) {
	build := func() (*Cache, *cluster.Plan) {
		c := newCluster(Set{node("n", "cpu=9")}, Set{pod("a", on("n"), running)}, Set{pod("b", on("n"), running)})
		return c, c.plan("shuffle", nil, "a", "b")
	}
	c, p := build()
	c.Apply(Delete{pod("a")})
	if plans := c.Plans().All(); len(plans) != 1 || plans[0] != p || len(p.Promised()) != 0 {
		t.Error("it has ended with the first of its victims")
	}
	c.Apply(Delete{pod("b")})
	if len(c.Plans().All()) != 0 || len(c.Plans().TakeCancelled()) != 0 {
		t.Error("it has not ended with the last of its victims, or counts as cancelled")
	}
	sound(t, c)

	c, p = build()
	c.Apply(Set{pod("b", on("n"), running, deleting)}, PlanFailed{Plan: "shuffle", At: birth, Reason: "forbidden"})
	status(t, c, "a", cluster.Running, "n")
	status(t, c, "b", cluster.Releasing, "n")
	if len(c.Plans().All()) != 0 || len(c.Plans().TakeCancelled()) != 1 || p.Why != "forbidden" {
		t.Error("it stands though it has failed")
	}
	sound(t, c)
}

func TestPlansAreListedByTheirJobs(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=9")}, Set{group("b", "")}, Set{pod("pb", in("b"))}, Set{group("a", "")}, Set{pod("pa", in("a"))},
		Set{pod("v", on("n"))}, Set{pod("w", on("n"))})
	c.promise("pb", "n")
	c.promise("pa", "n")
	c.plan("2", nil, "v")
	c.plan("1", nil, "w")
	var have []string
	for _, p := range c.Plans().All() {
		have = append(have, p.ID)
	}
	if diff := cmp.Diff([]string{"1", "2", "for pa", "for pb"}, have); diff != "" {
		t.Errorf("the plans are out of order (-want +have):\n%s", diff)
	}
}

func TestWhatShouldBeGoneIsNotCountedOnForEver(t *testing.T) {
	c, p := contested()
	p.Deadline = birth.Add(2 * time.Hour)
	if next := c.NextDeadline(birth); !next.Equal(p.Deadline) {
		t.Errorf("before anything leaves the next deadline is %s", next)
	}
	due := birth.Add(time.Hour + lingersAfter)
	leaves := pod("v", in("giver"), on("n"), running, deleting)
	c.Apply(Set{leaves})
	if next := c.NextDeadline(birth); !next.Equal(due) {
		t.Errorf("while a victim leaves the next deadline is %s, want %s", next, due)
	}
	version := p.Job.Internal.Version
	c.Expire(due.Add(-1))
	status(t, c, "v", cluster.Releasing, "n")
	c.Expire(due)
	status(t, c, "v", cluster.Lingering, "n")
	if p.Job.Internal.Version == version || len(p.Victims) != 1 {
		t.Error("the preemptor does not hear of it, or the plan forgets the victim")
	}
	c.Apply(Set{leaves}, Set{pod("v", in("giver"), on("n"), running, deleting, labelled("a", "b"))})
	status(t, c, "v", cluster.Lingering, "n")
	if next := c.NextDeadline(due); !next.Equal(p.Deadline) {
		t.Errorf("after that the next deadline is %s", next)
	}
	sound(t, c)
}

func TestPodsOfAJobWhosePodsEndLateAreCountedOnForLonger(t *testing.T) {
	c, _ := contested()
	due := birth.Add(time.Hour) // the end of the grace period of a pod that is being deleted
	end := func(late time.Duration) {
		c.Apply(Set{pod("v", in("giver"), on("n"), running)}, Set{pod("v", in("giver"), on("n"), running, deleting)})
		c.Expire(due.Add(late))
		c.Apply(Delete{pod("v")})
		c.Refresh(c.writer.Classes().Keys(), due.Add(late))
		c.Apply(Set{pod("v", in("giver"), on("n"), running)})
	}
	allows := func(what string, at time.Time, want time.Duration) {
		t.Helper()
		if have := c.Task(key("v")).Allowance(at); have != want {
			t.Errorf("%s: %s, want %s", what, have, want)
		}
	}
	allows("at first", due, lingersAfter)
	end(lingersAfter - 1)
	allows("after one that was in time", due, lingersAfter)
	end(100 * time.Second)
	allows("after one that was late", due, 130*time.Second)
	end(70 * time.Second)
	allows("after one that was less late", due, 130*time.Second)
	end(40 * time.Minute)
	allows("after one that was far too late", due.Add(50*time.Minute), 15*time.Minute)
	allows("an hour later", due.Add(101*time.Minute), lingersAfter)

	record := (&decision.Eviction{Plan: "p", Allowance: 130 * time.Second}).Record()
	evicted := pod("v", in("giver"), on("n"), running, deleting, annotated(schedulingv1beta1.EvictionRecordKey, record), func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	})
	c.Apply(Set{evicted})
	allows("as its record says", due.Add(101*time.Minute), 130*time.Second)
	c.Expire(due.Add(130*time.Second - 1))
	status(t, c, "v", cluster.Releasing, "n")
	c.Expire(due.Add(130 * time.Second))
	status(t, c, "v", cluster.Lingering, "n")
	sound(t, c)
}

func TestAPlanThatEvictsNoPodDoesNotShowThatAJobGoesOnWithout(t *testing.T) {
	c := newCluster(Set{queue("q", "")}, Set{node("n", "cpu=9")}, Set{group("g", "q")}, Set{pod("waits", in("g"))})
	j := c.Job(jobID("g"))
	within := func(at time.Time, victims ...string) {
		c.Pipeline(c.Task(key("waits")), c.Node("n"))
		p := &cluster.Plan{ID: at.String(), Job: j, Scope: decision.WithinJob, Evictions: len(victims), Deadline: at.Add(time.Minute)}
		for _, v := range victims {
			c.Evict(c.Task(key(v)))
			p.Victims = append(p.Victims, c.Task(key(v)))
		}
		c.Keep()
		c.Plans().Adopt(p)
		c.Plans().Cancel(p, "over")
	}
	restart := func(at time.Time) {
		c.Apply(Set{pod("victim", in("g"), on("n"), running)}, Set{pod("other", in("g"), on("n"), running)})
		within(at, "victim")
		c.Apply(Delete{pod("victim")}, Delete{pod("other")})
		c.Plans().NoteRestarts(at.Add(time.Second))
	}
	restart(birth)
	within(birth.Add(time.Minute))
	c.Plans().NoteRestarts(birth.Add(time.Hour)) // long after the deadline of that plan
	restart(birth.Add(2 * time.Hour))
	if !j.RestartsWhenEvicted() {
		t.Error("the job has restarted whenever a pod of it was evicted, and it is not known")
	}
}

func TestUndoingRestoresPromisesAndEvictionsOfPlansInForce(t *testing.T) {
	c, _ := contested()
	c.Apply(Set{pod("w", in("giver"), on("m"))})
	c.Settle()
	before := exactly(c)
	p, v, w := c.Task(key("p")), c.Task(key("v")), c.Task(key("w"))
	mark := c.Mark()
	c.Unpipeline(p)
	c.Spare(v)
	c.Evict(w)
	c.Pipeline(p, c.Node("m"))
	c.Evict(v)
	c.Spare(w)
	sound(t, c)
	c.Undo(mark)
	if diff := cmp.Diff(before, exactly(c)); diff != "" {
		t.Errorf("undone it differs (-before +after):\n%s", diff)
	}
	sound(t, c)
}

func TestAPlanThatIsFulfilledEarlySparesWhoNeedNotLeave(t *testing.T) {
	c, p := contested()
	c.Apply(Set{pod("p", in("preemptor"), on("m"))}) // another program has bound it to a free node
	c.Plans().Fulfil(p)
	status(t, c, "v", cluster.Running, "n")
	if ended := c.Plans().TakeCancelled(); len(ended) != 1 || len(ended[0].Spared) != 1 || len(ended[0].Unpromised) != 0 {
		t.Errorf("%d plans are told as cancelled, want one that spares its victim", len(ended))
	}
	sound(t, c)
}

func TestAPlanThatEndsLeavesToOthersWhatTheyWerePromised(t *testing.T) {
	c, p := contested()
	c.Apply(Set{group("heir", "q")}, Set{pod("p", in("heir"))})
	c.Settle()
	c.Pipeline(c.Task(key("p")), c.Node("m"))
	c.plan("of its new job", c.Job(jobID("heir")))
	c.Plans().Cancel(p, "its pod has left")
	status(t, c, "p", cluster.Pipelined, "m")
	if len(p.Unpromised) != 0 || c.Job(jobID("heir")).Plan == nil {
		t.Error("the promise to another job is taken back")
	}
	sound(t, c)
}

func TestAPlanThatWasOnlyWrittenDownIsToldAsCancelled(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=9")}, Set{group("g", "")}, Set{pod("p", in("g"))}, Set{pod("starts", on("n"))},
		Set{pod("runs", on("n"), running)}, Set{pod("leaves", on("n"), running, deleting)})
	p := &cluster.Plan{ID: "before", Job: c.Job(jobID("g"))}
	c.Plans().Discard(p, []*cluster.Task{c.Task(key("p"))}, []*cluster.Task{c.Task(key("starts")), c.Task(key("runs")), c.Task(key("leaves"))}, "nobody knows why")
	if ended := c.Plans().TakeCancelled(); len(ended) != 1 || ended[0] != p || len(p.Unpromised) != 1 || len(p.Spared) != 2 || p.Why != "nobody knows why" {
		t.Errorf("told as cancelled: %d plans; it is %+v", len(ended), p)
	}
	sound(t, c)
}

func TestWhoWasRefusedInTheCycleInWhichAPlanEndedIsLookedAtOnceMore(t *testing.T) {
	c, p := contested()
	c.Apply(Set{group("other", "q")})
	c.Apply(Set{pod("w", in("other"))})
	other := c.Job(jobID("other"))
	c.Settle()
	c.Plans().Cancel(p, "for a test")
	c.SetVerdict(other, &verdict.Verdict{Code: verdict.OverShare, Help: verdict.HelpQueue})
	if c.ShouldRetry(other, birth) {
		t.Error("a job has hope though nothing has happened since it was refused")
	}
	if len(c.Plans().TakeCancelled()) != 1 || !c.ShouldRetry(other, birth) {
		t.Error("a job that was refused by the state before a plan ended is not looked at again")
	}
}

func TestAPlanHelpsWhoseQueueHoldsLessAndWhoMayTakeItsRoom(t *testing.T) {
	for _, test := range []struct {
		name, queue, class string
		help               verdict.Help
		want               bool
	}{
		{"the queue of the victims holds less", "victims", "", verdict.HelpOwnQueue, true},
		{"another holds as much", "third", "", verdict.HelpOwnQueue, false},
		{"some queue holds less", "third", "", verdict.HelpQueue, true},
		{"victims may free more than is needed", "third", "", verdict.HelpNode, true},
		{"what is missing is counted", "third", "", verdict.HelpStock | verdict.HelpRoom, false},
		{"affinity counts its pods", "third", "", verdict.HelpPod, true},
		{"its room may be taken from another queue", "third", "", verdict.HelpVictims, true},
		{"its room may be taken in its queue", "q", "high", verdict.HelpOwnVictims, true},
		{"its room may not be taken by its equals", "q", "", verdict.HelpVictims | verdict.HelpOwnVictims, false},
		{"its room may not be taken in another queue", "third", "high", verdict.HelpOwnVictims, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(Set{queue("q", "")}, Set{queue("victims", "")}, Set{queue("third", "")}, Set{node("n", "cpu=1 pods=9")}, Set{fixture.PriorityClass("high", 10)},
				Set{group("giver", "victims")}, Set{pod("v", in("giver"), on("n"), running)}, Set{group("preemptor", "q")}, Set{pod("p", in("preemptor"))})
			waits := group("waits", test.queue)
			waits.Spec.PriorityClassName = test.class
			c.Apply(Set{waits})
			c.Apply(Set{pod("w", in("waits"))})
			c.Settle()
			j := c.Job(jobID("waits"))
			c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: test.help})
			c.promise("p", "n", "v")
			if have := c.IsHelped(j); have != test.want {
				t.Errorf("the job is helped: %t", have)
			}
		})
	}
}
