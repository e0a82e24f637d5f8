package framework_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

func TestAdmissionIsAskedTierByTier(t *testing.T) {
	const reject, abstain, permit = framework.Reject, framework.Abstain, framework.Permit
	for name, test := range map[string]struct {
		tiers   [][]framework.Vote
		refuser string // "" if the job is valid
	}{
		"nobody keeps it":                            {nil, ""},
		"all abstain":                                {[][]framework.Vote{{abstain, abstain}, {abstain}}, ""},
		"one permits":                                {[][]framework.Vote{{abstain, permit}}, ""},
		"one rejects":                                {[][]framework.Vote{{abstain, reject}}, "01"},
		"a reject beats a permit before it":          {[][]framework.Vote{{permit, reject}}, "01"},
		"a reject beats a permit after it":           {[][]framework.Vote{{reject, permit}}, "00"},
		"a permit decides for its tier":              {[][]framework.Vote{{permit}, {reject}}, ""},
		"a tier that abstains leaves it to the next": {[][]framework.Vote{{abstain}, {reject}}, "10"},
		"a tier without keepers is no answer":        {[][]framework.Vote{{}, {reject}}, "10"},
		"the first reject speaks":                    {[][]framework.Vote{{reject, reject}}, "00"},
	} {
		t.Run(name, func(t *testing.T) {
			var tiers [][]framework.Plugin
			for i, votes := range test.tiers {
				var tier []framework.Plugin
				for k, vote := range votes {
					tier = append(tier, enqueuer{named: named(string(rune('0'+i)) + string(rune('0'+k))), vote: vote})
				}
				tiers = append(tiers, tier)
			}
			s := open(policyOf(t, nil, tiers...), gangs(1)...)
			v := s.MayEnqueue(s.Cluster.Job(cluster.GroupID(fixture.Key("j0"))))
			if refused := ""; v != nil {
				if refused = v.Subject; refused != test.refuser {
					t.Errorf("refused by %s, want %q", refused, test.refuser)
				}
			} else if test.refuser != "" {
				t.Errorf("let pass, want a refusal by %s", test.refuser)
			}
		})
	}
}

func TestAKeeperWhoseSwitchIsOffIsNotAsked(t *testing.T) {
	policy := policyOf(t, map[string]conf.Switch{"strict": conf.EnableJobEnqueued}, []framework.Plugin{enqueuer{"strict", framework.Reject}})
	s := open(policy, gangs(1)...)
	if v := s.MayEnqueue(s.Cluster.Job(cluster.GroupID(fixture.Key("j0")))); v != nil {
		t.Errorf("refused: %s", v.Sentence())
	}
}

func TestTheFirstPluginThatTellsTwoJobsApartOrdersThem(t *testing.T) {
	first := order{"first", map[string]int{"j0": 1, "j1": 1, "j2": 0}}
	second := order{"second", map[string]int{"j0": 2, "j1": 1, "j2": 9}}
	for name, test := range map[string]struct {
		off    map[string]conf.Switch
		lesser []string // pairs: each before the next
	}{
		"both on":     {nil, []string{"j2", "j1", "j0"}},
		"first off":   {map[string]conf.Switch{"first": conf.EnableJobOrder}, []string{"j1", "j0", "j2"}},
		"another off": {map[string]conf.Switch{"first": conf.EnableTaskOrder}, []string{"j2", "j1", "j0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(policyOf(t, test.off, []framework.Plugin{first}, []framework.Plugin{second}), gangs(3)...)
			for i, later := range test.lesser[1:] {
				a, b := s.Cluster.Job(cluster.GroupID(fixture.Key(test.lesser[i]))), s.Cluster.Job(cluster.GroupID(fixture.Key(later)))
				if s.CompareJobs(a, b) >= 0 || s.CompareJobs(b, a) <= 0 {
					t.Errorf("%s is not before %s", a.ID.Name, b.ID.Name)
				}
			}
		})
	}
}

func TestWhereNoPluginTellsApartTheOrderIsStillTotal(t *testing.T) {
	s := open(policyOf(t, nil), append(gangs(2), fixture.Queue("other"))...)
	c := s.Cluster
	if s.CompareJobs(c.Job(cluster.GroupID(fixture.Key("j0"))), c.Job(cluster.GroupID(fixture.Key("j1")))) >= 0 {
		t.Error("of two jobs of one age the one with the lower UID is not first")
	}
	if s.CompareQueues(c.Queue("default"), c.Queue("other")) >= 0 {
		t.Error("of two queues of one age the first by name is not first")
	}
	pending := s.Pending(c.Job(cluster.GroupID(fixture.Key("j0"))))
	if len(pending) != 2 || pending[0].Index != 0 {
		t.Error("the tasks of a job do not come by their index")
	}
}

func TestTasksAreOrderedByPlugins(t *testing.T) {
	s := open(policyOf(t, nil, []framework.Plugin{order{"o", map[string]int{"j0-0": 5}}}), gangs(1)...)
	if pending := s.Pending(s.Cluster.Job(cluster.GroupID(fixture.Key("j0")))); pending[0].Key().Name != "j0-1" {
		t.Errorf("the first is %s", pending[0].Key().Name)
	}
}

func TestQueuesAreOrderedByPlugins(t *testing.T) {
	s := open(policyOf(t, nil, []framework.Plugin{order{"o", map[string]int{"default": 1}}}), fixture.Queue("zzz"))
	if s.CompareQueues(s.Cluster.Queue("zzz"), s.Cluster.Queue("default")) >= 0 {
		t.Error("the queue of lower rank is not first")
	}
}

func TestOneGuardIsEnoughToRefuse(t *testing.T) {
	s := open(policyOf(t, nil, []framework.Plugin{limit{"lenient", true}, limit{"strict", false}}), gangs(1)...)
	task := s.Cluster.Task(fixture.Key("j0-0"))
	if v := s.MayAllocate(task); v == nil || v.Subject != "strict" {
		t.Errorf("the guard says %+v", v)
	}
	if v := s.Overused(task.Job.Queue); v == nil || v.Subject != "strict" {
		t.Errorf("the judge of queues says %+v", v)
	}
	if s.IsReady(task.Job) {
		t.Error("a job is ready although one says that it is not")
	}
}

func TestSwitchesTurnEveryJudgeOff(t *testing.T) {
	for which, ask := range map[conf.Switch]func(*framework.Session, *cluster.Task) bool{
		conf.EnabledOverused:    func(s *framework.Session, t *cluster.Task) bool { return s.Overused(t.Job.Queue) == nil },
		conf.EnabledAllocatable: func(s *framework.Session, t *cluster.Task) bool { return s.MayAllocate(t) == nil },
		conf.EnableJobReady:     func(s *framework.Session, t *cluster.Task) bool { return s.IsReady(t.Job) },
	} {
		t.Run(which.String(), func(t *testing.T) {
			strict := []framework.Plugin{limit{"strict", false}}
			s := open(policyOf(t, nil, strict), gangs(1)...)
			if ask(s, s.Cluster.Task(fixture.Key("j0-0"))) {
				t.Error("it is not asked when it is on")
			}
			s = open(policyOf(t, map[string]conf.Switch{"strict": which}, strict), gangs(1)...)
			if !ask(s, s.Cluster.Task(fixture.Key("j0-0"))) {
				t.Error("it is asked when it is off")
			}
		})
	}
}

func TestJobsThatAreWrongAreJudgedAndLeftOut(t *testing.T) {
	closed := fixture.Queue("closed", func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosing })
	orphan := fixture.Queue("orphan", func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "nowhere" })
	objects := append(gangs(1), closed, orphan)
	for _, queue := range []string{"missing", "closed", "orphan"} {
		objects = append(objects, fixture.Group(queue, queue, 1), fixture.Pod(queue+"-0", fixture.In(queue)))
	}
	s := open(policyOf(t, nil), objects...)
	got := map[string]verdict.Code{}
	for _, j := range s.Cluster.Jobs() {
		if j.Verdict != nil {
			got[j.ID.Name] = j.Verdict.Code
		}
	}
	want := map[string]verdict.Code{"missing": verdict.QueueNotFound, "closed": verdict.QueueClosed, "orphan": verdict.QueueInvalid}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the verdicts differ (-want +got):\n%s", diff)
	}
	if queues := s.Queues(); len(queues) != 1 || len(s.Jobs(queues[0])) != 1 {
		t.Errorf("the queues that are looked at are %v", queues)
	}
}

func TestAPluginMayRefuseAJobAltogether(t *testing.T) {
	s := open(policyOf(t, nil, []framework.Plugin{limit{"strict", false}}), gangs(1)...)
	if v := s.Cluster.Job(cluster.GroupID(fixture.Key("j0"))).Verdict; v == nil || v.Subject != "strict" || len(s.Queues()) != 0 {
		t.Errorf("the verdict is %+v, and %d queues are looked at", v, len(s.Queues()))
	}
}

func TestAJobIsLookedAtAgainOnlyWhenWhatWouldHelpHasHappened(t *testing.T) {
	policy := policyOf(t, nil)
	s, c := openCache(policy, gangs(1)...)
	j := c.Job(cluster.GroupID(fixture.Key("j0")))
	s.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode})
	looked := func() bool { return len(framework.Open(c, policy, nil, now).Queues()) > 0 }
	if looked() {
		t.Error("looked at although nothing has happened")
	}
	c.Apply(cache.Set{Object: fixture.Queue("another")})
	if looked() {
		t.Error("looked at although only a queue was made, and a node would help")
	}
	c.Apply(cache.Set{Object: fixture.Node("n2", "cpu=1")})
	if !looked() {
		t.Error("not looked at although there is a new node")
	}
}

func TestARefusalThatNamesNoHelpIsLookedAtWhenAnythingHasHappened(t *testing.T) {
	policy := policyOf(t, nil)
	for name, event := range map[string]cache.Event{
		"a node": cache.Set{Object: fixture.Node("n2", "cpu=1")}, "a queue": cache.Set{Object: fixture.Queue("another")},
	} {
		s, c := openCache(policy, gangs(1)...)
		s.AddVerdict(s.Cluster.Job(cluster.GroupID(fixture.Key("j0"))), &verdict.Verdict{Code: verdict.Refused})
		if len(framework.Open(c, policy, nil, now).Queues()) > 0 {
			t.Error("looked at although nothing has happened")
		}
		c.Apply(event)
		if len(framework.Open(c, policy, nil, now).Queues()) == 0 {
			t.Errorf("not looked at although there is %s", name)
		}
	}
}

func TestWhatIsSaidOfPartsOfAJobIsHeldTogether(t *testing.T) {
	s := open(policyOf(t, nil), gangs(1)...)
	j := s.Cluster.Job(cluster.GroupID(fixture.Key("j0")))
	s.Cluster.SetVerdict(j, &verdict.Verdict{Code: verdict.QueueClosed, Help: verdict.HelpTime}) // in an earlier session
	s.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode})
	s.AddVerdict(j, &verdict.Verdict{Code: verdict.OverShare, Subject: "default", Help: verdict.HelpQueue})
	want := &verdict.Verdict{Code: verdict.OverShare, Subject: "default", Help: verdict.HelpQueue | verdict.HelpNode}
	if diff := cmp.Diff(want, j.Verdict); diff != "" {
		t.Errorf("the verdict differs (-want +got):\n%s", diff)
	}
	s.AddVerdict(j, nil)
	if j.Verdict != nil {
		t.Errorf("the verdict is %+v after nothing stands in its way", j.Verdict)
	}
}

func TestWhatWasSaidOfPodsThatAreNoMoreIsForgotten(t *testing.T) {
	policy := policyOf(t, nil)
	s, c := openCache(policy, gangs(1)...)
	j := s.Cluster.Job(cluster.GroupID(fixture.Key("j0")))
	s.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode})
	for _, name := range []string{"j0-0", "j0-1"} {
		c.Apply(cache.Delete{Object: s.Cluster.Task(fixture.Key(name)).Pod})
	}
	framework.Open(c, policy, nil, now)
	if j.Verdict != nil {
		t.Errorf("the verdict is still %s", j.Verdict.Sentence())
	}
}

func TestWhatIsKeptForASessionIsMadeOnce(t *testing.T) {
	s, made := open(policyOf(t, nil)), 0
	count := func() int { made++; return made }
	for i, key := range []string{"a", "a", "b"} {
		if kept, want := framework.Keep(s, key, count), []int{1, 1, 2}[i]; kept != want {
			t.Errorf("%s is number %d, want %d", key, kept, want)
		}
	}
	if framework.Keep(open(policyOf(t, nil)), "a", count) != 3 {
		t.Error("it is kept for another session too")
	}
}
