package rows_test

import (
	"reflect"
	"testing"

	"hekla.sh/hekla/internal/explain/rows"
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
