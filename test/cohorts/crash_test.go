package cohorts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/cohorts/world"
)

// course leads a random cluster to its rest: half of the Workloads come at first, the others when these are at rest. If
// writes is not negative, the scheduler ends when it wants to make the write after so many, and another begins. It
// returns who was evicted for another, who is admitted at the end, and whether the scheduler has ended.
func course(t *testing.T, seed uint64, writes int) (evicted, admitted []string, hasEnded bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 8))
	c := random(t, r, true)
	w := world.New(t, world.Configuration(argumentsOf(c)))
	late := c.Pending[len(c.Pending)/2:]
	c.Pending = c.Pending[:len(c.Pending)/2]
	apply(t, w, c)
	n := len(c.Pending) + len(late) + 1
	if writes >= 0 {
		w.CrashAfter(writes)
	}
	for range 2 {
		for quiet, steps := 0, 0; quiet < 4; steps++ {
			if quiet++; w.Step() {
				quiet = 0
			}
			for _, said := range w.Said {
				if words := strings.Fields(said); words[0] == "evict" && len(words) == 3 {
					evicted = append(evicted, words[1])
				}
			}
			if steps > 20*n*n || t.Failed() {
				t.Fatalf("seed %d, write %d: no rest after %d steps: %v\n%s", seed, writes, steps, w.Said, c.Note)
			}
		}
		c.Pending, late = late, nil
		more := *c
		more.Cohorts, more.ClusterQueues, more.Nodes = nil, nil, nil
		addPending(t, w, &more)
	}
	for _, o := range w.Workloads() {
		if o.Annotations[v1beta2.PlanAnnotation] != "" {
			t.Fatalf("seed %d, write %d: at rest %s has a plan\n%s", seed, writes, o.Name, c.Note)
		}
		switch said := w.Says(o.Name); {
		case conditions.Is(o, v1beta2.Admitted):
			admitted = append(admitted, o.Name)
			mustRun(t, w, int(seed), o, c)
		case said == "", strings.HasPrefix(said, "evicted"), said == "reserved":
			t.Fatalf("seed %d, write %d: at rest %s says %q\n%s", seed, writes, o.Name, said, c.Note)
		}
	}
	slices.Sort(evicted)
	return evicted, admitted, writes >= 0 && w.HasCrashed()
}

// Rule C1 and all ledgers are checked after each cycle. What was decided and not written may be decided otherwise by
// the next scheduler, in rare cases: it has no answers yet, so the first heads of all queues are asked again. With seed
// 23 a borrower is admitted in the first round after writes 21 to 24. The Workload that the quota belongs to is asked
// in a later round, behind others of its queue that were refused before. It takes the quota back, so one more is
// evicted, and the same Workloads run at the end.
func TestAfterACrashBetweenAnyTwoWritesTheClusterComesToTheSameRest(t *testing.T) {
	crashes, others, evictions := 0, 0, 0
	for seed := range uint64(worlds(t, 40)) {
		wantEvicted, wantAdmitted, _ := course(t, seed, -1)
		evictions += len(wantEvicted)
		for writes := 0; ; writes++ {
			evicted, admitted, hasEnded := course(t, seed, writes)
			if !hasEnded {
				break
			}
			crashes++
			if !slices.Equal(admitted, wantAdmitted) || len(evicted) > len(wantEvicted) {
				others++
				t.Logf("seed %d, write %d: evicted are %v, without the crash %v; admitted %v, without %v", seed, writes, evicted, wantEvicted, admitted, wantAdmitted)
			}
		}
	}
	said := fmt.Sprintf("%d crashes in clusters with %d evictions; after %d of them another came to run", crashes, evictions, others)
	if crashes < 100 || evictions < 10 || others > crashes/20 {
		t.Error(said)
	}
	t.Log(said)
}
