package replay_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator/replay"
	"hekla.sh/hekla/internal/snapshot"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

var evicting = loop.Evicting("predicates", "capacity", "nodeorder")

// taken is a snapshot of objects, through its file.
func taken(t *testing.T, l *loop.Loop, configuration string, objects ...runtime.Object) *snapshot.Snapshot {
	t.Helper()
	var file bytes.Buffer
	header := &snapshot.Header{Taken: l.Now, SchedulerNames: []string{schedulingv1beta1.DefaultSchedulerName}, Configuration: configuration}
	if err := snapshot.Write(&file, header, slices.Values(objects)); err != nil {
		t.Fatal(err)
	}
	s, _, err := snapshot.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// contended are a node that low priority fills, and a job of high priority that waits.
func contended() []runtime.Object {
	low, high := fixture.Group("low", "default", 1), fixture.Group("high", "default", 1)
	low.Status.Phase, high.Status.Phase = schedulingv1beta1.PodGroupRunning, schedulingv1beta1.PodGroupInqueue
	high.Spec.PriorityClassName = "high"
	return []runtime.Object{fixture.Queue("default"), fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=1"), fixture.PriorityClass("high", 10), low, high,
		fixture.Pod("low-0", fixture.In("low"), fixture.On("n1"), fixture.Asks("cpu=1"), fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")),
		fixture.Pod("low-1", fixture.In("low"), fixture.On("n1"), fixture.Asks("cpu=1"), fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")),
		fixture.Pod("high-0", fixture.In("high"), fixture.Asks("cpu=2"))}
}

// said is what was decided, without times.
func said(entries []journal.Entry) string {
	var lines []string
	for _, e := range entries {
		switch e.Kind {
		case journal.Bound, journal.Evicted, journal.Admitted:
			lines = append(lines, strings.TrimSpace(string(e.Kind)+" "+e.Pod+" "+e.Node+" "+e.For+" "+e.Rule))
		}
	}
	return strings.Join(lines, "; ")
}

func TestASnapshotIsReplayedToTheSameDecisions(t *testing.T) {
	l := loop.New(t, evicting)
	objects := contended()
	l.Set(objects)
	l.Cycle()
	r, err := replay.Run(taken(t, l, evicting, objects...), replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	live := said(l.Scheduler.Journal().All(100))
	var first []journal.Entry
	for _, e := range r.Decisions {
		if e.Cycle == 1 {
			first = append(first, e)
		}
	}
	if !strings.Contains(live, "Evicted") || said(first) != live {
		t.Errorf("the replay decides %q first, the scheduler has decided %q", said(first), live)
	}
	if all := said(r.Decisions); !strings.Contains(all, "Bound work/high-0 n1") || !r.Rested {
		t.Errorf("after its victims the job is not placed: %s, %+v", all, r)
	}
}

func TestAReplayShowsWhatAnotherConfigurationDecides(t *testing.T) {
	l := loop.New(t, evicting)
	s := taken(t, l, evicting, contended()...)
	before, err := replay.Run(s, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	peaceful, err := replay.Run(s, replay.Options{Place: "new.yaml", Configuration: []byte(strings.NewReplacer(", preempt", "", ", reclaim", "").Replace(evicting))})
	if err != nil {
		t.Fatal(err)
	}
	d := replay.Compare(before, peaceful)
	if !strings.Contains(said(d.Before), "Evicted work/low-") || len(d.After) > 0 || len(d.Jobs) == 0 || d.IsNone() {
		t.Errorf("the difference is %+v", d)
	}
	if d := replay.Compare(before, before); !d.IsNone() || d.Same != len(before.Decisions) {
		t.Errorf("a replay differs from itself: %+v", d)
	}
	if _, err := replay.Run(s, replay.Options{Place: "new.yaml", Configuration: []byte("actions: nonsense")}); err == nil || !strings.Contains(err.Error(), "new.yaml") {
		t.Errorf("a configuration that cannot be used: %v", err)
	}
}

func TestAReplayShowsWhatAnotherQueueDecides(t *testing.T) {
	l := loop.New(t, evicting)
	queue := func(capability string) *schedulingv1beta1.Queue {
		return fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List(capability) })
	}
	group := fixture.Group("g", "q", 1)
	group.Status.Phase = schedulingv1beta1.PodGroupInqueue
	s := taken(t, l, evicting, fixture.Queue("default"), queue("cpu=1"), fixture.Node("n1", "cpu=4"), group, fixture.Pod("g-0", fixture.In("g"), fixture.Asks("cpu=2")))
	before, err := replay.Run(s, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := replay.Run(s, replay.Options{Changes: []client.Object{queue("cpu=2"), fixture.Queue("new")}})
	if err != nil {
		t.Fatal(err)
	}
	if d := replay.Compare(before, after); len(d.Before) > 0 || said(d.After) != "Bound work/g-0 n1" || len(d.Jobs) != 1 {
		t.Errorf("the difference is %+v", d)
	}
}

func TestDecisionsOfTheClusterAreCheckedAgainstAReplay(t *testing.T) {
	l := loop.New(t, evicting)
	s := taken(t, l, evicting, contended()...)
	r, err := replay.Run(s, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	evicted := r.Decisions[slices.IndexFunc(r.Decisions, func(e journal.Entry) bool { return e.Kind == journal.Evicted })]
	evicted.Plan, evicted.Cycle = "another", 9
	other := journal.Entry{Cycle: 10, Kind: journal.Bound, Job: "work/other", Pod: "work/other-0", Node: "n2"}
	earlier := journal.Entry{Cycle: 0, Kind: journal.Bound, Pod: "work/earlier"}
	verdict := journal.Entry{Cycle: 10, Kind: journal.VerdictChanged, Job: "work/other"}
	later := &snapshot.Snapshot{Header: snapshot.Header{Journal: []journal.Entry{earlier, evicted, verdict, other}}}
	if a := replay.Check(s, r, later); a.Same != 1 || len(a.Missing) != 1 || a.Missing[0].Pod != "work/other-0" || len(a.Others) != len(r.Decisions)-1 {
		t.Errorf("the agreement is %+v", a)
	}
}

func TestWhatAReplayDoesNotKnowIsNamed(t *testing.T) {
	l := loop.New(t, evicting)
	s := taken(t, l, evicting, fixture.Queue("default"))
	s.OpensQueueGates = true
	r, err := replay.Run(s, replay.Options{})
	if err != nil || len(r.LeftOut) != 1 || !strings.Contains(r.LeftOut[0], "scheduling gates") {
		t.Errorf("left out is %q, %v", r.LeftOut, err)
	}
	if _, err := replay.Run(s, replay.Options{Changes: []client.Object{fixture.Queue("q"), fixture.Queue("q")}}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a queue given twice: %v", err)
	}
}
