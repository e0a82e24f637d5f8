package differential

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"
)

// Random worlds tell, too, when the model forgets to wake somebody: some of them show it, for each of these causes.
func TestForgottenCausesAreFound(t *testing.T) {
	const most, step = 2000, 100
	for _, test := range []struct {
		name  string
		cause cluster.Cause
	}{{"a node changes", cluster.NodeShown}, {"room becomes free", cluster.RoomFreed}, {"a queue changes", cluster.QueueShown},
		{"a plan is adopted", cluster.PlanAdopted}} {
		t.Run(test.name, func(t *testing.T) {
			var sum tally
			for first := uint64(1); first < most; first += step {
				if failed := leadAll(first, step, &sum, func(c cluster.Cause) bool { return c == test.cause }); len(failed) > 0 {
					t.Logf("shown by seed %d", failed[0])
					return
				}
			}
			t.Errorf("none of %d worlds shows that nobody is woken", most)
		})
	}
}
