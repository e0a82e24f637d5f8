package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/explain/propose"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

// proposals are the messages of what would help a job, by kind.
func (a *asker) proposals(name string) map[string]propose.Proposal {
	a.tb.Helper()
	why, err := a.model().Why(a.Now, cluster.GroupID(fixture.Key(name)), true)
	if err != nil {
		a.tb.Fatal(err)
	}
	found := map[string]propose.Proposal{}
	for _, p := range why.Proposals {
		found[p.Kind] = p
	}
	return found
}

// waiting is a cluster of one node with four CPUs free of eight, in which a gang of three waits.
func waiting(t *testing.T, request string) *asker {
	t.Helper()
	a := newAsker(t, evicting, fixture.Node("a", "cpu=8"), fixture.Group("runs", "default", 1),
		fixture.Pod("r", fixture.In("runs"), fixture.Asks("cpu=4"), fixture.On("a")))
	group, pods := gang("waits", "default", 3, request)
	a.Set(group)
	for _, pod := range pods {
		a.Set(pod)
	}
	a.Rest()
	return a
}

func TestAJobStartsOnTheNodesThatAreProposed(t *testing.T) {
	a := waiting(t, "cpu=3")
	found := a.proposals("waits")["newNodes"]
	const want = "there would be room with 1 more node like a, which holds 2 such pods if it is empty"
	if found.Message != want || found.Starts {
		t.Errorf("it is said %+v, want %q", found, want)
	}
	a.unchanged(func() { a.proposals("waits") })
	a.Set(fixture.Node("b", "cpu=8"))
	a.Rest()
	if j := a.job("waits"); j.Lacks > 0 {
		t.Errorf("with such a node it lacks %d pods", j.Lacks)
	}
}

func TestTheShapeOfANodeForALargePodIsProposed(t *testing.T) {
	a := waiting(t, "cpu=12")
	found := a.proposals("waits")["newNodes"]
	const want = "there would be room with a node for each of its pods that has cpu 12 for pods"
	if found.Message != want {
		t.Errorf("it is said %q, want %q", found.Message, want)
	}
	for i := range 3 {
		a.Set(fixture.Node(fmt.Sprintf("large-%d", i), "cpu=12"))
	}
	a.Rest()
	if j := a.job("waits"); j.Lacks > 0 {
		t.Errorf("with such nodes it lacks %d pods", j.Lacks)
	}
}

func TestAJobStartsWithTheRequestsThatAreProposed(t *testing.T) {
	a := waiting(t, "cpu=3")
	found := a.proposals("waits")
	for kind, want := range map[string]string{"fewerPods": "with minAvailable 1 instead of 3 its first pod would start now", "smallerRequests": " cpu 1333m instead of 3"} {
		if !strings.Contains(found[kind].Message, want) || !found[kind].Starts {
			t.Errorf("of %s it is said %+v, want %q", kind, found[kind], want)
		}
	}
	group, pods := gang("smaller", "default", 3, "cpu=1200m")
	a.Set(group)
	for _, pod := range pods {
		a.Set(pod)
	}
	a.Rest()
	if j := a.job("smaller"); j.Lacks > 0 {
		t.Errorf("with such requests it lacks %d pods", j.Lacks)
	}
}
