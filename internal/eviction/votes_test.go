package eviction_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
)

// voter is a plugin that only allows evicting pods whose names begin with a prefix.
type voter struct{ name, lets string }

func (v *voter) Name() string { return v.name }
func (v *voter) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	for _, t := range d.Victims {
		if !strings.HasPrefix(t.Pod.Name, v.lets) {
			return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: "it wants them"}
		}
	}
	return framework.Permit, verdict.Protection{}
}

func voting(name, lets string) scheduler.Extension {
	return scheduler.WithPlugin(framework.PluginFactory{Name: name,
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
			return &voter{name: name, lets: lets}, nil
		}})
}

// Two tiers with one voter each: the first allows evicting job a or no job, the second job b.
const twoTiers = `
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - {name: priority, enablePreemptable: false}
  - {name: gang, enablePreemptable: false}
  - name: first
- plugins:
  - name: predicates
  - name: second
`

func TestAnEmptyVoteRejectsUnlessVotesCountAsUpstream(t *testing.T) {
	const upstream = "compatibility: {victimVote: upstream}\n"
	for name, test := range map[string]struct {
		configuration, first, second, preemptor string
		want, spared                            string
	}{
		"the first tier decides":               {first: "a", second: "b", preemptor: "-", want: "a-0 leaves n1"},
		"nobody of the first tier is a no":     {first: "nobody", second: "b", preemptor: "-", spared: "2 by first (it wants them)"},
		"and upstream no answer":               {configuration: upstream, first: "nobody", second: "b", preemptor: "-", want: "b-0 leaves n2"},
		"somebody is an answer, not enough":    {configuration: upstream, first: "a", second: "b", preemptor: "- -", spared: "1 by first (it wants them)"},
		"nobody of any tier is a no":           {configuration: upstream, first: "nobody", second: "no one", preemptor: "-", spared: "2 by first (it wants them)"},
		"upstream the first tier decides, too": {configuration: upstream, first: "a", second: "b", preemptor: "-", want: "a-0 leaves n1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, twoTiers+test.configuration, voting("first", test.first), voting("second", test.second)).Set(nodes("cpu=1", "n1", "n2"),
				job("a", "default", "low", 0, "n1"), job("b", "default", "low", 0, "n2"), job("preemptor", "default", "high", len(test.preemptor+" ")/2, test.preemptor))
			w.Cycle()
			if got := victims(w); got != test.want || protected(w, "preemptor") != test.spared {
				t.Errorf("the victims are %q, should be %q; spared are %q, should be %q", got, test.want, protected(w, "preemptor"), test.spared)
			}
		})
	}
}

// keeper is a plugin of another module that lets no pod leave, for one kind of reason.
type keeper struct{ kind verdict.ProtectionKind }

func (*keeper) Name() string { return "first" }
func (k *keeper) VotePreempt(*framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return framework.Reject, verdict.Protection{Kind: k.kind, Detail: "their team has spent what it may"}
}

func TestAnyPluginCanSayWhatProtectsPods(t *testing.T) {
	for kind, want := range map[verdict.ProtectionKind]verdict.Code{
		verdict.ByBudget: verdict.BudgetSpent,
		verdict.ByMark:   verdict.VictimsOptedOut,
		verdict.ByPlugin: verdict.NotEnoughResources,
	} {
		t.Run(string(kind), func(t *testing.T) {
			plugin := scheduler.WithPlugin(framework.PluginFactory{Name: "first",
				New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return &keeper{kind}, nil }})
			w := start(t, twoTiers, plugin, voting("second", "a")).Set(nodes("cpu=1", "n1"), job("a", "default", "low", 0, "n1"),
				job("preemptor", "default", "high", 1, "-"))
			w.Cycle()
			v := w.JobNamed("preemptor").Verdict
			if got := v.Reason(); got != want {
				t.Errorf("the reason is %s, want %s: %s", got, want, v.Sentence())
			}
			if got := protected(w, "preemptor"); got != "1 by first (their team has spent what it may)" {
				t.Errorf("protected are %q", got)
			}
		})
	}
}

// counter is a plugin that permits every eviction, and counts how often it is asked.
type counter struct{ asked int }

func (*counter) Name() string { return "counter" }
func (c *counter) VotePreempt(*framework.VictimProposal) (framework.Vote, verdict.Protection) {
	c.asked++
	return framework.Permit, verdict.Protection{}
}

// No eviction makes room for the pods: their node has a pod that may not be evicted.
func TestEqualLonePodsShareARefusal(t *testing.T) {
	asked := func(preemptors ...[]runtime.Object) int {
		c := &counter{}
		w := start(t, twoTiers, scheduler.WithPlugin(framework.PluginFactory{Name: "first",
			New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return c, nil }}), voting("second", ""))
		w.Set(nodes("cpu=2", "n1"), job("stays", "default", "high", 1, "n1", each(unmarked)), job("victim", "default", "low", 0, "n1"))
		for _, p := range preemptors {
			w.Set(p)
		}
		w.Expect("")
		return c.asked
	}
	alone := func(name, cpus string) []runtime.Object {
		return job(name, "default", "high", 1, "-", lone, asking(cpus))
	}
	one, two, other := asked(alone("a", "cpu=2")), asked(alone("a", "cpu=2"), alone("b", "cpu=2")), asked(alone("a", "cpu=2"), alone("b", "cpu=1900m"))
	if one == 0 || two != one || other != 2*one {
		t.Errorf("for one pod votes are asked %d times, for two equal pods %d times, for two different ones %d times", one, two, other)
	}
}
