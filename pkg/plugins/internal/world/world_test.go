package world_test

import (
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/internal/world"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// voter lets pods leave within a queue whose names begin with what it is told, and has no say between queues but for a whole
// gang.
type voter struct{ prefix string }

func (voter) Name() string { return "voter" }

func (v voter) VotePreempt(d *framework.VictimProposal) (framework.Vote, string) {
	for _, t := range d.Victims {
		if !strings.HasPrefix(t.Pod.Name, v.prefix) {
			return framework.Reject, "its name is another"
		}
	}
	return framework.Permit, ""
}

func (v voter) VoteReclaim(d *framework.VictimProposal) (framework.Vote, string) {
	if d.Whole && d.For != nil && d.For.Pod.Name == "waits" {
		return framework.Permit, ""
	}
	return framework.Abstain, ""
}

func factory() framework.PluginFactory {
	return framework.PluginFactory{Name: "voter", Spec: conf.Spec{Arguments: []conf.Argument{{Name: "prefix", Kind: conf.String, Default: "a"}}},
		New: func(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
			return voter{arguments.String("prefix")}, nil
		}}
}

// newWorld has a job that waits in one queue and one that runs in another.
func newWorld(t *testing.T, arguments string) *world.World {
	return world.New(t, factory(), arguments).Set(fixture.Node("n", "cpu=8"), fixture.Queue("q", world.Ranking(3)), fixture.Queue("r", world.Below("q"), world.Capped("cpu=2")),
		fixture.Group("taker", "r", 1), fixture.Pod("waits", fixture.In("taker")),
		fixture.Group("giver", "q", 1), fixture.Pod("a", fixture.In("giver"), fixture.On("n")), fixture.Pod("b", fixture.In("giver"), fixture.On("n")))
}

func TestAVoteIsThePluginsAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		arguments string
		question  world.Question
		want      string
	}{
		"it permits":                   {"", world.Question{Victims: "a"}, "yes"},
		"it refuses one of two":        {"", world.Question{Victims: "a b"}, "its name is another"},
		"it has an argument":           {"prefix: b", world.Question{Victims: "b"}, "yes"},
		"it has no say":                {"", world.Question{Victims: "a", Reclaim: true}, ""},
		"it is told of the whole gang": {"", world.Question{Victims: "a b", Reclaim: true, Whole: true, For: "waits"}, "yes"},
		"and of the door":              {"", world.Question{Victims: "a b", Reclaim: true, Whole: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.arguments)
			test.question.Session, test.question.Taker = w.Open(), "taker"
			if got := w.Vote(test.question); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatAnEarlierPartOfAPlanDoesCountsAndIsUndone(t *testing.T) {
	w := newWorld(t, "")
	s := w.Open()
	x := s.Begin()
	w.Evict(x, "a b")
	w.Promise(x, "waits", "n")
	if a, waits := w.TaskNamed("a"), w.TaskNamed("waits"); !a.Status.Leaves() || waits.Status != cluster.Pipelined {
		t.Errorf("a is %s, and waits is %s", a.Status, waits.Status)
	}
	x.Undo()
	if a, waits := w.TaskNamed("a"), w.TaskNamed("waits"); a.Status.Leaves() || waits.Status != cluster.Pending {
		t.Errorf("afterwards a is %s, and waits is %s", a.Status, waits.Status)
	}
	w.Check()
}

func TestOptionsSayWhatAQueueIs(t *testing.T) {
	w := world.New(t, factory(), "").Set(fixture.Queue("up"), fixture.Queue("q", world.Below("up"), world.Weighing(4), world.Ranking(3),
		world.Deserving("cpu=2"), world.Guaranteed("cpu=1"), world.Capped("cpu=5"), world.Annotated("k", "v"), world.Closed))
	w.Open()
	q := w.Queue("q")
	if q.Parent != w.Queue("up") || q.Weight != 4 || q.Priority != 3 || q.Object.Annotations["k"] != "v" || q.Open() {
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
		if got := world.Tell(v); got != want {
			t.Errorf("it is told as %q, want %q", got, want)
		}
	}
}
