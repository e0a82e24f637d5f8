package eviction_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

// recorded is the record of an earlier process on the pods of a job: they have nominated nodes by a plan between jobs.
func recorded(plan, action string) option {
	return func(_ *schedulingv1beta1.PodGroup, pod *corev1.Pod) {
		if pod != nil {
			start := decision.PlanStart{ID: plan, Action: action, Scope: decision.BetweenJobs}
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, schedulingv1beta1.PromiseRecordKey, start.PromiseRecord())
		}
	}
}

// nominated gives a pod a nominated node.
func nominated(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.NominatedNodeName = node }
}

// spreadOver spreads a pod evenly over the nodes, with those that have a label.
func spreadOver(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
	}
}

// told marks a pod as a victim of a plan.
func told(plan string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		e := decision.Eviction{Plan: plan, Rule: "J1"}
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, schedulingv1beta1.EvictionRecordKey, e.Record())
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonPreemptionByScheduler, Message: "somebody takes the room"})
	}
}

// The plan cannot be taken up, but the pods of its job are promised what is free and on its way before another job gets
// it.
func TestTheJobOfALostPlanOfAnEarlierProcessComesFirst(t *testing.T) {
	w := start(t, with(everything, "enqueue, allocate", "allocate")).Set(nodes("cpu=2", "n1"), job("victim", "default", "low", 0, "n1", each(told("p1")), each(leaving)),
		job("late", "default", "low", 0, "-"), job("preemptor", "default", "high", 2, "- -", recorded("p1", "preempt"), one(0, nominated("n1")), one(1, nominated("n2"))))
	w.Expect("the plan for preemptor ends: the room that was promised is not there any more, preemptor-0 waits, preemptor-1 waits; " +
		"preemptor-0 is nominated to n1; preemptor-1 is nominated to n1")
}

func TestAPlanOfAnEarlierProcessIsTakenUpWhereverItStopped(t *testing.T) {
	const resent = "victim-1 leaves n2 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2"
	const afresh = resent
	bothNominated := []option{recorded("p1", "preempt"), one(0, nominated("n1")), one(1, nominated("n2"))}
	for name, test := range map[string]struct {
		victim, preemptor []option
		configuration     string
		want              string
	}{
		"nothing was written": {want: afresh},
		// A record without a nominated node is no plan.
		"only recorded": {preemptor: []option{recorded("p1", "preempt")}, want: afresh},
		"half nominated": {preemptor: []option{recorded("p1", "preempt"), one(0, nominated("n1"))},
			want: "the plan for preemptor ends: the room that was promised is not there any more, preemptor-0 waits; " + afresh},
		"nominated, and one victim told": {preemptor: bothNominated, victim: []option{one(0, told("p1"))},
			want: "the plan for preemptor ends: the room that was promised is not there any more, victim-0 stays, preemptor-0 waits, preemptor-1 waits; " + afresh},
		"nominated and told": {preemptor: bothNominated, victim: []option{each(told("p1"))},
			want: "victim-0 leaves n1 for preemptor by J1; victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2"},
		"one is on its way": {preemptor: bothNominated, victim: []option{each(told("p1")), one(1, leaving)},
			want: "victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2"},
		"all are on their way": {preemptor: bothNominated, victim: []option{each(told("p1")), each(leaving)}, want: "preemptor-0 is nominated to n1; preemptor-1 is nominated to n2"},
		"told for a plan that was ended": {victim: []option{each(told("p0"))},
			want: "the plan for  ends: its plan is not in force any more, victim-0 stays, victim-1 stays; " + afresh},
		"the action is not there any more": {preemptor: bothNominated, victim: []option{each(told("p1"))}, configuration: with(everything, "preempt, ", ""),
			want: "the plan for preemptor ends: action preempt is not in the configuration any more, victim-0 stays, victim-1 stays, preemptor-0 waits, preemptor-1 waits"},
		"a node is gone": {preemptor: []option{recorded("p1", "preempt"), one(0, nominated("n1")), one(1, nominated("n9"))}, victim: []option{each(told("p1"))},
			want: "the plan for preemptor ends: the room that was promised is not there any more, victim-0 stays, victim-1 stays, preemptor-0 waits, preemptor-1 waits; " + afresh},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := everything
			if test.configuration != "" {
				configuration = test.configuration
			}
			w := start(t, configuration).Set(nodes("cpu=1", "n1", "n2"), job("victim", "default", "low", 0, "n1 n2", test.victim...),
				job("preemptor", "default", "high", 2, "- -", test.preemptor...))
			w.Expect(test.want)
			if test.configuration != "" {
				return
			}
			for _, p := range w.Plans().All() {
				if p.Action != "preempt" {
					t.Errorf("plan %s is of action %q", p.ID, p.Action)
				}
			}
			w.Expect("").Terminate("victim-0", "victim-1").RemovePods("victim-0", "victim-1").Expect("preemptor-0 is bound to n1; preemptor-1 is bound to n2")
		})
	}
}

func TestPlansOfAnEarlierProcessAreRecovered(t *testing.T) {
	t.Run("a nomination without a plan holds if there is room", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("preemptor", "default", "low", 1, "-", one(0, nominated("n2"))))
		w.Expect("preemptor-0 is bound to n2")
	})
	t.Run("two plans of one name are two", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("gone", "default", "low", 0, "n1 n2", each(leaving)),
			job("a", "default", "mid", 1, "-", recorded("p1", "preempt"), one(0, nominated("n1"))),
			job("b", "default", "mid", 1, "-", recorded("p1", "preempt"), one(0, nominated("n2"))))
		w.Expect("a-0 is nominated to n1; b-0 is nominated to n2").RemovePods("gone-0", "gone-1").Expect("a-0 is bound to n1; b-0 is bound to n2")
	})
	// The first plan needs a pod nearby that the second evicts and replaces by its own. The names come in both orders.
	t.Run("a plan that rests on a later one", func(t *testing.T) {
		app := func(name string) option { return each(fixture.Labelled("app", name)) }
		for _, first := range []string{"a", "z"} {
			w := start(t, everything).Set(nodes("cpu=2", "n1"), job("g0", "default", "low", 0, "n1", each(told("p1")), each(leaving)),
				job("g1", "default", "low", 0, "n1", app("x"), each(told("p2")), each(leaving)),
				job(first, "default", "high", 1, "-", each(fixture.Near("app", "x")), recorded("p1", "preempt"), one(0, nominated("n1"))),
				job("m", "default", "high", 1, "-", app("x"), recorded("p2", "preempt"), one(0, nominated("n1"))))
			w.Expect("m-0 is nominated to n1; " + first + "-0 is nominated to n1").RemovePods("g0-0").Expect(first + "-0 is bound to n1").RemovePods("g1-0").Expect("m-0 is bound to n1")
		}
	})
	// With a, which needs the pod of m, s is spread evenly over the nodes. With l on its node it would not be.
	t.Run("a plan that rests on one that rests on a later one", func(t *testing.T) {
		app := func(name string) option { return each(fixture.Labelled("app", name)) }
		plan := func(id, node string) option {
			return func(g *schedulingv1beta1.PodGroup, p *corev1.Pod) {
				recorded(id, "preempt")(g, p)
				each(nominated(node))(g, p)
			}
		}
		w := start(t, everything).Set(nodes("cpu=2", "n1"), nodes("cpu=3", "n2"), job("leaving", "default", "low", 0, "n1 n2 n2", each(leaving)),
			job("attracts", "default", "low", 0, "n1", app("x"), each(told("p2")), each(leaving)), job("stays", "default", "high", 0, "n2", app("y")),
			job("a", "default", "high", 1, "-", app("y"), each(fixture.Near("app", "x")), plan("p1", "n1")), job("m", "default", "high", 1, "-", app("x"), plan("p2", "n1")),
			job("s", "default", "high", 1, "-", app("y"), each(spreadOver("y")), plan("p3", "n2")), job("l", "default", "high", 1, "-", app("y"), plan("p4", "n2")))
		w.Expect("m-0 is nominated to n1; a-0 is nominated to n1; s-0 is nominated to n2; l-0 is nominated to n2")
	})
	// The last of many different pods fits on its nominated node only before all others. Trying all orders would take
	// too long.
	t.Run("the pod that must be placed first is found", func(t *testing.T) {
		const pods = 7
		options := []option{each(fixture.Labelled("app", "x")), each(nominated("n1")), recorded("p1", "preempt")}
		for i := range pods {
			options = append(options, one(i, fixture.Asks(fmt.Sprintf("cpu=1 memory=%dMi", i+1))))
		}
		options = append(options, one(pods-1, spreadOver("x")))
		w := start(t, everything).Set(fixture.Node("n1", "cpu=7 memory=8Gi"), fixture.Node("n2", "cpu=1 memory=8Gi"), job("other", "default", "high", 0, "n2"),
			job("victim", "default", "low", 0, "n1", each(told("p1")), each(leaving)),
			job("preemptor", "default", "high", pods, strings.Repeat("- ", pods), options...))
		w.Expect("preemptor-0 is nominated to n1; preemptor-1 is nominated to n1; preemptor-2 is nominated to n1; preemptor-3 is nominated to n1; preemptor-4 is nominated to n1; " +
			"preemptor-5 is nominated to n1; preemptor-6 is nominated to n1").RemovePods("victim-0")
		w.Expect("preemptor-6 is bound to n1; preemptor-0 is bound to n1; preemptor-1 is bound to n1; preemptor-2 is bound to n1; preemptor-3 is bound to n1; preemptor-4 is bound to n1; " +
			"preemptor-5 is bound to n1")
	})
	// A task that is nominated to a cordoned node counts in what queues share, as it did for the scheduler that made
	// the plan.
	t.Run("a plan on a cordoned node", func(t *testing.T) {
		cordoned := fixture.Node("n1", "cpu=1")
		cordoned.Spec.Unschedulable = true
		tolerant := each(func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
		})
		objects := func(written ...option) []any {
			return []any{cordoned, job("victim", "default", "low", 0, "n1", written[0]), job("preemptor", "default", "high", 1, "-", written[1:]...)}
		}
		for name, configuration := range map[string]string{"capacity": everything, "proportion": with(everything, "capacity", "proportion")} {
			t.Run(name, func(t *testing.T) {
				as := each(func(*corev1.Pod) {})
				w := start(t, configuration).Set(objects(as, tolerant)...)
				w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1").Terminate("victim-0").Expect("")
				w = start(t, configuration).Set(objects(func(g *schedulingv1beta1.PodGroup, p *corev1.Pod) { each(told("p1"))(g, p); each(leaving)(g, p) },
					tolerant, recorded("p1", "preempt"), one(0, nominated("n1")))...)
				w.Expect("preemptor-0 is nominated to n1").Expect("").RemovePods("victim-0").Expect("preemptor-0 is bound to n1")
			})
		}
	})
	// It was decided when the plan was made. By now the budget may count victims of the same plan.
	t.Run("with whether it breaks a disruption budget", func(t *testing.T) {
		const kept, broken = "victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1", "victim-0 leaves n1 for preemptor by J1 past its budget; preemptor-0 is nominated to n1"
		for name, test := range map[string]struct {
			allowed int32
			past    bool
			want    string
		}{
			"kept":                  {1, false, kept},
			"kept, used up by now":  {0, false, kept},
			"broken":                {0, true, broken},
			"broken, larger by now": {1, true, broken},
		} {
			t.Run(name, func(t *testing.T) {
				marked := func(p *corev1.Pod) {
					told("p1")(p)
					e := decision.Eviction{Plan: "p1", Rule: "J1", PastBudget: test.past}
					p.Annotations[schedulingv1beta1.EvictionRecordKey] = e.Record()
				}
				w := start(t, everything).Set(fixture.Node("n1", "cpu=1"), fixture.Budget("b", "guarded", test.allowed),
					job("victim", "default", "low", 0, "n1", each(budgeted), each(marked)), job("preemptor", "default", "high", 1, "-", recorded("p1", "preempt"), one(0, nominated("n1"))))
				w.Expect(test.want)
			})
		}
	})
}

// The earlier process has made plans for two jobs, and some room of the lower one is lost. The pod that is evicted for
// it attracts the pod of the higher one, so that is bound first. Otherwise a third job would get what is free.
func TestAJobThatHasLostItsRoomComesAfterThoseAboveIt(t *testing.T) {
	foreign := fixture.Pod("foreign", fixture.On("n2"))
	foreign.Spec.SchedulerName = "other"
	start(t, everything).Set(nodes("cpu=2", "n1"), nodes("cpu=1", "n2", "n3"), foreign, job("other", "default", "low", 1, "-"),
		job("victim", "default", "low", 0, "n1", each(fixture.Labelled("app", "y"))),
		job("boss", "default", "high", 1, "-", each(fixture.Near("app", "y")), recorded("p1", "preempt"), one(0, nominated("n1"))),
		job("preemptor", "default", "mid", 2, "- -", recorded("p2", "preempt"), one(0, nominated("n2")), one(1, nominated("n3")))).
		Expect("boss-0 is bound to n1; the plan for preemptor ends: the room that was promised is not there any more, preemptor-0 waits, preemptor-1 waits; " +
			"victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n3; preemptor-1 is nominated to n1")
}
