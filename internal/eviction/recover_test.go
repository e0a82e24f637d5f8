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

// recorded is what a process before this one recorded on the pods of a job: they are promised nodes by a plan between jobs.
func recorded(plan, action string) option {
	return func(_ *schedulingv1beta1.PodGroup, pod *corev1.Pod) {
		if pod != nil {
			start := decision.PlanStart{ID: plan, Action: action, Scope: decision.BetweenJobs}
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, schedulingv1beta1.PromiseRecordKey, start.PromiseRecord())
		}
	}
}

// nominated is a pod that was promised a node.
func nominated(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.NominatedNodeName = node }
}

// told is a pod that was told to leave for a plan.
func told(plan string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		e := decision.Eviction{Plan: plan, Law: "J1"}
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, schedulingv1beta1.EvictionRecordKey, e.Record())
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonPreemptionByScheduler, Message: "somebody takes the room"})
	}
}

func TestAPlanOfAnEarlierProcessIsTakenUpWhereverItStopped(t *testing.T) {
	const resent = "giver-1 leaves n2 for taker by J1; giver-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n2"
	const afresh = resent
	bothNominated := []option{recorded("p1", "preempt"), one(0, nominated("n1")), one(1, nominated("n2"))}
	for name, test := range map[string]struct {
		giver, taker  []option
		configuration string
		want          string
	}{
		"nothing was written": {want: afresh},
		// What was recorded and promised to nobody is no plan.
		"only recorded": {taker: []option{recorded("p1", "preempt")}, want: afresh},
		"half nominated": {taker: []option{recorded("p1", "preempt"), one(0, nominated("n1"))},
			want: "the plan of taker ends: the room that was promised is not there any more, taker-0 waits; " + afresh},
		"nominated, and one victim told": {taker: bothNominated, giver: []option{one(0, told("p1"))},
			want: "the plan of taker ends: the room that was promised is not there any more, giver-0 stays, taker-0 waits, taker-1 waits; " + afresh},
		"nominated and told": {taker: bothNominated, giver: []option{each(told("p1"))},
			want: "giver-0 leaves n1 for taker by J1; giver-1 leaves n2 for taker by J1; taker-0 is promised n1; taker-1 is promised n2"},
		"one is on its way": {taker: bothNominated, giver: []option{each(told("p1")), one(1, leaving)},
			want: "giver-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n2"},
		"all are on their way": {taker: bothNominated, giver: []option{each(told("p1")), each(leaving)}, want: "taker-0 is promised n1; taker-1 is promised n2"},
		"told for a plan that was ended": {giver: []option{each(told("p0"))},
			want: "the plan of  ends: its plan is not in force any more, giver-0 stays, giver-1 stays; " + afresh},
		"the action is not there any more": {taker: bothNominated, giver: []option{each(told("p1"))}, configuration: with(everything, "preempt, ", ""),
			want: "the plan of taker ends: action preempt is not in the configuration any more, giver-0 stays, giver-1 stays, taker-0 waits, taker-1 waits"},
		"a node is gone": {taker: []option{recorded("p1", "preempt"), one(0, nominated("n1")), one(1, nominated("n9"))}, giver: []option{each(told("p1"))},
			want: "the plan of taker ends: the room that was promised is not there any more, giver-0 stays, giver-1 stays, taker-0 waits, taker-1 waits; " + afresh},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := everything
			if test.configuration != "" {
				configuration = test.configuration
			}
			w := newWorld(t, configuration).set(nodes("cpu=1", "n1", "n2"), job("giver", "default", "low", 0, "n1 n2", test.giver...),
				job("taker", "default", "high", 2, "- -", test.taker...))
			w.expect(test.want)
			if test.configuration != "" {
				return
			}
			for _, p := range w.Cluster().Plans() {
				if p.Action != "preempt" {
					t.Errorf("plan %s is of action %q", p.ID, p.Action)
				}
			}
			w.expect("").leave("giver-0", "giver-1").die("giver-0", "giver-1").expect("taker-0 goes to n1; taker-1 goes to n2")
		})
	}
}

func TestAPromiseWithoutAnyPlanHoldsIfThereIsRoom(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=1", "n1", "n2"), job("taker", "default", "low", 1, "-", one(0, nominated("n2"))))
	w.expect("taker-0 goes to n2")
}

func TestTwoPlansOfOneNameAreTwo(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=1", "n1", "n2"), job("gone", "default", "low", 0, "n1 n2", each(leaving)),
		job("a", "default", "mid", 1, "-", recorded("p1", "preempt"), one(0, nominated("n1"))),
		job("b", "default", "mid", 1, "-", recorded("p1", "preempt"), one(0, nominated("n2"))))
	w.expect("a-0 is promised n1; b-0 is promised n2").die("gone-0", "gone-1").expect("a-0 goes to n1; b-0 goes to n2")
}

// The pod that the first is to be near leaves for the second, whose pod takes its place: neither order of the names matters.
func TestAPlanThatRestsOnALaterOneIsTakenUp(t *testing.T) {
	app := func(name string) option { return each(fixture.Labelled("app", name)) }
	for _, first := range []string{"a", "z"} {
		w := newWorld(t, everything).set(nodes("cpu=2", "n1"), job("g0", "default", "low", 0, "n1", each(told("p1")), each(leaving)),
			job("g1", "default", "low", 0, "n1", app("x"), each(told("p2")), each(leaving)),
			job(first, "default", "high", 1, "-", each(fixture.Near("app", "x")), recorded("p1", "preempt"), one(0, nominated("n1"))),
			job("m", "default", "high", 1, "-", app("x"), recorded("p2", "preempt"), one(0, nominated("n1"))))
		w.expect("m-0 is promised n1; " + first + "-0 is promised n1").die("g0-0").expect(first + "-0 goes to n1").die("g1-0").expect("m-0 goes to n1")
	}
}

// The last of many unlike pods fits where it was promised a node only before all others. To try all orders would take too long.
func TestThePodThatMustComeFirstIsFound(t *testing.T) {
	const pods = 7
	options := []option{each(fixture.Labelled("app", "x")), each(nominated("n1")), recorded("p1", "preempt")}
	for i := range pods {
		options = append(options, one(i, fixture.Asks(fmt.Sprintf("cpu=1 memory=%dMi", i+1))))
	}
	options = append(options, one(pods-1, func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}
	}))
	w := newWorld(t, everything).set(fixture.Node("n1", "cpu=7 memory=8Gi"), fixture.Node("n2", "cpu=1 memory=8Gi"), job("other", "default", "high", 0, "n2"),
		job("giver", "default", "low", 0, "n1", each(told("p1")), each(leaving)),
		job("taker", "default", "high", pods, strings.Repeat("- ", pods), options...))
	w.expect("taker-0 is promised n1; taker-1 is promised n1; taker-2 is promised n1; taker-3 is promised n1; taker-4 is promised n1; " +
		"taker-5 is promised n1; taker-6 is promised n1").die("giver-0")
	w.expect("taker-6 goes to n1; taker-0 goes to n1; taker-1 goes to n1; taker-2 goes to n1; taker-3 goes to n1; taker-4 goes to n1; " +
		"taker-5 goes to n1")
}

// What is promised on a node that is cordoned counts in what queues share, as it does for the scheduler that made the plan.
func TestAPlanOnACordonedNodeIsTakenUp(t *testing.T) {
	cordoned := fixture.Node("n1", "cpu=1")
	cordoned.Spec.Unschedulable = true
	tolerant := each(func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
	})
	objects := func(written ...option) []any {
		return []any{cordoned, job("giver", "default", "low", 0, "n1", written[0]), job("taker", "default", "high", 1, "-", written[1:]...)}
	}
	for name, configuration := range map[string]string{"capacity": everything, "proportion": with(everything, "capacity", "proportion")} {
		t.Run(name, func(t *testing.T) {
			as := each(func(*corev1.Pod) {})
			w := newWorld(t, configuration).set(objects(as, tolerant)...)
			w.expect("giver-0 leaves n1 for taker by J1; taker-0 is promised n1").leave("giver-0").expect("")
			w = newWorld(t, configuration).set(objects(func(g *schedulingv1beta1.PodGroup, p *corev1.Pod) { each(told("p1"))(g, p); each(leaving)(g, p) },
				tolerant, recorded("p1", "preempt"), one(0, nominated("n1")))...)
			w.expect("taker-0 is promised n1").expect("").die("giver-0").expect("taker-0 goes to n1")
		})
	}
}

// It was decided when the plan was made: what the budget says by now may count victims of the same plan.
func TestRecoveryRepeatsWhetherABudgetIsBroken(t *testing.T) {
	const kept, broken = "giver-0 leaves n1 for taker by J1; taker-0 is promised n1", "giver-0 leaves n1 for taker by J1 past its budget; taker-0 is promised n1"
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
				e := decision.Eviction{Plan: "p1", Law: "J1", PastBudget: test.past}
				p.Annotations[schedulingv1beta1.EvictionRecordKey] = e.Record()
			}
			w := newWorld(t, everything).set(fixture.Node("n1", "cpu=1"), budget("b", "guarded", test.allowed),
				job("giver", "default", "low", 0, "n1", each(budgeted), each(marked)), job("taker", "default", "high", 1, "-", recorded("p1", "preempt"), one(0, nominated("n1"))))
			w.expect(test.want)
		})
	}
}
