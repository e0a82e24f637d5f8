package differential

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster/wake"
)

// Random scenarios show, too, when the model does not wake a job: some of them fail for each of these causes. Causes
// that seldom come without another (a plan that comes into force frees quota, too) are left to
// TestEveryKindOfEventWakes.
func TestForgottenCausesAreFound(t *testing.T) {
	const most, step = 10_000, 100
	for _, test := range []struct {
		name  string
		cause wake.Cause
	}{{"a node changes", wake.NodeShown}, {"room becomes free", wake.RoomFreed}, {"a queue changes", wake.QueueShown}, {"more is left of a stock", wake.StockCounted}} {
		t.Run(test.name, func(t *testing.T) {
			var sum tally
			for first := uint64(1); first < most; first += step {
				if failed := leadAll(first, step, &sum, func(c wake.Cause) bool { return c == test.cause }); len(failed) > 0 {
					t.Logf("shown by seed %d", failed[0])
					return
				}
			}
			t.Errorf("none of %d scenarios shows that nobody is woken", most)
		})
	}
}
