package statuses_test

import (
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/statuses"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// line is a cluster with one node that is full, and jobs that wait for it.
func line(t *testing.T, jobs int) *loop.Loop {
	w := loop.New(t, "").Set(fixture.Node("n", "cpu=1"), fixture.Group("runs", "default", 1), fixture.Pod("runs-0", fixture.In("runs"), fixture.On("n")))
	for i := range jobs {
		w.Set(fixture.Group(lined(i), "default", 1), fixture.Pod(lined(i)+"-0", fixture.In(lined(i))))
	}
	w.Cycle()
	return w.CycleFor(statuses.PlacesPause)
}

func lined(i int) string { return fmt.Sprintf("job-%04d", i) }

// placeOf returns what the condition Queued of a job says, "" if there is none.
func placeOf(w *loop.Loop, name string) string {
	for _, c := range w.Groups[cluster.GroupID(fixture.Key(name))].Status.Conditions {
		if c.Type == schedulingv1beta1.PodGroupQueuedType {
			place, _, _ := strings.Cut(c.Message, " of the jobs in queue default that wait for nodes")
			return place
		}
	}
	return ""
}

// writesUntilPlaced returns the statuses that are decided until the places are worked out again.
func writesUntilPlaced(w *loop.Loop) (all []decision.GroupStatus) {
	for range int(statuses.PlacesPause.Seconds()) + 2 {
		all = append(all, w.Cycle().Groups...)
	}
	return all
}

func TestAStatusSaysAtWhichPlaceTheJobWaits(t *testing.T) {
	w := line(t, 1100)
	for i, want := range map[int]string{0: "place 1", 9: "place 10", 10: "place 11 to 20", 19: "place 11 to 20", 20: "place 21 to 50", 999: "place 501 to 1000", 1000: ""} {
		if got := placeOf(w, lined(i)); got != want {
			t.Errorf("the job with %d before it says %q, want %q", i, got, want)
		}
	}
	if written := writesUntilPlaced(w); len(written) > 0 {
		t.Errorf("when nothing changes %d statuses are written", len(written))
	}

	w.Remove(fixture.Pod(lined(0)+"-0"), fixture.Group(lined(0), "default", 1))
	written := writesUntilPlaced(w)
	if len(written) < 10 || len(written) > 17 {
		t.Errorf("when all jobs move up by one %d statuses are written", len(written))
	}
	for _, s := range written {
		if !s.IsRefresh {
			t.Errorf("the place of %s is written as more than a refresh", s.Job)
		}
	}
	if first, far := placeOf(w, lined(1)), placeOf(w, lined(1000)); first != "place 1" || far != "place 501 to 1000" {
		t.Errorf("then the first says %q and the thousandth %q", first, far)
	}
}

func TestAJobThatStartsHasNoPlace(t *testing.T) {
	w := line(t, 2)
	w.Set(fixture.Node("n2", "cpu=1")).Cycle()
	if got := placeOf(w, lined(0)); got != "" {
		t.Errorf("a job that has a node says %q", got)
	}
	writesUntilPlaced(w)
	if got := placeOf(w, lined(1)); got != "place 1" {
		t.Errorf("the one behind it says %q", got)
	}
	w.RemovePods(lined(1) + "-0")
	writesUntilPlaced(w)
	if got := placeOf(w, lined(1)); got != "" {
		t.Errorf("without pods that wait it says %q", got)
	}
}

func TestALaterProcessKeepsThePlaceUntilItFindsItsOwn(t *testing.T) {
	before := line(t, 1)
	shown := fixture.Group(lined(0), "default", 1)
	shown.Status = before.Groups[cluster.GroupID(fixture.Key(lined(0)))].Status
	w := loop.New(t, "").Set(fixture.Node("n", "cpu=1"), fixture.Group("runs", "default", 1), fixture.Pod("runs-0", fixture.In("runs"), fixture.On("n")))
	w.Set(shown, fixture.Pod(lined(0)+"-0", fixture.In(lined(0))))
	for _, s := range writesUntilPlaced(w) {
		if s.Job.Name == lined(0) {
			t.Errorf("though the place is the same, written is %+v", s.Status)
		}
	}
}
