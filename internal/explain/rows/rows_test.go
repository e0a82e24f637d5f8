package rows_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/explain/rows"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

func TestABoardHasARowForEachJobQueueAndNode(t *testing.T) {
	l := loop.New(t, loop.Evicting("predicates", "capacity", "nodeorder"))
	l.Set(fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=2"), fixture.Queue("default"), fixture.Queue("q"))
	l.Set(fixture.Group("runs", "q", 1), fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=3")))
	l.Set(fixture.Group("waits", "default", 1), fixture.Pod("waits-0", fixture.In("waits"), fixture.Asks("cpu=8")))
	l.Cycle()
	m, err := l.Scheduler.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var maker rows.Maker
	b := maker.Board(m, l.Now)
	cpu := -1
	for i, name := range b.Resources {
		if name == "cpu" {
			cpu = i
		}
	}
	if len(b.Jobs) != 2 || len(b.Nodes) != 2 || len(b.Queues) < 2 || cpu < 0 {
		t.Fatalf("the board is %+v", b)
	}
	runs, waits := b.Jobs[0], b.Jobs[1]
	if runs.State != rows.StateRunning || runs.Reason != "" || runs.Requests[cpu] != 3000 || waits.State == rows.StateRunning || waits.Reason != string(verdict.TooLargeForAnyNode) || waits.Message == "" {
		t.Errorf("the jobs are %+v", b.Jobs)
	}
	for _, q := range b.Queues {
		switch {
		case q.Queue == "q" && (q.Running != 1 || q.Holds[cpu] != 3000), q.Queue == "default" && (q.Pending+q.Admitted != 1 || q.Oldest == nil):
			t.Errorf("the queue is %+v", q)
		}
	}
	if n := b.Nodes[0]; n.Node != "n1" || n.Used[cpu] != 3000 || n.Idle[cpu] != 1000 || !n.Ready || n.Pods != 1 {
		t.Errorf("the node is %+v", n)
	}
	if again := maker.Board(m, l.Now); !reflect.DeepEqual(again, b) {
		t.Errorf("the second board is %+v, the first was %+v", again, b)
	}
}

func TestAQueueShowsWhatWaitsForAdmission(t *testing.T) {
	l := loop.New(t, loop.Evicting("predicates", "capacity", "nodeorder"))
	l.Set(fixture.Node("n1", "cpu=4"), fixture.Queue("above"), fixture.Queue("q", fixture.Below("above")))
	l.Set(fixture.Group("runs", "q", 1), fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=1")))
	for _, name := range []string{"a", "b"} {
		l.Set(fixture.Group(name, "q", 1, fixture.PendingAdmission, fixture.Wanting("cpu=6")))
	}
	l.Cycle()
	waiting := func(name string) (cpus string) {
		b := board(t, l)
		for _, q := range b.Queues {
			if q.Queue == name {
				return fmt.Sprint(resources.Vector(q.Waiting).At(resources.Dim(slices.Index(b.Resources, "cpu"))))
			}
		}
		return "there is no queue " + name
	}
	for _, name := range []string{"q", "above"} {
		if got := waiting(name); got != "12000" {
			t.Errorf("in queue %s %s waits, want 12000: what runs does not wait", name, got)
		}
	}
}

func TestACapabilityThatDoesNotHoldForQueuesBelow(t *testing.T) {
	for name, c := range map[string]struct{ plugin, want string }{
		"without the tree":  {"capacity", "its capability does not hold for the queues below it: the configuration has no enableHierarchy"},
		"by weights":        {"proportion", "its capability does not hold for the queues below it: the configuration has no enableHierarchy"},
		"with the tree":     {"capacity\n    enableHierarchy: true", ""},
		"without any limit": {"nodeorder", "its capability does not hold: the configuration has no plugin that enforces it"},
	} {
		t.Run(name, func(t *testing.T) {
			l := loop.New(t, loop.Evicting("predicates", c.plugin))
			l.Set(fixture.Node("n1", "cpu=4"), fixture.Queue("above", fixture.Capped("cpu=2")), fixture.Queue("q", fixture.Below("above"), fixture.Capped("cpu=2")))
			l.Cycle()
			for _, q := range board(t, l).Queues {
				want := ""
				if q.Queue == "above" {
					want = c.want
				}
				if q.NotEnforced != want {
					t.Errorf("of the capability of queue %s the board says %q, want %q", q.Queue, q.NotEnforced, want)
				}
			}
		})
	}
}

func board(t *testing.T, l *loop.Loop) rows.Board {
	t.Helper()
	m, err := l.Scheduler.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var maker rows.Maker
	return maker.Board(m, l.Now)
}

func TestALongSentenceKeepsItsEnd(t *testing.T) {
	l := loop.New(t, loop.Evicting("predicates"))
	long := strings.Repeat("a very long word of the API server, ", 30) + "limited to 17"
	l.Set(fixture.Node("n1", "cpu=4"), fixture.Group("refused", "default", 1, func(g *schedulingv1beta1.PodGroup) {
		g.Annotations = map[string]string{schedulingv1beta1.PodsRefusedKey: long}
	}))
	l.Cycle()
	const most = 400
	if got := board(t, l).Jobs[0].Message; len(got) > most || !strings.HasSuffix(got, " limited to 17") || !strings.Contains(got, " … ") {
		t.Errorf("the sentence of %d bytes is cut to %d: %s", len(long), len(got), got)
	}
}
