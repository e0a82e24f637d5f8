package cache

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/verdict"
)

func TestALatePodGroupFindsItsPodsAndItsQueue(t *testing.T) {
	c := newCluster(Set{queue("q", "")}, Set{pod("p", in("g"))}, Set{pod("r", in("g"), on("n"))})
	if len(c.Jobs()) != 0 || len(c.Waiting()) != 0 || !c.Queue("q").Own.Request.IsZero() {
		t.Error("pods of an unknown gang count, or wait")
	}
	sound(t, c)
	c.Apply(Set{group("g", "q", needs("cpu=3"))})
	c.Settle()
	j := c.Job(jobID("g"))
	if len(c.Jobs()) != 1 || len(c.Waiting()) != 1 || c.Waiting()[0] != j || len(j.Tasks()) != 2 {
		t.Error("the gang does not have its pods, or does not wait")
	}
	amounts(t, c, "requested in the queue", c.Queue("q").Own.Request, "cpu=2 pods=2")
	amounts(t, c, "allocated to the queue", c.Queue("q").Own.Allocated, "cpu=1 pods=1")
	sound(t, c)
}

func TestALateQueueFindsItsJobs(t *testing.T) {
	c := newCluster(Set{group("g", "q")}, Set{group("h", "")}, Set{pod("p", in("g"), on("n"))})
	if c.Job(jobID("g")).Queue != nil || c.Job(jobID("h")).Queue != nil {
		t.Error("a job is in a queue that does not exist")
	}
	c.Apply(Set{queue("default", "")}, Set{queue("q", "above")})
	c.Settle()
	amounts(t, c, "allocated to the queue", c.Queue("q").Subtree.Allocated, "cpu=1 pods=1")
	if c.Job(jobID("h")).Queue != c.Queue("default") || c.Queue("q").Jobs != 1 {
		t.Error("a job is not in its queue")
	}
	sound(t, c)
	c.Apply(Set{queue("above", "")})
	c.Settle()
	amounts(t, c, "allocated below the queue above", c.Queue("above").Subtree.Allocated, "cpu=1 pods=1")
	sound(t, c)
}

func TestAJobMovesToAnotherQueueWithAllThatItHasAndWants(t *testing.T) {
	c := newCluster(Set{queue("q", "")}, Set{queue("r", "above")}, Set{queue("above", "")},
		Set{group("g", "q", needs("cpu=4 memory=1Gi"), at(schedulingv1beta1.PodGroupInqueue))},
		Set{pod("p", in("g"), on("n"))}, Set{pod("w", in("g"))})
	amounts(t, c, "let in to q", c.Queue("q").Own.Inqueue, "cpu=3 memory=1Gi")
	c.Apply(Set{group("g", "r", needs("cpu=4 memory=1Gi"))})
	c.Settle()
	for _, name := range []string{"r", "above"} {
		u := &c.Queue(name).Subtree
		amounts(t, c, "allocated to "+name, u.Allocated, "cpu=1 pods=1")
		amounts(t, c, "requested in "+name, u.Request, "cpu=2 pods=2")
		amounts(t, c, "let in to "+name, u.Inqueue, "cpu=3 memory=1Gi")
	}
	if q := c.Queue("q"); q.Jobs != 0 || !q.Subtree.Request.IsZero() || !q.Own.Inqueue.IsZero() {
		t.Error("the queue it left still counts it")
	}
	sound(t, c)
	c.Apply(Set{group("g", "nowhere")})
	c.Settle()
	if c.Job(jobID("g")).Queue != nil || !c.Queue("r").Own.Request.IsZero() {
		t.Error("a job whose queue does not exist is in one")
	}
	sound(t, c)
}

func TestWhatRunsIsChargedWhereItWasUntilItIsGone(t *testing.T) {
	later := func(g *schedulingv1beta1.PodGroup) { g.UID = "later" }
	charged := func(text string) podOption {
		return func(p *corev1.Pod) { p.Annotations[decision.AccountAnnotation] = text }
	}
	runs := func(options ...podOption) *corev1.Pod {
		return pod("p", append([]podOption{on("n"), charged("q/g")}, options...)...)
	}
	for name, test := range map[string]struct {
		change []Event
		after  string // the queue that the job is in when its pod is gone
		told   int
	}{
		"nothing changes":                          {[]Event{Set{group("g", "q")}}, "q", 0},
		"its PodGroup names another queue":         {[]Event{Set{group("g", "r")}}, "r", 1},
		"its PodGroup names two others in turn":    {[]Event{Set{group("g", "r")}, Set{group("g", "nowhere")}}, "nowhere", 2},
		"its PodGroup names another and this":      {[]Event{Set{group("g", "r")}, Set{group("g", "q")}}, "q", 1},
		"its PodGroup is deleted":                  {[]Event{Delete{group("g", "q")}}, "", 1},
		"its PodGroup is deleted and made again":   {[]Event{Delete{group("g", "q")}, Set{group("g", "r", later)}}, "r", 2},
		"its pod names another PodGroup":           {[]Event{Set{runs(in("h"))}}, "q", 1},
		"its pod names none":                       {[]Event{Set{runs()}}, "q", 1},
		"its pod names another and this again":     {[]Event{Set{runs(in("h"))}, Set{runs(in("g"))}}, "q", 1},
		"its pod names two others in turn":         {[]Event{Set{runs(in("h"))}, Set{runs(in("i"))}}, "q", 2},
		"its pod names another, and is seen again": {[]Event{Set{runs(in("h"))}, Set{runs(in("h"))}}, "q", 1},
		"a pod without a node says it was charged": {[]Event{Set{pod("w", in("g"), charged("r/h"))}}, "q", 0},
		"another of its pods was charged in r":     {[]Event{Set{pod("w", in("g"), charged("r/g"))}}, "q", 0},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", name, restarts), func(t *testing.T) {
				begin := []Event{Set{queue("q", "")}, Set{queue("r", "")}, Set{group("g", "q")}, Set{group("h", "r")}, Set{runs(in("g"))}, Set{pod("w", in("g"))}}
				c := newCluster(begin...)
				for i, e := range test.change {
					if restarts {
						c = newCluster(append(begin, test.change[:i+1]...)...)
					}
					c.Apply(e)
					c.Settle()
					amounts(t, c, "allocated to q", c.Queue("q").Own.Allocated, "cpu=1 pods=1")
					if !c.Queue("r").Own.Allocated.IsZero() {
						t.Error("the other queue is charged")
					}
					sound(t, c)
				}
				if told := c.TakeNotices(time.Time{}); len(told) != test.told {
					t.Errorf("the Events are %+v, want %d", told, test.told)
				}
				c.Apply(Delete{runs()})
				c.Settle()
				if j := c.Job(jobID("g")); j.QueueName != test.after || j.BelowName != "" {
					t.Errorf("then its queue is %q below %q, want %q", j.QueueName, j.BelowName, test.after)
				}
				if !c.Queue("q").Own.Allocated.IsZero() {
					t.Error("the queue is charged for what is gone")
				}
				sound(t, c)
			})
		}
	}
}

func TestAPodGroupThatIsGoneLeavesItsPodsWaitingForAnother(t *testing.T) {
	c := newCluster(Set{queue("q", "")}, Set{group("g", "q", ranked("high"), needs("cpu=1"), func(g *schedulingv1beta1.PodGroup) {
		g.Spec.MinTaskMember = map[string]int32{"worker": 1}
	})}, Set{priorityClass("high", 9)}, Set{pod("p", in("g"), on("n"))})
	c.Apply(Delete{group("g", "q", func(g *schedulingv1beta1.PodGroup) { g.UID = "earlier" })})
	if len(c.Jobs()) != 1 {
		t.Fatal("a gang is gone because an earlier one of its name is")
	}
	c.Apply(Delete{group("g", "q")})
	c.Settle()
	if len(c.Jobs()) != 0 || !c.Queue("q").Own.Request.IsZero() || c.Queue("q").Jobs != 0 {
		t.Error("the queue still counts a gang that is gone")
	}
	amounts(t, c, "used on the node", c.Node("n").Used, "cpu=1 pods=1")
	sound(t, c)
	j := c.Job(jobID("g"))
	if j.Priority != 0 || j.MinMember != 0 || len(j.RoleMinimums) != 0 || j.MinResources != nil || j.Phase != "" {
		t.Error("what the PodGroup said outlives it")
	}
	c.Apply(Set{group("g", "q", func(g *schedulingv1beta1.PodGroup) { g.UID = "later" })})
	if j.Queue != c.Queue("q") || len(j.Tasks()) != 1 {
		t.Error("the gang that was made again does not have its pods")
	}
	c.Apply(Delete{pod("p")}, Delete{group("g", "q", func(g *schedulingv1beta1.PodGroup) { g.UID = "later" })})
	if c.Job(jobID("g")) != nil {
		t.Error("a gang of which nothing is left is remembered")
	}
	sound(t, c)
}

func TestAPhaseIsDecidedHereOnceItIsKnown(t *testing.T) {
	c := newCluster(Set{group("g", "", at(schedulingv1beta1.PodGroupInqueue))})
	j := c.Job(jobID("g"))
	if j.Phase != schedulingv1beta1.PodGroupInqueue {
		t.Errorf("a gang that was let in before this process began is %q", j.Phase)
	}
	c.SetPhase(j, schedulingv1beta1.PodGroupRunning)
	c.Apply(Set{group("g", "", at(schedulingv1beta1.PodGroupInqueue))})
	if j.Phase != schedulingv1beta1.PodGroupRunning {
		t.Errorf("an echo of an older phase counts: %q", j.Phase)
	}
	c.Apply(Set{group("g", "", func(g *schedulingv1beta1.PodGroup) { g.UID = "later" })})
	if j.Phase != "" {
		t.Errorf("the gang was made again and is %q", j.Phase)
	}
	sound(t, c)
}

func TestWhatAJobLacksOfItsMinimumIsCountedWhileAdmitted(t *testing.T) {
	c := newCluster(Set{queue("q", "")}, Set{node("n", "cpu=8")}, Set{group("g", "q", needs("cpu=2 memory=1Gi"))},
		Set{pod("a", in("g"), asks("cpu=1"))}, Set{pod("b", in("g"), asks("cpu=3"))})
	j, q := c.Job(jobID("g")), c.Queue("q")
	check := func(when, inqueue string) {
		t.Helper()
		amounts(t, c, when+": let in", q.Own.Inqueue, inqueue)
		sound(t, c)
	}
	check("at the door", "")
	c.Admit(j)
	c.Keep()
	check("let in", "cpu=2 memory=1Gi")
	c.bind("a", "n")
	check("half placed", "cpu=1 memory=1Gi")
	c.bind("b", "n")
	check("placed", "memory=1Gi")
	c.Apply(Set{group("g", "q", needs("cpu=6"))})
	check("with a larger minimum", "cpu=2")
	c.SetPhase(j, schedulingv1beta1.PodGroupRunning)
	check("running", "")
}

func TestThePriorityOfAJobIsThatOfItsClass(t *testing.T) {
	standard := func(name string, value int32) *schedulingv1.PriorityClass {
		p := priorityClass(name, value)
		p.GlobalDefault = true
		return p
	}
	again := priorityClass("high", 20)
	again.UID = "later"
	for name, test := range map[string]struct {
		events []Event
		class  string
		want   int32
	}{
		"known before the job":                {[]Event{Set{priorityClass("high", 9)}, Set{group("g", "", ranked("high"))}}, "high", 9},
		"known after the job":                 {[]Event{Set{group("g", "", ranked("high"))}, Set{priorityClass("high", 9)}}, "high", 9},
		"not known":                           {[]Event{Set{group("g", "", ranked("high"))}}, "high", 0},
		"no class named":                      {[]Event{Set{priorityClass("high", 9)}, Set{group("g", "")}}, "", 0},
		"no class named, and a default":       {[]Event{Set{group("g", "")}, Set{standard("std", 5)}}, "", 5},
		"not known, and a default":            {[]Event{Set{group("g", "", ranked("high"))}, Set{standard("std", 5)}}, "high", 5},
		"the lowest of two defaults":          {[]Event{Set{standard("a", 7)}, Set{standard("b", -5)}, Set{standard("c", 6)}, Set{group("g", "")}}, "", -5},
		"the value changes":                   {[]Event{Set{group("g", "", ranked("high"))}, Set{priorityClass("high", 9)}, Set{priorityClass("high", -1)}}, "high", -1},
		"the class goes":                      {[]Event{Set{group("g", "", ranked("high"))}, Set{priorityClass("high", 9)}, Delete{priorityClass("high", 9)}}, "high", 0},
		"the default goes":                    {[]Event{Set{group("g", "")}, Set{standard("std", 5)}, Delete{standard("std", 5)}}, "", 0},
		"the job names another":               {[]Event{Set{priorityClass("high", 9)}, Set{priorityClass("low", 1)}, Set{group("g", "", ranked("high"))}, Set{group("g", "", ranked("low"))}}, "low", 1},
		"made again, and seen to go too late": {[]Event{Set{group("g", "", ranked("high"))}, Set{priorityClass("high", 9)}, Set{again}, Delete{priorityClass("high", 9)}}, "high", 20},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(test.events...)
			if have := c.Job(jobID("g")).Priority; have != test.want {
				t.Errorf("priority is %d, want %d", have, test.want)
			}
		})
	}
}

func TestAJobIsHeardWhenItsPriorityChanges(t *testing.T) {
	c := newCluster(Set{group("g", "", ranked("high"))}, Set{group("h", "")})
	g, h := c.Job(jobID("g")).Internal.Version, c.Job(jobID("h")).Internal.Version
	c.Apply(Set{priorityClass("high", 9)})
	if c.Job(jobID("g")).Internal.Version == g || c.Job(jobID("h")).Internal.Version != h {
		t.Error("a change of a class counts for the jobs that have it, and for no others")
	}
}

// gangOf is a job of which some tasks run and one of each role waits.
func gangOf(minimum int32, roles map[string]int32, running map[string]int) *cluster.Job {
	c := newCluster(Set{group("g", "", func(g *schedulingv1beta1.PodGroup) {
		g.Spec.MinMember, g.Spec.MinTaskMember = minimum, roles
	})})
	for name, count := range running {
		c.Apply(Set{pod("waits-"+name, in("g"), role(name))})
		for i := range count {
			c.Apply(Set{pod(name+string(rune('a'+i)), in("g"), role(name), on("n"), phase(corev1.PodRunning))})
		}
	}
	return c.Job(jobID("g"))
}

func TestAJobLacksWhatItsMinimumsAskFor(t *testing.T) {
	type counts = map[string]int
	roles := map[string]int32{"a": 2, "b": 3}
	for name, test := range map[string]struct {
		minimum int32
		roles   map[string]int32
		running map[string]int
		want    int
		ofRole  counts
	}{
		"nothing runs":                            {3, nil, counts{}, 3, counts{"a": 0}},
		"some run":                                {3, nil, counts{"a": 2}, 1, nil},
		"enough run":                              {3, nil, counts{"a": 3}, 0, nil},
		"more run":                                {3, nil, counts{"a": 5}, 0, nil},
		"no minimum":                              {0, nil, counts{}, 0, nil},
		"roles, nothing runs":                     {5, roles, counts{}, 5, counts{"a": 2, "b": 3, "c": 0}},
		"roles, each has some":                    {5, roles, counts{"a": 1, "b": 1}, 3, counts{"a": 1, "b": 2}},
		"roles, one has too many":                 {5, roles, counts{"a": 5}, 3, counts{"a": 0, "b": 3}},
		"roles, all have enough":                  {5, roles, counts{"a": 2, "b": 3}, 0, counts{"a": 0, "b": 0}},
		"roles below the minimum":                 {7, roles, counts{"a": 2, "b": 3}, 2, counts{"a": 0, "b": 0}},
		"roles below the minimum, another role":   {7, roles, counts{"c": 6}, 5, counts{"a": 2, "b": 3}},
		"roles above the minimum do not bind":     {4, roles, counts{"a": 4}, 0, counts{"a": 0, "b": 0}},
		"roles above the minimum, nothing runs":   {4, roles, counts{}, 4, counts{"b": 0}},
		"a role of minimum zero asks for nothing": {1, map[string]int32{"a": 0}, counts{"b": 1}, 0, counts{"a": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			j := gangOf(test.minimum, test.roles, test.running)
			if have := j.Lacks(); have != test.want {
				t.Errorf("lacks %d, want %d", have, test.want)
			}
			for role, want := range test.ofRole {
				if have := j.LacksOf(role); have != want {
					t.Errorf("lacks %d of role %s, want %d", have, role, want)
				}
			}
		})
	}
}

func TestWhichTasksCountTowardsTheMinimum(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{node("n", "cpu=64")}, Set{pod("pending", in("g"))}, Set{pod("gated", in("g"), gated)},
		Set{pod("bound", in("g"), on("n"))}, Set{pod("running", in("g"), on("n"), phase(corev1.PodRunning))},
		Set{pod("leaving", in("g"), on("n"), deleting)}, Set{pod("done", in("g"), on("n"), phase(corev1.PodSucceeded))},
		Set{pod("failed", in("g"), on("n"), phase(corev1.PodFailed))}, Set{pod("lost", in("g"), on("n"), phase(corev1.PodUnknown))},
		Set{pod("placed", in("g"))}, Set{pod("promised", in("g"))}, Set{pod("binding", in("g"))}, Set{pod("evicted", in("g"), on("n"))},
		Set{pod("overdue", in("g"), on("n"), deletedAt(birth))})
	c.Expire(birth.Add(lingersAfter))
	c.bind("binding", "n")
	c.Evict(c.Task(key("evicted")))
	c.Pipeline(c.Task(key("promised")), c.Node("n"))
	c.Place(c.Task(key("placed")), c.Node("n"))
	j := c.Job(jobID("g"))
	// Bound, running, done, lost, placed, binding; and in addition pending and promised.
	if j.Ready() != 6 || j.Valid() != 8 || j.RoleReady("default") != 6 || j.RoleValid("default") != 8 || j.RoleValid("other") != 0 {
		t.Errorf("ready %d, valid %d, of the role %d and %d", j.Ready(), j.Valid(), j.RoleReady("default"), j.RoleValid("default"))
	}
	for s := range gang.NumStatuses {
		want := 1
		if s == gang.Awaited {
			want = 0 // only stand-ins are
		}
		if j.Count(s) != want {
			t.Errorf("%d tasks are %s", j.Count(s), s)
		}
	}
	sound(t, c)
}

func TestARoleIsCountedAsThePodSaysNow(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"), role("a"), on("n"))})
	c.Apply(Set{pod("p", in("g"), role("b"), on("n"))})
	if j := c.Job(jobID("g")); j.RoleReady("a") != 0 || j.RoleReady("b") != 1 {
		t.Errorf("role a has %d, role b %d", j.RoleReady("a"), j.RoleReady("b"))
	}
	sound(t, c)
}

func TestGatedPodsClaimNothingUntilTheyAreOpenedOneByOne(t *testing.T) {
	c := newCluster(Set{queue("q", "")}, Set{group("g", "q", needs("cpu=2"), at(schedulingv1beta1.PodGroupInqueue))})
	check := func(when, inqueue, request string) {
		t.Helper()
		c.Settle()
		amounts(t, c, when+": let in", c.Queue("q").Own.Inqueue, inqueue)
		amounts(t, c, when+": requested", c.Queue("q").Own.Request, request)
		sound(t, c)
	}
	check("without pods", "cpu=2", "")
	freed := countOf(counts(c), verdict.HelpQueue)
	c.Apply(Set{pod("a", in("g"), gated)})
	check("one is held", "cpu=1", "")
	if countOf(counts(c), verdict.HelpQueue) == freed {
		t.Error("what it claims no more wakes nobody")
	}
	c.Apply(Set{pod("b", in("g"), gated)})
	check("both are held", "", "")
	c.Apply(Set{pod("c", in("g"))})
	check("one beyond the minimum is not", "cpu=1", "cpu=1 pods=1")
	c.Apply(Set{pod("a", in("g"))})
	check("one is opened", "cpu=2", "cpu=2 pods=2")
	c.Apply(Set{pod("b", in("g"))})
	check("all are opened", "cpu=2", "cpu=3 pods=3")
	c.Apply(Set{pod("a", in("g"), gated)}, Delete{pod("b", in("g"), gated)})
	check("one is held again, one is gone", "cpu=1", "cpu=1 pods=1")
}

func TestAJobWithoutAClassHasTheLowestPriorityOfItsPods(t *testing.T) {
	of := func(value int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &value } }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	usual := priorityClass("usual", 3)
	usual.GlobalDefault = true
	first := []Event{Set{usual}, Set{priorityClass("high", 9)}, Set{group("g", "")}}
	for name, test := range map[string]struct {
		events []Event
		want   int32
	}{
		"no pods yet":                {nil, 3},
		"one pod":                    {[]Event{Set{pod("a", in("g"), of(9))}}, 9},
		"a lower one comes later":    {[]Event{Set{pod("a", in("g"), of(9), on("n"))}, Set{pod("b", in("g"), of(1))}}, 1},
		"a lower one goes":           {[]Event{Set{pod("a", in("g"), of(9))}, Set{pod("b", in("g"), of(1))}, Delete{pod("b", in("g"), of(1))}}, 9},
		"a lower one ends":           {[]Event{Set{pod("a", in("g"), of(9))}, Set{pod("b", in("g"), of(1))}, Set{pod("b", in("g"), of(1), on("n"), ended)}}, 9},
		"a lower one is leaving":     {[]Event{Set{pod("a", in("g"), of(9))}, Set{pod("b", in("g"), of(1), on("n"), leaving)}}, 9},
		"all have ended":             {[]Event{Set{pod("a", in("g"), of(9), on("n"), ended)}, Set{pod("b", in("g"), of(5), on("n"), ended)}}, 5},
		"a new one after all ended":  {[]Event{Set{pod("a", in("g"), of(1), on("n"), ended)}, Set{pod("b", in("g"), of(7))}}, 7},
		"the PodGroup gets a class":  {[]Event{Set{pod("a", in("g"), of(1))}, Set{group("g", "", ranked("high"))}}, 9},
		"the PodGroup loses a class": {[]Event{Set{group("g", "", ranked("high"))}, Set{pod("a", in("g"), of(1))}, Set{group("g", "")}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(first...)
			for _, event := range test.events {
				c.Apply(event)
				c.Settle()
				sound(t, c)
			}
			if have := c.Job(jobID("g")).Priority; have != test.want {
				t.Errorf("the priority is %d, want %d", have, test.want)
			}
		})
	}
}

// The PodGroup and the pods of a job that is deleted go after it, in any order: it is said only of what does not
// follow.
func TestPodsThatOutliveThePodGroupOfTheirControllerAreNamed(t *testing.T) {
	owned := func(g *schedulingv1beta1.PodGroup) {
		g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "job"}, schedulingv1beta1.SchemeGroupVersion.WithKind("Any"))}
	}
	charged := func(p *corev1.Pod) { p.Annotations[decision.AccountAnnotation] = "q/g" }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} }
	for name, test := range map[string]struct {
		then []Event
		want string
	}{
		"they run on":                      {nil, "p1: Its PodGroup g is gone, and it is charged to queue q until it is gone, too, as are 1 others"},
		"one of them is deleted":           {[]Event{Set{pod("p1", in("g"), on("n"), charged, leaving)}}, "p2: Its PodGroup g is gone, and it is charged to queue q until it is gone, too"},
		"all are deleted":                  {[]Event{Set{pod("p1", in("g"), on("n"), charged, leaving)}, Delete{pod("p2", in("g"), on("n"), charged)}}, ""},
		"the PodGroup is made again":       {[]Event{Set{group("g", "q", owned, func(g *schedulingv1beta1.PodGroup) { g.UID = "later" })}}, ""},
		"they name another, which is said": {[]Event{Set{pod("p1", in("h"), on("n"), charged)}, Delete{pod("p2", in("g"), on("n"), charged)}}, `p1: It names PodGroup "h", and is charged with PodGroup g to queue q until it is gone; p1: Its PodGroup g is gone, and it is charged to queue q until it is gone, too`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{queue("q", "")}, Set{group("g", "q", owned)}, Set{pod("p1", in("g"), on("n"), charged)}, Set{pod("p2", in("g"), on("n"), charged)},
				Delete{group("g", "q", owned)})
			var got []string
			take := func(at int64) {
				for _, n := range c.TakeNotices(time.Unix(at, 0)) {
					got = append(got, n.Regarding.Name+": "+n.Message)
				}
			}
			take(100)
			if at := c.NoticesAt(); at != time.Unix(110, 0) || len(got) > 0 {
				t.Errorf("it says %q, and more at %s", got, at)
			}
			for _, e := range test.then {
				c.Apply(e)
			}
			take(109)
			take(110)
			take(1000)
			if got := strings.Join(got, "; "); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
			if !c.NoticesAt().IsZero() {
				t.Error("it looks again for ever")
			}
			sound(t, c)
		})
	}
}

// All pods of an admitted job have gone, so it claims nothing. Another comes and goes before the next cycle.
func TestAJobWithoutPodsClaimsNothingAgain(t *testing.T) {
	for name, gone := range map[string]Event{
		"the pod is deleted":        Delete{pod("a", in("g"), asks("cpu=1"))},
		"it moves to another group": Set{pod("a", in("h"), asks("cpu=1"))},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{queue("q", "")}, Set{group("g", "q", needs("cpu=4"), at(schedulingv1beta1.PodGroupInqueue))},
				Set{group("h", "q")}, Set{pod("a", in("g"), asks("cpu=1"))})
			c.FollowPods()
			c.Apply(Delete{pod("a", in("g"), asks("cpu=1"))})
			c.FollowPods()
			amounts(t, c, "without pods g", c.Queue("q").Own.Inqueue, "")
			c.Apply(Set{pod("a", in("g"), asks("cpu=1"))})
			amounts(t, c, "with a pod g", c.Queue("q").Own.Inqueue, "cpu=4")
			c.Apply(gone)
			amounts(t, c, "without pods again g", c.Queue("q").Own.Inqueue, "")
			sound(t, c)
		})
	}
}
