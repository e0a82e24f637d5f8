package framework_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// voter gives one vote on victims inside a queue, and another between queues.
type voter struct {
	named
	preempt, reclaim framework.Vote
	kind             verdict.ProtectionKind // of what it says when it rejects
}

func (v voter) answer(vote framework.Vote) (framework.Vote, verdict.Protection) {
	if vote == framework.Reject {
		return vote, verdict.Protection{Kind: v.kind}
	}
	return vote, verdict.Protection{}
}

func (v voter) VotePreempt(*framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return v.answer(v.preempt)
}
func (v voter) VoteReclaim(*framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return v.answer(v.reclaim)
}

// judge says which jobs are starving and which queues may reclaim.
type judge struct {
	named
	yes bool
}

func (j judge) IsStarving(*cluster.Job) bool { return j.yes }

func (j judge) MayReclaim(*cluster.Queue, *cluster.Task) *verdict.Verdict {
	if j.yes {
		return nil
	}
	return refusal(j.Name())
}

// mute is a plugin that answers no question.
type mute struct{ named }

// perTier makes plugins of the answers of each tier. Their names say the tier and the place in it.
func perTier[T any](tiers [][]T, make func(name named, answer T) framework.Plugin) [][]framework.Plugin {
	var all [][]framework.Plugin
	for i, answers := range tiers {
		tier := []framework.Plugin{mute{named("mute" + string(rune('0'+i)))}}
		for k, answer := range answers {
			tier = append(tier, make(named(string(rune('0'+i))+string(rune('0'+k))), answer))
		}
		all = append(all, tier)
	}
	return all
}

func TestTheFirstTierThatHasASayDecidesWhoMayLeave(t *testing.T) {
	const reject, abstain, permit = framework.Reject, framework.Abstain, framework.Permit
	for name, test := range map[string]struct {
		tiers [][]framework.Vote
		from  int
		why   string // of the first objection, "" if there is none
		by    int
	}{
		"there are no plugins":                        {nil, 0, "", 0},
		"nobody has a say":                            {[][]framework.Vote{{}, {}}, 0, "", 2},
		"all abstain":                                 {[][]framework.Vote{{abstain, abstain}, {abstain}}, 0, "", 2},
		"all permit":                                  {[][]framework.Vote{{permit, permit}}, 0, "", 0},
		"one abstains, one permits":                   {[][]framework.Vote{{abstain, permit}}, 0, "", 0},
		"one permits, one abstains":                   {[][]framework.Vote{{permit, abstain}}, 0, "", 0},
		"one permits, one objects":                    {[][]framework.Vote{{permit, reject}}, 0, "01", 0},
		"one objects, one permits":                    {[][]framework.Vote{{reject, permit}}, 0, "00", 0},
		"one abstains, one objects":                   {[][]framework.Vote{{abstain, reject}}, 0, "01", 0},
		"the first who objects speaks":                {[][]framework.Vote{{reject, reject}}, 0, "00", 0},
		"lower tiers are not asked after a permit":    {[][]framework.Vote{{permit}, {reject}}, 0, "", 0},
		"lower tiers are not asked after a rejection": {[][]framework.Vote{{reject}, {permit}}, 0, "00", 0},
		"a tier that abstains leaves it to the next":  {[][]framework.Vote{{abstain}, {permit}, {reject}}, 0, "", 1},
		"the next may object":                         {[][]framework.Vote{{abstain}, {reject}}, 0, "10", 1},
		"a tier without a say leaves it to the next":  {[][]framework.Vote{{}, {reject}}, 0, "10", 1},
		"asked from the second":                       {[][]framework.Vote{{reject}, {permit}}, 1, "", 1},
		"asked from the second, which objects":        {[][]framework.Vote{{permit}, {reject}}, 1, "10", 1},
		"asked from after the last":                   {[][]framework.Vote{{reject}, {reject}}, 2, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isReclaim := range []bool{false, true} {
				tiers := perTier(test.tiers, func(name named, vote framework.Vote) framework.Plugin {
					if isReclaim {
						return voter{name, -vote, vote, verdict.ByPlugin} // the wrong question gets the opposite answer
					}
					return voter{name, vote, -vote, verdict.ByPlugin}
				})
				s := open(policyOf(t, nil, tiers...), gangs(1)...)
				poll := s.PollPreempt()
				if isReclaim {
					poll = s.PollReclaim()
				}
				poll.From = test.from
				if poll.Tiers() != len(test.tiers) {
					t.Errorf("%d tiers, want %d", poll.Tiers(), len(test.tiers))
				}
				if why, by := poll.Ask(&framework.VictimProposal{}); why.Plugin != test.why || by != test.by {
					t.Errorf("between queues %t: %q objects in tier %d, want %q in %d", isReclaim, why, by, test.why, test.by)
				}
			}
		})
	}
}

func TestAnObjectionHasTheNameOfThePlugin(t *testing.T) {
	for name, test := range map[string]struct{ says, want verdict.Protection }{
		"a reason of its own":       {verdict.ByPlugin.Protection(), verdict.Protection{Kind: verdict.ByPlugin, Plugin: "strict"}},
		"a budget":                  {verdict.ByBudget.Protection(), verdict.Protection{Kind: verdict.ByBudget, Plugin: "strict"}},
		"no reason at all":          {verdict.Protection{}, verdict.Protection{Kind: verdict.ByPlugin, Plugin: "strict"}},
		"a rule, which has no name": {verdict.RuleNotLowerJob.Protection(), verdict.RuleNotLowerJob.Protection()},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(policyOf(t, nil, []framework.Plugin{voter{"strict", framework.Reject, framework.Reject, test.says.Kind}}), gangs(1)...)
			if why, _ := s.PollPreempt().Ask(&framework.VictimProposal{}); why != test.want {
				t.Errorf("%+v protects them, want %+v", why, test.want)
			}
		})
	}
}

func TestAVoterWhoseSwitchIsOffIsNotAsked(t *testing.T) {
	strict := []framework.Plugin{voter{"strict", framework.Reject, framework.Reject, verdict.ByPlugin}}
	for which, want := range map[conf.Switch][2]string{
		conf.EnablePreemptable: {"", "strict"},
		conf.EnableReclaimable: {"strict", ""},
		conf.EnablePreemptive:  {"strict", "strict"},
	} {
		s := open(policyOf(t, map[string]conf.Switch{"strict": which}, strict), gangs(1)...)
		preempt, _ := s.PollPreempt().Ask(&framework.VictimProposal{})
		reclaim, _ := s.PollReclaim().Ask(&framework.VictimProposal{})
		if have := [2]string{preempt.Plugin, reclaim.Plugin}; have != want {
			t.Errorf("without %s %q object, want %q", which, have, want)
		}
	}
}

func TestTheJudgesOfTheFirstTierThatHasAnyMustAgreeThatAJobStarves(t *testing.T) {
	for name, test := range map[string]struct {
		tiers [][]bool
		want  bool
	}{
		"there are none, and a pod waits": {nil, true},
		"all agree":                       {[][]bool{{true, true}}, true},
		"the second does not":             {[][]bool{{true, false}}, false},
		"lower tiers are not asked":       {[][]bool{{true}, {false}}, true},
		"nor after a no":                  {[][]bool{{false}, {true}}, false},
		"a tier without judges":           {[][]bool{{}, {false}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tiers := perTier(test.tiers, func(name named, yes bool) framework.Plugin { return judge{name, yes} })
			s := open(policyOf(t, nil, tiers...), gangs(1)...)
			if have := s.IsStarving(s.Cluster.Job(cluster.GroupID(fixture.Key("j0")))); have != test.want {
				t.Errorf("starving: %t, want %t", have, test.want)
			}
		})
	}
	s := open(policyOf(t, map[string]conf.Switch{"no": conf.EnableJobStarving}, []framework.Plugin{judge{"no", false}}), running(gangs(2))...)
	for name, want := range map[string]bool{"j0": false, "j1": true} {
		if have := s.IsStarving(s.Cluster.Job(cluster.GroupID(fixture.Key(name)))); have != want {
			t.Errorf("without judges %s is starving: %t, want %t", name, have, want)
		}
	}
}

func TestAQueueTakesFromItsEqualsOnlyIfAllJudgesAgreeAndThereIsOne(t *testing.T) {
	for name, test := range map[string]struct {
		tiers   [][]bool
		off     map[string]conf.Switch
		refuser string // "" if the queue may reclaim
	}{
		"there is no judge":   {nil, nil, "default"},
		"its switch is off":   {[][]bool{{true}}, map[string]conf.Switch{"00": conf.EnablePreemptive}, "default"},
		"all agree":           {[][]bool{{true}, {true}}, nil, ""},
		"the second does not": {[][]bool{{true, false}}, nil, "01"},
		"one of a lower tier": {[][]bool{{true}, {false}}, nil, "10"},
	} {
		t.Run(name, func(t *testing.T) {
			tiers := perTier(test.tiers, func(name named, yes bool) framework.Plugin { return judge{name, yes} })
			s := open(policyOf(t, test.off, tiers...), gangs(1)...)
			refuser := ""
			if v := s.MayReclaim(s.Cluster.Task(fixture.Key("j0-0"))); v != nil {
				refuser = v.Subject
			}
			if refuser != test.refuser {
				t.Errorf("refused by %q, want %q", refuser, test.refuser)
			}
		})
	}
}

// chooser names these pods as victims.
type chooser struct {
	named
	cluster **model.Cluster
	victims []string
}

func (c chooser) ChooseVictims() (all []framework.Chosen) {
	for _, name := range c.victims {
		all = append(all, framework.Chosen{Task: (*c.cluster).Task(fixture.Key(name)), Why: c.Name()})
	}
	return all
}

func TestAllThatTheFirstTierChoosesLeaveAndEachOnce(t *testing.T) {
	for name, test := range map[string]struct {
		tiers [][][]string
		off   map[string]conf.Switch
		want  []string // pod and plugin
	}{
		"nobody chooses":              {nil, nil, nil},
		"one chooses none":            {[][][]string{{{}}}, nil, nil},
		"both choose, one pod twice":  {[][][]string{{{"j0-0", "j1-0"}, {"j1-0", "j0-1"}}}, nil, []string{"j0-0 00", "j1-0 00", "j0-1 01"}},
		"the lower tier is not asked": {[][][]string{{{"j0-0"}}, {{"j0-1"}}}, nil, []string{"j0-0 00"}},
		"the upper tier names none":   {[][][]string{{{}}, {{"j0-1"}}}, nil, []string{"j0-1 10"}},
		"the switch is off":           {[][][]string{{{"j0-0"}, {"j0-1"}}}, map[string]conf.Switch{"00": conf.EnabledVictim}, []string{"j0-1 01"}},
	} {
		t.Run(name, func(t *testing.T) {
			var c *model.Cluster
			tiers := perTier(test.tiers, func(name named, victims []string) framework.Plugin { return chooser{name, &c, victims} })
			s := open(policyOf(t, test.off, tiers...), gangs(2)...)
			c = s.Cluster
			var have []string
			for _, chosen := range s.ChooseVictims() {
				have = append(have, chosen.Task.Key().Name+" "+chosen.Why)
			}
			if diff := cmp.Diff(test.want, have); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatLeavesTogetherIsAddedUp(t *testing.T) {
	s := open(policyOf(t, nil), running(gangs(1))...)
	c := s.Cluster
	both := &framework.VictimProposal{Victims: []*cluster.Task{c.Task(fixture.Key("j0-0")), c.Task(fixture.Key("j0-1"))}}
	one := &framework.VictimProposal{Victims: both.Victims[:1]}
	if have := both.Leaving().At(resources.CPU); have != 2000 {
		t.Errorf("two pods of one CPU each hold %d", have)
	}
	if have := one.Leaving().At(resources.CPU); have != 1000 || both.Victims[0].Request().At(resources.CPU) != 1000 {
		t.Errorf("one of them holds %d; adding them up must change neither", have)
	}
	if both.VictimJob() != c.Job(cluster.GroupID(fixture.Key("j0"))) {
		t.Errorf("the giver is %v", both.VictimJob())
	}
}

// fixedShares gives each queue the share that its spec says, if it says one.
type fixedShares struct {
	named
	shares *quota.View
}

func (s fixedShares) Shares() *quota.View { return s.shares }

func TestTheFirstPluginThatGivesSharesDecides(t *testing.T) {
	c := open(policyOf(t, nil), fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=1") })).Cluster
	q := c.Queue("q")
	if _, ok := policyOf(t, nil).Share(q); ok || policyOf(t, nil).Shares() != nil {
		t.Error("without a plugin that gives shares a queue has one")
	}
	policy := policyOf(t, nil, []framework.Plugin{mute{"mute"}}, []framework.Plugin{
		fixedShares{"first", quota.Written(quota.Policy{})}, fixedShares{"second", quota.NewView(c.Quota(), quota.Policy{})}})
	share, ok := policy.Share(q)
	if limit, has := share.Deserved.At(resources.CPU); !ok || !has || limit != 1000 {
		t.Errorf("the share is %d, %t", limit, ok)
	}
}

// alarm is a plugin that wakes the scheduler at a time.
type alarm struct {
	named
	at time.Time
}

func (a alarm) WakeAt() time.Time { return a.at }

func TestTheEarliestAlarmWakes(t *testing.T) {
	never, soon, later := alarm{named: "never"}, alarm{"soon", now.Add(time.Minute)}, alarm{"later", now.Add(time.Hour)}
	for name, test := range map[string]struct {
		plugins []framework.Plugin
		want    time.Time
	}{
		"nobody has one":  {[]framework.Plugin{mute{"mute"}}, time.Time{}},
		"never":           {[]framework.Plugin{never}, time.Time{}},
		"one and never":   {[]framework.Plugin{never, later}, later.at},
		"the later first": {[]framework.Plugin{later, soon, never}, soon.at},
	} {
		if have := policyOf(t, nil, test.plugins).WakeAt(); !have.Equal(test.want) {
			t.Errorf("%s: wakes at %s, want %s", name, have, test.want)
		}
	}
}
