package harness_test

import (
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// voter lets pods leave within a queue whose names begin with what it is told, and has no say between queues but for a
// whole gang.
type voter struct{ prefix string }

func (voter) Name() string { return "voter" }

func (v voter) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	for _, t := range d.Victims {
		if !strings.HasPrefix(t.Pod.Name, v.prefix) {
			return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: "its name is another"}
		}
	}
	return framework.Permit, verdict.Protection{}
}

func (v voter) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	if d.Whole && d.For != nil && d.For.Pod.Name == "waits" {
		return framework.Permit, verdict.Protection{}
	}
	return framework.Abstain, verdict.Protection{}
}

func factory() framework.PluginFactory {
	return framework.PluginFactory{Name: "voter", Spec: conf.Spec{Arguments: []conf.Argument{{Name: "prefix", Kind: conf.String, Default: "a"}}},
		New: func(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
			return voter{arguments.String("prefix")}, nil
		}}
}

// newModel makes a job that waits in one queue and one that runs in another.
func newModel(t *testing.T, arguments string) *harness.Model {
	return harness.ForPlugin(t, factory(), arguments).Set(fixture.Node("n", "cpu=8"), fixture.Queue("q", fixture.Ranking(3)), fixture.Queue("r", fixture.Below("q"), fixture.Capped("cpu=2")),
		fixture.Group("preemptor", "r", 1), fixture.Pod("waits", fixture.In("preemptor")),
		fixture.Group("victims", "q", 1), fixture.Pod("a", fixture.In("victims"), fixture.On("n")), fixture.Pod("b", fixture.In("victims"), fixture.On("n")))
}

func TestAVoteIsThePluginsAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		arguments string
		question  harness.Question
		want      string
	}{
		"it permits":                   {"", harness.Question{Victims: "a"}, "yes"},
		"it refuses one of two":        {"", harness.Question{Victims: "a b"}, "voter (its name is another)"},
		"it has an argument":           {"prefix: b", harness.Question{Victims: "b"}, "yes"},
		"it has no say":                {"", harness.Question{Victims: "a", Reclaim: true}, ""},
		"it is told of the whole gang": {"", harness.Question{Victims: "a b", Reclaim: true, Whole: true, For: "waits"}, "yes"},
		"and of admission":             {"", harness.Question{Victims: "a b", Reclaim: true, Whole: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, test.arguments)
			test.question.Session, test.question.Preemptor = m.Open(), "preemptor"
			if got := m.Vote(test.question); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatAnEarlierPartOfAPlanDoesCountsAndIsUndone(t *testing.T) {
	m := newModel(t, "")
	s := m.Open()
	x := s.Begin()
	m.EvictPods(x, "a b")
	m.Nominate(x, "waits", "n")
	if a, waits := m.TaskNamed("a"), m.TaskNamed("waits"); !a.Status.Leaves() || waits.Status != cluster.Pipelined {
		t.Errorf("a is %s, and waits is %s", a.Status, waits.Status)
	}
	x.Undo()
	if a, waits := m.TaskNamed("a"), m.TaskNamed("waits"); a.Status.Leaves() || waits.Status != cluster.Pending {
		t.Errorf("afterwards a is %s, and waits is %s", a.Status, waits.Status)
	}
	m.Check()
}

func TestOptionsSayWhatAQueueIs(t *testing.T) {
	m := harness.ForPlugin(t, factory(), "").Set(fixture.Queue("up"), fixture.Queue("q", fixture.Below("up"), fixture.Weighing(4), fixture.Ranking(3),
		fixture.Deserving("cpu=2"), fixture.Guaranteed("cpu=1"), fixture.Capped("cpu=5"), fixture.QueueAnnotated("k", "v"), fixture.Closed))
	m.Open()
	q := m.Queue("q")
	if q.Parent != m.Queue("up") || q.Weight != 4 || q.Priority != 3 || q.Object.Annotations["k"] != "v" || q.Open() {
		t.Errorf("the queue is %+v", q)
	}
	deserved, _ := q.Deserved.At(resources.CPU)
	capability, _ := q.Capability.At(resources.CPU)
	if deserved != 2000 || q.Guarantee.Amount(resources.CPU) != 1000 || capability != 5000 {
		t.Errorf("it deserves %d, is guaranteed %d, and may have %d", deserved, q.Guarantee.Amount(resources.CPU), capability)
	}
}

func TestAVerdictIsToldInItsParts(t *testing.T) {
	for want, v := range map[string]*verdict.Verdict{
		"":                 nil,
		"OverCapability q": {Code: verdict.OverCapability, Subject: "q"},
		"OverCapability q: cpu: needs 2, has 1, short by 1; of r": {Code: verdict.OverCapability, Subject: "q", Detail: "of r",
			Shortages: []verdict.Shortage{{Resource: "cpu", Need: 2000, Have: 1000}}},
	} {
		if got := harness.Describe(v); got != want {
			t.Errorf("it is told as %q, want %q", got, want)
		}
	}
}
