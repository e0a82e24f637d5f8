package cohorts

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/cohorts/world"
)

// Workload b is admitted, and a waits.
func TestAnotherPriorityMayEvictAgain(t *testing.T) {
	prioritize := func(name string, priority int32) func(w *world.World) {
		return func(w *world.World) {
			w.Edit(name, func(o *v1beta2.Workload) { o.Spec.Priority = &priority })
		}
	}
	for name, test := range map[string]struct {
		isEvicted bool // a was admitted before, and was evicted for b
		edit      func(w *world.World)
	}{
		"one that was evicted gets a higher one":          {true, prioritize("a", 20)},
		"the one for which it was evicted gets a lower":   {true, prioritize("b", -5)},
		"one that waits gets a higher one":                {false, prioritize("a", 20)},
		"the one that has what it needs gets a lower one": {false, prioritize("b", -5)},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, while a scheduler runs: %t", name, !restarts), func(t *testing.T) {
				w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(one(4, "LowerPriority"))
				a, b := workloadOf("a", "q", 0, 1, "4"), workloadOf("b", "q", 10, 1, "4")
				if test.isEvicted {
					w.Apply(a).Rest(20).Expect("a", "admitted")
				}
				w.Apply(b).Rest(20)
				if !test.isEvicted {
					w.Apply(a).Rest(20)
				}
				w.Expect("b", "admitted")
				test.edit(w)
				if restarts {
					w.Restart(nil)
				}
				w.Rest(20).Expect("a", "admitted")
			})
		}
	}
}
