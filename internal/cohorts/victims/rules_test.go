package victims_test

import (
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/trees"
)

// claim asks for so many cores of quota.
func claim(t *trees.Trees, w *workload.Workload, cores int64) *workload.Claim {
	return &workload.Claim{Workload: w, Usage: []cohort.Amount{{FR: t.FR(), Value: 1000 * cores}}, Needs: []resources.FR{t.FR()}}
}

func named(found []workload.Victim) string {
	var names []string
	for _, v := range found {
		names = append(names, fmt.Sprint(v.Name, " ", v.Why))
	}
	return strings.Join(names, ", ")
}

func TestWhichWorkloadsAreEvicted(t *testing.T) {
	w := trees.New()
	a, b := w.Queue("a", "both", 2), w.Queue("b", "both", 2)
	w.Grow()
	w.Hold(a, "own", 1, 0)
	w.Hold(b, "within", 2, 9)
	w.Hold(b, "borrower", 1, 9)
	rules := &victims.Rules{Queues: w.Queues}
	for name, test := range map[string]struct {
		priority int32
		cores    int64
		want     string
	}{
		"what another queue borrows, whatever its priority": {0, 1, "borrower InCohortReclamation"},
		"and then its own of lower priority":                {1, 2, "borrower InCohortReclamation, own InClusterQueue"},
		"none, if that is not enough":                       {1, 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			used := b.Usage(w.FR())
			if got := named(rules.Victims(claim(w, w.Workload(a, name, 1, test.priority), test.cores), nil)); got != test.want {
				t.Errorf("evicted are %q, want %q", got, test.want)
			}
			if b.Usage(w.FR()) != used {
				t.Errorf("afterwards the queue is charged for %d, and before for %d", b.Usage(w.FR()), used)
			}
		})
	}

	t.Run("none for whom the preemptor was evicted", func(t *testing.T) {
		came := w.Workload(a, "evicted before", 1, 0)
		came.EvictedFor(b.Holders()[1])
		may, spared := rules.Candidates(claim(w, came, 1))
		if len(spared) != 1 || spared[0].Name != "borrower" || len(may) > 1 {
			t.Errorf("%d may be evicted, and spared are %v", len(may), spared)
		}
	})
}

func TestFairSharing(t *testing.T) {
	w := trees.New()
	a, b := w.Queue("a", "both", 0), w.Queue("b", "both", 0)
	w.Queue("idle", "both", 4)
	w.Grow()
	for i := range 3 {
		w.Hold(a, fmt.Sprint("a", i), 1, 0)
	}
	w.Hold(b, "b0", 1, 0)
	asked := w.Workload(b, "b1", 1, 0)
	if got, want := named((&victims.Rules{Queues: w.Queues}).Victims(claim(w, asked, 1), nil)), ""; got != want {
		t.Errorf("by classic preemption %q are evicted, want none: b borrows, too", got)
	}
	if got, want := named((&victims.Rules{Queues: w.Queues, FairSharing: true}).Victims(claim(w, asked, 1), nil)), "a2 InCohortFairSharing"; got != want {
		t.Errorf("by shares %q is evicted, want %q", got, want)
	}
}
