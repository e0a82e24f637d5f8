package explain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

// A model that is asked again and again says the same as a new one, whatever happens to nodes meanwhile.
func TestANewModelCountsTheSameSuitableNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	a := newAsker(t, "", fixture.Node("n0", "cpu=2", fixture.InZone("a")))
	a.Set(fixture.Gang("anywhere", "default", 1, 1, fixture.Asks("cpu=4")), fixture.Gang("in-zone", "default", 1, 1, fixture.Asks("cpu=3"), fixture.Selecting("zone", "a")),
		fixture.Gang("apart", "default", 2, 2, fixture.Asks("cpu=3"), fixture.Labelled("app", "x"), fixture.ApartFrom("app", "x")))
	a.Cycle()
	seen := map[int]bool{}
	for step := range 300 {
		name := fmt.Sprintf("n%d", random.IntN(6))
		node := fixture.Node(name, fmt.Sprintf("cpu=%d", 1+random.IntN(5)), fixture.InZone(string(rune('a'+random.IntN(2)))))
		switch random.IntN(5) {
		case 0:
			a.Remove(node)
		case 1:
			node.Spec.Unschedulable = true
			a.Set(node)
		default:
			a.Set(node)
		}
		if random.IntN(3) == 0 {
			a.Cycle()
		}
		fresh, err := explain.New(a.Scheduler.Cache(), a.Scheduler.Policy())
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range []string{"anywhere", "in-zone", "apart"} {
			got, want := a.model().Cause(a.Now, cluster.GroupID(fixture.Key(job))), fresh.Cause(a.Now, cluster.GroupID(fixture.Key(job)))
			if difference := cmp.Diff(want, got); difference != "" {
				t.Fatalf("step %d, job %s (-new +asked before):\n%s", step, job, difference)
			}
			seen[got.Suitable] = true
		}
	}
	if len(seen) < 3 {
		t.Errorf("the numbers of suitable nodes were only %v", seen)
	}
}
