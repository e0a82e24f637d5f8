package reason_test

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

func ExampleRefusals() {
	refusals := reason.New()
	answers := []reason.Reason{ // of three nodes
		reason.Fits,
		refusals.Of(verdict.NodePlugin.Refuses("node(s) were full")),
		refusals.ShortOf(resources.NewIndex(), resources.Pods),
	}
	for _, why := range answers {
		fmt.Printf("%t %q\n", why == reason.Fits, refusals.Text(why))
	}
	// Output:
	// true ""
	// false "node(s) were full"
	// false "Too many pods"
}

func TestEachRefusalHasANumberOfItsOwn(t *testing.T) {
	refusals, index := reason.New(), resources.NewIndex()
	gpu := index.Dim("nvidia.com/gpu")
	seen := map[reason.Reason]string{}
	for _, test := range []struct {
		why  reason.Reason
		want verdict.NodeRefusal
	}{
		{reason.Fits, verdict.NodeRefusal{}},
		{reason.UnknownNode, verdict.NodeState.Refuses("node(s) are unknown")},
		{reason.NotReady, verdict.NodeState.Refuses("node(s) were not ready")},
		{refusals.ShortOf(index, gpu), verdict.NodeRoom.Refuses("Insufficient nvidia.com/gpu")},
		{refusals.ShortOf(index, resources.CPU), verdict.NodeRoom.Refuses("Insufficient cpu")},
		{refusals.Of(verdict.NodePlugin.Refuses("Insufficient cpu")), verdict.NodePlugin.Refuses("Insufficient cpu")}, // in the same words
	} {
		if got := refusals.Refusal(test.why); got != test.want || refusals.Text(test.why) != test.want.Text {
			t.Errorf("reason %d is %+v, want %+v", test.why, got, test.want)
		}
		if again := refusals.Of(test.want); again != test.why {
			t.Errorf("%+v has the numbers %d and %d", test.want, test.why, again)
		}
		if other, isThere := seen[test.why]; isThere {
			t.Errorf("%q and %q have the number %d", other, test.want.Text, test.why)
		}
		seen[test.why] = test.want.Text
	}
}

// A plugin that puts numbers into its refusals has more of them than a Reason can tell apart.
func TestHoweverManyRefusalsThereAreNoneIsTakenForFits(t *testing.T) {
	refusals := reason.New()
	refusal := func(i int) verdict.NodeRefusal {
		return verdict.NodePlugin.Refuses(fmt.Sprintf("node(s) had %d pods", i))
	}
	first := refusals.Of(refusal(0))
	for i := range 1 << 17 {
		if why := refusals.Of(refusal(i)); why == reason.Fits || why == reason.UnknownNode || why == reason.NotReady || refusals.Text(why) == "" {
			t.Fatalf("refusal %d is taken for reason %d, %q", i, why, refusals.Text(why))
		}
	}
	if again := refusals.Of(refusal(0)); again != first || refusals.Text(first) != refusal(0).Text {
		t.Errorf("after many others refusal %d is %d, %q", first, again, refusals.Text(again))
	}
	if refusals.Len() >= 1<<16 {
		t.Errorf("%d refusals are stored", refusals.Len())
	}
}
