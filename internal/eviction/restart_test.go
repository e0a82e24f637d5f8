package eviction_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// takeBack is a third evicting action: reclaim under another name.
type takeBack struct{ rules framework.EvictionRules }

const takeBackName = "example.com/take-back"

func (takeBack) Name() string                             { return takeBackName }
func (a takeBack) EvictionRules() framework.EvictionRules { return a.rules }
func (a takeBack) Execute(s *framework.Session) {
	eviction.InTurn(s, s.IsStarving, eviction.SearchOf(s, a).Reclaim)
}
func (a takeBack) MakeRoom(s *framework.Session, j *cluster.Job) {
	if s.IsStarving(j) {
		eviction.SearchOf(s, a).Reclaim(j)
	}
}
func (a takeBack) AdmitsByEviction(s *framework.Session, j *cluster.Job) (bool, *verdict.Verdict) {
	return eviction.SearchOf(s, a).CouldAdmit(j)
}

var takingBack = scheduler.WithAction(framework.ActionFactory{Name: takeBackName, Spec: conf.Spec{Arguments: rules.Arguments()},
	New: func(arguments conf.Arguments) (framework.Action, error) {
		return takeBack{rules.FromArguments(decision.ScopesOf(decision.BetweenQueues), arguments)}, nil
	}})

// story is a simulated cluster whose scheduler may end between any two writes of a plan.
type story struct {
	t        *testing.T
	text     []string
	lastly   int // the last cycle with a decision
	cycles   int
	policies func() *framework.Policy
	led      *simulator.Led
}

func lead(t *testing.T, configuration string, objects []runtime.Object, crash *simulator.CrashPlan) *story {
	t.Helper()
	s := &story{t: t, policies: func() *framework.Policy {
		policy, err := loop.Policy(configuration, takingBack)
		if err != nil {
			t.Fatal(err)
		}
		return policy
	}}
	input, err := manifests.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	options := simulator.Options{SchedulerNames: []string{"volcano"}, Grace: true, Observe: func(d *decision.Decisions) {
		s.cycles++
		if text := loop.Describe(d); text != "" {
			s.text, s.lastly = append(s.text, text), s.cycles
		}
	}}
	if s.led, err = simulator.Lead(input, s.policies(), options); err != nil {
		t.Fatal(err)
	}
	if crash != nil {
		crash.Policy = s.policies
		s.led.Crash(*crash)
	}
	for range 80 {
		if err := s.led.Cycle(); err != nil {
			t.Fatal(err)
		}
	}
	if s.lastly > 60 {
		t.Errorf("the last 20 of 80 cycles were not at rest:\n%s", strings.Join(s.text, "\n"))
	}
	return s
}

// outcome lists where every pod is at the end.
func (s *story) outcome() string {
	var b strings.Builder
	for _, o := range s.led.Objects() {
		if pod, ok := o.(*corev1.Pod); ok {
			fmt.Fprintf(&b, "%s on %q, nominated %q\n", pod.Name, pod.Spec.NodeName, pod.Status.NominatedNodeName)
		}
	}
	return b.String()
}

// betweenQueues is a world in which a gang reclaims what another queue holds above its share.
func betweenQueues() []runtime.Object {
	var objects []runtime.Object
	add := func(things ...[]runtime.Object) {
		for _, thing := range things {
			objects = append(objects, thing...)
		}
	}
	add([]runtime.Object{fixture.PriorityClass("low", 10), fixture.PriorityClass("high", 100), queue("ours", 0, "cpu=2", "", ""), queue("theirs", 0, "cpu=2", "", "")},
		nodes("cpu=2", "n1", "n2"), job("victim", "theirs", "low", 0, "n1 n1 n2 n2"), job("preemptor", "ours", "low", 2, "- -"))
	return objects
}

func TestAThirdEvictingActionComesToRestAndSurvivesARestart(t *testing.T) {
	const ours, theirs = "enqueue, allocate, reclaim", "enqueue, allocate, " + takeBackName
	configured := func(actions string) string {
		return with(everything, "enqueue, allocate, preempt, reclaim, backfill", actions)
	}
	want := lead(t, configured(ours), betweenQueues(), nil)
	if !strings.Contains(strings.Join(want.text, "\n"), "leaves") {
		t.Fatalf("nobody leaves:\n%s", strings.Join(want.text, "\n"))
	}
	if got := lead(t, configured(theirs), betweenQueues(), nil); strings.Join(got.text, "\n") != strings.Join(want.text, "\n") {
		t.Errorf("under another name it decides\n%s\nwant\n%s", strings.Join(got.text, "\n"), strings.Join(want.text, "\n"))
	}
	for writes := range 9 {
		crash := simulator.CrashPlan{Writes: writes, OfPlans: true}
		want, got := lead(t, configured(ours), betweenQueues(), &crash), lead(t, configured(theirs), betweenQueues(), &crash)
		if strings.Join(got.text, "\n") != strings.Join(want.text, "\n") || got.outcome() != want.outcome() {
			t.Errorf("after a restart at write %d under another name it decides\n%s\nwant\n%s", writes, strings.Join(got.text, "\n"), strings.Join(want.text, "\n"))
		}
	}
}

// reword changes the message of every condition.
func reword(led *simulator.Led) error {
	for _, o := range led.Objects() {
		o = o.DeepCopyObject()
		switch o := o.(type) {
		case *corev1.Pod:
			for i := range o.Status.Conditions {
				o.Status.Conditions[i].Message = "in other words (plan z) (refusal 9)"
			}
		case *schedulingv1beta1.PodGroup:
			for i := range o.Status.Conditions {
				o.Status.Conditions[i].Message = "in other words by rule Z9"
			}
		default:
			continue
		}
		if err := led.Set(o); err != nil {
			return err
		}
	}
	return nil
}

func TestRecoveryReadsNoMessages(t *testing.T) {
	low, high := fixture.PriorityClass("low", 10), fixture.PriorityClass("high", 100)
	join := func(lists ...[]runtime.Object) (all []runtime.Object) {
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	for name, objects := range map[string][]runtime.Object{
		"between queues": betweenQueues(),
		"between jobs": join([]runtime.Object{fixture.Queue("default"), low, high}, nodes("cpu=1", "n1", "n2"),
			job("victim", "default", "low", 0, "n1 n2"), job("preemptor", "default", "high", 2, "- -")),
		"a lone pod": join([]runtime.Object{queue("ours", 0, "cpu=1", "", ""), queue("theirs", 0, "cpu=1", "", ""), low, high}, nodes("cpu=1", "n1"),
			job("victim", "theirs", "low", 0, "n1"), job("preemptor", "ours", "high", 1, "-", lone)),
		"within a job": join([]runtime.Object{fixture.Queue("default"), low}, nodes("cpu=1", "n1"),
			job("victim", "default", "low", 0, "n1 -", one(1, ranking("9")))),
	} {
		t.Run(name, func(t *testing.T) {
			for writes := range 9 {
				crash := simulator.CrashPlan{Writes: writes, OfPlans: true}
				want := lead(t, everything, objects, &crash)
				crash.Meanwhile = reword
				got := lead(t, everything, objects, &crash)
				if text := strings.Join(got.text, "\n"); text != strings.Join(want.text, "\n") || got.outcome() != want.outcome() {
					t.Errorf("with a restart at write %d and every message reworded it decides\n%s\nwant\n%s", writes, text, strings.Join(want.text, "\n"))
				}
				if !strings.Contains(strings.Join(got.text, "\n"), "leaves") {
					t.Errorf("nobody leaves:\n%s", strings.Join(got.text, "\n"))
				}
			}
		})
	}
}

func TestWhatIsRecordedIsJSONOfASchema(t *testing.T) {
	w := start(t, everything).Set(fixture.Node("n1", "cpu=1"), job("victim", "default", "low", 0, "n1"), job("preemptor", "default", "high", 1, "-"))
	w.Cycle()
	p := w.Result.Decisions.Plans[0]
	var promise, evicted map[string]any
	if json.Unmarshal([]byte(p.PromiseRecord()), &promise) != nil || json.Unmarshal([]byte(p.Evictions[0].Record()), &evicted) != nil {
		t.Fatalf("%s and %s are no JSON", p.PromiseRecord(), p.Evictions[0].Record())
	}
	if promise["plan"] != p.ID || promise["action"] != "preempt" || promise["scope"] != "BetweenJobs" || evicted["plan"] != p.ID || evicted["rule"] != "J1" {
		t.Errorf("recorded are %v and %v", promise, evicted)
	}
}
