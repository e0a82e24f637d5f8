package cache

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// belongsTo annotates a PodGroup with the scheduler that it belongs to.
func belongsTo(name string) func(*schedulingv1beta1.PodGroup) {
	return groupAnnotated(schedulingv1beta1.SchedulerNameKey, name)
}

func TestAJobBelongsToTheSchedulerThatItNamesElseToThatOfItsPods(t *testing.T) {
	for name, test := range map[string]struct {
		group *schedulingv1beta1.PodGroup
		pods  []*corev1.Pod
		want  string
	}{
		"nothing says whose it is":         {group("g", ""), nil, "volcano"},
		"it names one":                     {group("g", "", belongsTo("other")), nil, "other"},
		"its pods name one":                {group("g", ""), []*corev1.Pod{pod("p", in("g"), scheduler("other"))}, "other"},
		"its pods have nodes":              {group("g", ""), []*corev1.Pod{pod("p", in("g"), scheduler("other"), on("n"))}, "other"},
		"its own word counts first":        {group("g", "", belongsTo("volcano")), []*corev1.Pod{pod("p", in("g"), scheduler("other"))}, "volcano"},
		"the kube-scheduler owns none":     {group("g", ""), []*corev1.Pod{pod("p", in("g"), scheduler("default-scheduler"))}, "volcano"},
		"one pod is the kube-scheduler's":  {group("g", ""), []*corev1.Pod{pod("p", in("g"), scheduler("default-scheduler")), pod("q", in("g"), scheduler("other"))}, "other"},
		"of several the first counts":      {group("g", ""), []*corev1.Pod{pod("p", in("g")), pod("q", in("g"), scheduler("other"), on("n"))}, "other"},
		"of several the last does not":     {group("g", ""), []*corev1.Pod{pod("p", in("g")), pod("q", in("g"), scheduler("xyz"))}, "volcano"},
		"pods of another PodGroup are not": {group("g", ""), []*corev1.Pod{pod("p", in("h"), scheduler("other"))}, "volcano"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, groupFirst := range []bool{true, false} {
				c := newCluster()
				if groupFirst {
					c.Apply(Set{test.group})
				}
				for _, p := range test.pods {
					c.Apply(Set{p})
				}
				if !groupFirst {
					c.Apply(Set{test.group})
				}
				c.Settle()
				j := c.Job(jobID("g"))
				if got := j.Scheduler(); got != test.want || j.IsForeign != (test.want != "volcano") {
					t.Errorf("with the PodGroup first (%t) it belongs to %q, foreign %t; want %q", groupFirst, got, j.IsForeign, test.want)
				}
				sound(t, c)
			}
		})
	}
}

func TestAJobOfAnotherSchedulerIsCountedAndNotLookedAt(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{queue("q", "")},
		Set{group("g", "q", needs("cpu=3"), at(schedulingv1beta1.PodGroupInqueue))},
		Set{pod("placed", in("g"), scheduler("other"), on("n"), asks("cpu=1"))}, Set{pod("waits", in("g"), scheduler("other"))})
	c.Settle()
	j, q := c.Job(jobID("g")), c.Queue("q")
	amounts(t, c, "what the queue holds", q.Subtree.Allocated, "cpu=1 pods=1")
	amounts(t, c, "what the queue has promised", q.Subtree.Inqueue, "cpu=2")
	if len(c.Waiting()) != 0 || j.IsPendingAdmission() {
		t.Error("a job of another scheduler waits for this one")
	}
	echo := group("g", "q", needs("cpu=3"), at(schedulingv1beta1.PodGroupPending))
	c.Apply(Set{echo})
	c.Settle()
	if j.Phase != schedulingv1beta1.PodGroupPending || j.IsPendingAdmission() {
		t.Errorf("its phase is %s, not what its scheduler wrote, or it is at the door of this one", j.Phase)
	}
	amounts(t, c, "what the queue has promised", q.Subtree.Inqueue, "")
	sound(t, c)
}

func TestAJobThatIsHandedOverLosesWhatWasDecidedForIt(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{queue("q", "")}, Set{group("g", "q")}, Set{pod("p", in("g"))})
	c.Settle()
	j := c.Job(jobID("g"))
	c.Admit(j)
	c.Pipeline(c.Task(key("p")), c.Node("n"))
	c.Keep()
	c.Plans().Adopt(&cluster.Plan{ID: "1", Job: j})
	c.Apply(Set{group("g", "q", belongsTo("other"))})
	c.Settle()
	if !j.IsForeign || j.Plan != nil || j.Phase != "" || len(c.Plans().TakeCancelled()) != 1 {
		t.Errorf("foreign %t, phase %q, plan %v", j.IsForeign, j.Phase, j.Plan)
	}
	status(t, c, "p", cluster.Pending, "")
	sound(t, c)
	c.Apply(Set{group("g", "q")})
	c.Settle()
	if j.IsForeign || len(c.Waiting()) != 1 {
		t.Error("a job that came back is not looked at")
	}
	sound(t, c)
}

func TestWhoseAJobIsFollowsThePodsThatAreThere(t *testing.T) {
	c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"), scheduler("other"))})
	c.Settle()
	if !c.Job(jobID("g")).IsForeign {
		t.Fatal("a job of another scheduler's pods is taken for its own")
	}
	for name, event := range map[string]Event{
		"the pod is gone":                 Delete{pod("p", in("g"), scheduler("other"))},
		"the pod names another job":       Set{pod("p", in("h"), scheduler("other"))},
		"a pod of this scheduler took it": Set{pod("p", in("g"), uid("new"))},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{group("g", "")}, Set{pod("p", in("g"), scheduler("other"))})
			c.Settle()
			c.Apply(event)
			c.Settle()
			if c.Job(jobID("g")).IsForeign {
				t.Error("it still belongs to the other scheduler")
			}
			sound(t, c)
		})
	}
}

func nominated(node string) podOption {
	return func(p *corev1.Pod) { p.Status.NominatedNodeName = node }
}

func TestANomineeOfAnotherSchedulerHasItsRoom(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{pod("v", scheduler("other"), asks("cpu=3"), on("n"), deleting)})
	n := c.Node("n")
	room := func(what string, free, future int64) {
		t.Helper()
		c.Settle()
		sound(t, c)
		if n.Free(resources.CPU) != free || n.Future(resources.CPU) != future {
			t.Errorf("%s: %d are free and %d will be, want %d and %d", what, n.Free(resources.CPU), n.Future(resources.CPU), free, future)
		}
	}
	theirs := func(options ...podOption) *corev1.Pod {
		return pod("p", append([]podOption{scheduler("other"), asks("cpu=2"), in("g")}, options...)...)
	}
	room("before", 1000, 4000)
	c.Apply(Set{theirs()})
	room("it waits", 1000, 4000)
	c.Apply(Set{theirs(nominated("n"))})
	room("it is nominated", 1000, 2000)
	if j := c.Job(jobID("g")); j.Scheduler() != "other" || len(j.Tasks()) > 0 {
		t.Errorf("its job is of scheduler %s and has %d tasks, want none of other", j.Scheduler(), len(j.Tasks()))
	}
	c.Apply(Delete{pod("v", scheduler("other"))})
	room("the victim is gone", 2000, 2000)
	c.Apply(Set{theirs(nominated("n"), gated)})
	room("it is gated", 4000, 4000)
	c.Apply(Set{theirs(nominated("n"))})
	c.Apply(Delete{node("n", "cpu=4")})
	c.Apply(Set{node("n", "cpu=4")})
	room("the node comes back", 2000, 2000)
	c.Apply(Set{theirs(on("n"))})
	room("it has the node", 2000, 2000)
	if j := c.Job(jobID("g")); len(j.Tasks()) != 1 {
		t.Errorf("its job has %d tasks, want 1", len(j.Tasks()))
	}
	c.Apply(Set{pod("q", asks("cpu=2"), nominated("n"))})
	room("one of ours has no plan", 2000, 2000)
}
