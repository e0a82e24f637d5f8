package cache

import (
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// condemned is a pod that runs, of which a plan that has failed wanted the room.
func condemned(refused Refused) *Cache {
	c := newCluster(Set{node("n", "cpu=9")}, Set{space("first")}, Set{pdbOf("x", "x", 1)}, Set{pod("p", on("n"), running, app("x"))})
	c.plan("plan", nil, "p")
	refused.Pod, refused.UID = key("p"), "p-uid"
	c.Apply(PlanFailed{Plan: "plan", At: birth, Reason: "no", Refused: []Refused{refused}})
	return c
}

func space(label string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"name": label}}}
}

// writes is a pod on which stands that its eviction was refused, with a record if there is one.
func writes(record string, at time.Time) podOption {
	return func(p *corev1.Pod) {
		if record != "" {
			annotated(schedulingv1beta1.EvictionRecordKey, record)(p)
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse, Reason: decision.EvictionRefused,
			Message: "no", LastTransitionTime: metav1.NewTime(at)}}
	}
}

func TestAPodWhoseEvictionWasRefusedIsLeftAloneUntilAChange(t *testing.T) {
	p := func(options ...podOption) *corev1.Pod { return pod("p", append(options, on("n"), running)...) }
	for name, test := range map[string]struct {
		event Event
		want  bool
	}{
		"a budget of another pod changes":           {Set{pdbOf("y", "y", 3)}, false},
		"its budget says the same":                  {Set{pdbOf("x", "x", 1)}, false},
		"its budget allows more":                    {Set{pdbOf("x", "x", 2)}, true},
		"its budget allows less":                    {Set{pdbOf("x", "x", 0)}, true},
		"its budget selects others":                 {Set{pdbOf("x", "y", 1)}, true},
		"its budget goes":                           {Delete{pdbOf("x", "x", 1)}, true},
		"it has other labels":                       {Set{p(app("y"))}, true},
		"it has another annotation of ours":         {Set{p(app("x"), annotated("volcano.sh/preemptable", "true"))}, true},
		"it has another annotation":                 {Set{p(app("x"), annotated("example.com/heartbeat", "7"))}, false},
		"its namespace has other labels":            {Set{space("second")}, true},
		"another refusal of an earlier pod of it":   {PlanFailed{Plan: "old", Refused: []Refused{{Pod: key("p"), UID: types.UID("earlier")}}}, false},
		"it was made again":                         {Set{p(uid("later"))}, true},
		"the plan is said to have failed once more": {PlanFailed{Plan: "plan", At: birth, Reason: "no"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := condemned(Refused{Reason: "evicting p: no"})
			if status(t, c, "p", cluster.Running, "n"); c.Task(key("p")).MayBeAsked() {
				t.Fatal("it may be chosen again at once")
			}
			if c.Apply(test.event); c.Task(key("p")).MayBeAsked() != test.want {
				t.Errorf("it may be chosen again: %t", !test.want)
			}
			sound(t, c)
		})
	}
}

func TestTheBackOffOfRefusedEvictionsDoublesUpToMinutes(t *testing.T) {
	c, now := condemned(Refused{Reason: "no"}), birth
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		j := c.writer.Jobs.Named(jobID("waits"))
		task := c.Task(key("p"))
		if end := now.Add(want); !c.NextDeadline(now).Equal(end) {
			t.Fatalf("after refusal %d it is looked at again at %s, want %s", i+1, c.NextDeadline(now), end)
		}
		before := c.Present(j)
		if c.Expire(now.Add(want - 1)); task.MayBeAsked() {
			t.Fatalf("after refusal %d it may be chosen before %s", i+1, want)
		}
		now = now.Add(want)
		if c.Expire(now); !task.MayBeAsked() || c.Present(j) == before {
			t.Fatalf("after refusal %d it may not be chosen after %s, or nobody is told", i+1, want)
		}
		c.Apply(PlanFailed{Plan: "gone", At: now, Refused: []Refused{{Pod: key("p"), UID: "p-uid", Reason: "no"}}})
	}
}

func TestARefusalThatTheBudgetsShowAlreadyIsNotRemembered(t *testing.T) {
	if c := condemned(Refused{ByBudget: true}); c.Task(key("p")).MayBeAsked() {
		t.Error("it may be chosen at once though the model still shows that its budget would allow it")
	}
	c := newCluster(Set{node("n", "cpu=9")}, Set{pdbOf("x", "x", 0)}, Set{pod("p", on("n"), running, app("x"))})
	c.Apply(PlanFailed{Plan: "plan", At: birth, Refused: []Refused{{Pod: key("p"), UID: "p-uid", ByBudget: true}}})
	if !c.Task(key("p")).MayBeAsked() {
		t.Error("it is left alone though the search knows of its budget")
	}
}

func TestTheNextProcessKnowsWhatWasRefused(t *testing.T) {
	once, thrice := decision.Spared{Refused: "no", Refusals: 1}, decision.Spared{Refused: "no", Refusals: 3}
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		times int
		until time.Duration
	}{
		"as it was written":          {pod("p", on("n"), running, writes(once.Record(), birth)), 1, 30 * time.Second},
		"three times":                {pod("p", on("n"), running, writes(thrice.Record(), birth)), 3, 2 * time.Minute},
		"without a record":           {pod("p", on("n"), running, writes("", birth)), 1, 30 * time.Second},
		"with one that is none":      {pod("p", on("n"), running, writes("{refusals", birth)), 1, 30 * time.Second},
		"with a number that is none": {pod("p", on("n"), running, writes(`{"refusals":-7}`, birth)), 1, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{node("n", "cpu=9")}, Set{test.pod})
			r := c.Task(key("p")).Refusal
			if r == nil || r.Times != test.times || !r.Until.Equal(birth.Add(test.until)) {
				t.Fatalf("it remembers %+v", r)
			}
			if c.Expire(birth.Add(test.until)); !c.Task(key("p")).MayBeAsked() {
				t.Error("it is left alone for longer")
			}
		})
	}
	c := newCluster(Set{node("n", "cpu=9")}, Set{pod("p", on("n"), running, writes("", birth.Add(time.Hour)))},
		Set{pod("q", on("n"), deleting, writes("", birth))}, Set{pod("r", writes("", birth))})
	if c.Expire(birth); !c.Task(key("p")).MayBeAsked() {
		t.Error("a time that lies far ahead protects a pod")
	}
	if len(c.refusals.refused) != 0 {
		t.Error("pods that nobody could evict are remembered")
	}
}

func TestWhoseVictimsAreRefusedLooksForOthersAtOnce(t *testing.T) {
	for _, test := range []struct {
		sent, failures int // evictions sent, and failures before
		backsOff       bool
	}{{0, 0, false}, {0, 1, true}, {1, 0, false}, {1, 1, false}} {
		c, p := contested()
		victim, j := p.Victims[0], p.Job
		j.Internal.Failures = test.failures
		c.Apply(PlanFailed{Job: j.ID, Plan: p.ID, At: birth, Reason: "no", Sent: test.sent, Refused: []Refused{{Pod: victim.Key(), UID: victim.UID()}}})
		plans := c.Plans().TakeInterrupted()
		if isPaused := j.NotBefore.After(birth); isPaused != test.backsOff || (len(plans) == 0) != test.backsOff {
			t.Errorf("%+v: the job backs off: %t, and is looked at first: %v", test, isPaused, plans)
		}
		if test.sent == 0 && j.Internal.Failures != test.failures+1 {
			t.Errorf("%+v: the refusal is not counted", test)
		}
		if len(c.Plans().TakeInterrupted()) > 0 {
			t.Error("it is looked at first twice")
		}
	}
	c, p := contested()
	for range 9 {
		p.Job.Pause(birth)
	}
	c.Apply(PlanFailed{Job: jobID("preemptor"), Plan: p.ID, At: birth, Reason: "no", Refused: []Refused{{Pod: p.Victims[0].Key(), UID: p.Victims[0].UID()}}})
	if pause := p.Job.NotBefore.Sub(birth); pause != longestSearch {
		t.Errorf("it takes no free room for %s", pause)
	}
}
