package enqueue_test

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// A job that is larger than the cluster or its queue could ever hold is told so only as long as that is true: once it
// could fit, it waits for what others hold, who then give up sooner what they do not use.
func TestAJobIsTooLargeOnlyUntilItCouldFit(t *testing.T) {
	for plugin, tooLarge := range map[string]verdict.Code{"overcommit, arguments: {overcommit-factor: 1.0}": verdict.TooLargeForCluster,
		"capacity": verdict.TooLargeForQueue, "proportion": verdict.TooLargeForQueue} {
		t.Run(plugin[:8], func(t *testing.T) {
			l := loop.New(t, fmt.Sprintf("{actions: \"enqueue, allocate\", tiers: [{plugins: [{name: gang}, {name: %s}]}]}", plugin))
			admitted, large := fixture.Group("admitted", "default", 2, fixture.Wanting("cpu=1")), fixture.Group("large", "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu=2"))
			l.Set(fixture.Node("n", "cpu=1"), admitted, large)
			l.Rest()
			code := func() verdict.Code {
				return l.Job(cluster.GroupID(fixture.Key("large"))).Verdict.Code
			}
			if got := code(); got != tooLarge {
				t.Fatalf("on a node of one CPU it waits for %s, want %s", got, tooLarge)
			}
			l.Set(fixture.Node("n", "cpu=2"))
			l.Rest()
			if got := code(); got == tooLarge {
				t.Errorf("on a node of two CPUs, of which one is claimed, it is still said %s", got)
			}
		})
	}
}
