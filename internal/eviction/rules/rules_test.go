package rules_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/eviction/rules"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/capacity"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// evicting is an action that evicts and that has nothing but a name.
type evicting struct{ framework.EvictingAction }

func (evicting) Name() string                           { return "evicting" }
func (evicting) EvictionRules() framework.EvictionRules { return framework.EvictionRules{} }

// voter is a plugin that only allows evicting pods whose names begin with a prefix.
type voter struct{ name, allows string }

func (v voter) Name() string { return v.name }
func (v voter) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	if strings.HasPrefix(d.Victims[0].Pod.Name, v.allows) {
		return framework.Permit, verdict.Protection{}
	}
	return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: "it rejects them"}
}

var marked = fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")

// modelOf is a cluster with queues of three priorities, "default" in the middle, and in that queue the job preemptor,
// of priority
// 50. It has a pod that waits and one that runs, of lower task priority.
func modelOf(t *testing.T) *harness.Model {
	ranked := func(name string, priority int32) *schedulingv1beta1.Queue {
		return fixture.Queue(name, func(q *schedulingv1beta1.Queue) {
			q.Spec.Priority, q.Spec.Deserved = priority, fixture.List("cpu=1")
		})
	}
	m := harness.ForPlugin(t, capacity.Factory(), "").Set(fixture.Node("n", "cpu=64"), ranked("default", 1), ranked("above", 2), ranked("below", 0),
		fixture.PriorityClass("low", 10), fixture.PriorityClass("mid", 50), fixture.PriorityClass("high", 100))
	m.Set(inClass("preemptor", "default", "mid"), fixture.Pod("waits", fixture.In("preemptor"), ranking("5")),
		fixture.Pod("own", fixture.In("preemptor"), fixture.On("n"), marked, ranking("1")))
	return m
}

func inClass(name, queue, class string) *schedulingv1beta1.PodGroup {
	g := fixture.Group(name, queue, 1)
	g.Spec.PriorityClassName = class
	return g
}

func ranking(value string) func(*corev1.Pod) {
	return fixture.Annotated(schedulingv1beta1.TaskPriorityAnnotationKey, value)
}

// rulesFor opens a session and returns the rules for the job preemptor in a scope.
func rulesFor(m *harness.Model, scope decision.Scope) *rules.Rules {
	r := rules.Of(m.Open(), evicting{}).For(scope, m.JobNamed("preemptor"))
	r.SetPod(m.TaskNamed("waits"))
	return r
}

var scopes = []decision.Scope{decision.BetweenQueues, decision.BetweenJobs, decision.Anywhere, decision.WithinJob}

// scopesWhere returns the scopes in which the rules for the job preemptor hold what is asked.
func scopesWhere(m *harness.Model, holds func(*rules.Rules) bool) (found []decision.Scope) {
	for _, scope := range scopes {
		if holds(rulesFor(m, scope)) {
			found = append(found, scope)
		}
	}
	return found
}

func TestAScopeSaysWhichPodsItConcerns(t *testing.T) {
	gone := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: harness.Start} }
	over := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	for name, test := range map[string]struct {
		group *schedulingv1beta1.PodGroup
		pod   *corev1.Pod
		want  []decision.Scope
	}{
		"of its own job":           {nil, fixture.Pod("p", fixture.In("preemptor"), fixture.On("n")), []decision.Scope{decision.WithinJob}},
		"of a job of its queue":    {fixture.Group("g", "default", 1), fixture.Pod("p", fixture.In("g"), fixture.On("n")), []decision.Scope{decision.BetweenJobs, decision.Anywhere}},
		"of a job elsewhere":       {fixture.Group("g", "below", 1), fixture.Pod("p", fixture.In("g"), fixture.On("n")), []decision.Scope{decision.BetweenQueues, decision.Anywhere}},
		"that waits for a node":    {fixture.Group("g", "below", 1), fixture.Pod("p", fixture.In("g")), nil},
		"that is being deleted":    {fixture.Group("g", "below", 1), fixture.Pod("p", fixture.In("g"), fixture.On("n"), gone), nil},
		"that has finished":        {fixture.Group("g", "below", 1), fixture.Pod("p", fixture.In("g"), fixture.On("n"), over), nil},
		"without a PodGroup":       {nil, fixture.Pod("p", fixture.In("g"), fixture.On("n")), nil},
		"that names no PodGroup":   {nil, fixture.Pod("p", fixture.On("n")), nil},
		"whose queue is not there": {fixture.Group("g", "none", 1), fixture.Pod("p", fixture.In("g"), fixture.On("n")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelOf(t).Set(test.pod)
			if test.group != nil {
				m.Set(test.group)
			}
			got := scopesWhere(m, func(r *rules.Rules) bool { return r.Concerns(m.TaskNamed("p")) })
			if !slices.Equal(got, test.want) {
				t.Errorf("it concerns %v, want %v", got, test.want)
			}
		})
	}
}

func TestARuleProtectsAPodInSomeScopes(t *testing.T) {
	protected := func(by string) map[decision.Scope]string {
		all := map[decision.Scope]string{}
		for _, scope := range scopes {
			all[scope] = by
		}
		return all
	}
	foreign := func(g *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
		g.Annotations[schedulingv1beta1.SchedulerNameKey] = "other"
		return g
	}
	for name, test := range map[string]struct {
		group     *schedulingv1beta1.PodGroup
		options   []func(*corev1.Pod)
		byDefault bool
		waits     string // what the preemptor's pod requests
		want      map[decision.Scope]string
	}{
		"of a lower job": {inClass("g", "below", "low"), []func(*corev1.Pod){marked}, false, "cpu=1", map[decision.Scope]string{decision.WithinJob: ""}},
		"of an equal job": {inClass("g", "default", "mid"), []func(*corev1.Pod){marked}, false, "cpu=1",
			map[decision.Scope]string{decision.BetweenJobs: "J1", decision.Anywhere: "J1"}},
		"of a higher job below": {inClass("g", "below", "high"), []func(*corev1.Pod){marked}, false, "cpu=1",
			map[decision.Scope]string{decision.BetweenJobs: "J1", decision.Anywhere: "J1"}},
		"of a queue of higher priority": {inClass("g", "above", "low"), []func(*corev1.Pod){marked}, false, "cpu=1",
			map[decision.Scope]string{decision.BetweenQueues: "Q1", decision.BetweenJobs: "Q1", decision.Anywhere: "Q1"}},
		"not marked":                 {inClass("g", "below", "low"), nil, false, "cpu=1", protected("P2 (not marked")},
		"not marked, by switch":      {inClass("g", "below", "low"), nil, true, "cpu=1", nil},
		"of another scheduler":       {foreign(inClass("g", "below", "low")), []func(*corev1.Pod){marked}, false, "cpu=1", protected("P2 (their PodGroup belongs to another scheduler)")},
		"where nothing is asked for": {inClass("g", "below", "low"), []func(*corev1.Pod){marked}, false, "", protected("P3")},
		"where neither asks":         {inClass("g", "below", "low"), []func(*corev1.Pod){marked, fixture.Asks("")}, false, "", nil},
		"of an equal task priority": {inClass("g", "below", "low"), []func(*corev1.Pod){marked, ranking("5")}, false, "cpu=1",
			map[decision.Scope]string{decision.WithinJob: "P1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelOf(t).Use(conf.Compatibility{PreemptableByDefault: test.byDefault})
			m.Set(test.group, fixture.Pod("p", append(test.options, fixture.In("g"), fixture.On("n"))...),
				fixture.Pod("waits", fixture.In("preemptor"), ranking("5"), fixture.Asks(test.waits)))
			for _, scope := range scopes {
				got := rulesFor(m, scope).Protects(m.TaskNamed("p")).String()
				if want := test.want[scope]; want == "" && got != "" || !strings.HasPrefix(got, strings.TrimSpace("rule "+want)) && want != "" {
					t.Errorf("in scope %s it is protected by %q, want %q", scope, got, want)
				}
			}
		})
	}
}

func TestNominatedNodesAreTakenFromLowerJobsOnly(t *testing.T) {
	for name, test := range map[string]struct {
		group *schedulingv1beta1.PodGroup
		want  []decision.Scope
	}{
		"a lower job of the queue": {inClass("g", "default", "low"), []decision.Scope{decision.BetweenJobs, decision.Anywhere}},
		"an equal job":             {inClass("g", "default", "mid"), nil},
		"a higher job":             {inClass("g", "default", "high"), nil},
		"a lower job elsewhere":    {inClass("g", "below", "low"), []decision.Scope{decision.BetweenQueues, decision.Anywhere, decision.WithinJob}},
		"a higher job elsewhere":   {inClass("g", "below", "high"), []decision.Scope{decision.BetweenQueues, decision.WithinJob}},
		"a lower job above":        {inClass("g", "above", "low"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelOf(t).Set(test.group)
			got := scopesWhere(m, func(r *rules.Rules) bool { return r.Outranks(m.JobNamed("g")) })
			if !slices.Equal(got, test.want) {
				t.Errorf("it outranks the job in %v, want %v", got, test.want)
			}
		})
	}
	m := modelOf(t)
	for _, scope := range scopes {
		if rulesFor(m, scope).Outranks(m.JobNamed("preemptor")) {
			t.Errorf("in scope %s it outranks itself", scope)
		}
	}
}

func TestAnEvictionNamesItsCause(t *testing.T) {
	m := modelOf(t).Set(inClass("sibling", "default", "low"), fixture.Pod("sibling-0", fixture.In("sibling"), fixture.On("n"), marked),
		inClass("lower", "below", "low"), fixture.Pod("lower-0", fixture.In("lower"), fixture.On("n"), marked))
	m.Set(fixture.Queue("equal", func(q *schedulingv1beta1.Queue) { q.Spec.Priority, q.Spec.Deserved = 1, fixture.List("cpu=1") }),
		fixture.Group("equal", "equal", 1), fixture.Pod("equal-0", fixture.In("equal"), fixture.On("n"), marked, fixture.Asks("cpu=3")))
	for name, test := range map[string]struct {
		scope              decision.Scope
		victim, rule, want string
	}{
		"within the job":      {decision.WithinJob, "own", "P1", "Preempted by pod waits (task priority 5) of the same job: higher task priority than 1 (rule P1)"},
		"between jobs":        {decision.BetweenJobs, "sibling-0", "J1", "Preempted by job work/preemptor (priority 50) in queue default: higher job priority than 10 (rule J1)"},
		"by a lone pod":       {decision.Anywhere, "lower-0", "A3", "Preempted by job work/preemptor (priority 50) in queue default: a lone pod of higher priority than 10 (rule A3)"},
		"from a lower queue":  {decision.BetweenQueues, "lower-0", "Q1", "Preempted by job work/preemptor in queue default (queue priority 1): higher queue priority than 0 of queue below (rule Q1)"},
		"from an equal queue": {decision.BetweenQueues, "equal-0", "Q1", "Preempted by job work/preemptor in queue default: queue equal holds more than it deserves (rule Q1); it keeps cpu 3 and deserves 1"},
	} {
		t.Run(name, func(t *testing.T) {
			rule, message := rulesFor(m, test.scope).Cause(m.TaskNamed(test.victim), []*cluster.Task{m.TaskNamed("waits")})
			if rule != test.rule || message != test.want {
				t.Errorf("by %s: %s\nwant by %s: %s", rule, message, test.rule, test.want)
			}
		})
	}
}

func TestWhatAPreemptorWantsFollowsTheStepOfThePlan(t *testing.T) {
	m := modelOf(t)
	group := inClass("preemptor", "default", "mid")
	fixture.Wanting("cpu=7")(group)
	m.Set(group)
	r := rulesFor(m, decision.BetweenQueues)
	cpus := func() int64 { return r.Wanted().At(resources.CPU) / 1000 }
	if got := cpus(); got != 1 {
		t.Errorf("for its pod it wants %d CPUs, want 1", got)
	}
	if r.SetWhole(m.Resources.Vector(fixture.List("cpu=4"))); cpus() != 4 {
		t.Errorf("for all pods of the plan it wants %d CPUs, want 4", cpus())
	}
	r.SetWhole(nil)
	if r.SetPod(nil); cpus() != 7 {
		t.Errorf("at admission it wants %d CPUs, want its minimum of 7", cpus())
	}
}

func TestTheLowestTaskPriorityIsThatOfAnyPodOfTheJob(t *testing.T) {
	m := modelOf(t).Set(fixture.Group("g", "default", 0))
	for name, value := range map[string]string{"a": "7", "b": "-3", "c": "4"} {
		m.Set(fixture.Pod(name, fixture.In("g"), ranking(value)))
	}
	if got := rulesFor(m, decision.BetweenJobs).LowestTaskPriority(m.JobNamed("g")); got != -3 {
		t.Errorf("it is %d, want -3", got)
	}
}

func TestVotesAreAskedForTierByTierAsUpstreamOnly(t *testing.T) {
	for name, test := range map[string]struct {
		upstream bool
		allows   string // of the first of two tiers; the second allows b
		want     string // which of a and b may be evicted in the searches, in order
		found    bool
	}{
		"the first tier decides":                 {false, "c", "-", false},
		"upstream the next tier is asked":        {true, "c", "- b", true},
		"upstream an answer is an answer":        {true, "a", "a", false},
		"the first tier may be all that matters": {true, "b", "b", true},
	} {
		t.Run(name, func(t *testing.T) {
			vote := conf.VictimVote("")
			if test.upstream {
				vote = conf.VictimVoteUpstream
			}
			configuration := &conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{{Name: "first"}}}, {Plugins: []conf.Plugin{{Name: "second"}}}}}
			m := harness.ForPolicy(t, harness.Build(t, configuration, nil, harness.Made(voter{"first", test.allows}), harness.Made(voter{"second", "b"}))).
				Use(conf.Compatibility{VictimVote: vote})
			m.Set(fixture.Queue("default"), fixture.Node("n", "cpu=8"), fixture.PriorityClass("mid", 50), inClass("preemptor", "default", "mid"),
				fixture.Pod("waits", fixture.In("preemptor")), fixture.Group("v", "default", 0),
				fixture.Pod("a", fixture.In("v"), fixture.On("n"), marked), fixture.Pod("b", fixture.In("v"), fixture.On("n"), marked))
			r := rulesFor(m, decision.BetweenJobs)
			var searches []string
			allowed := func() (names string) {
				for _, name := range []string{"a", "b"} {
					if r.WhyProtected([]*cluster.Task{m.TaskNamed(name)}, false, nil).IsNone() {
						names += name
					}
				}
				return names
			}
			found := r.ByTiers(func() bool {
				names := allowed()
				if names == "" {
					names = "-"
				}
				searches = append(searches, names)
				return names == "b"
			}, func() bool { return allowed() != "" })
			if got := strings.Join(searches, " "); got != test.want || found != test.found {
				t.Errorf("the searches may evict %q (found %t), want %q (%t)", got, found, test.want, test.found)
			}
		})
	}
}
