package quota_test

import (
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/plugins/internal/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
)

// amounts reads "cpu=1" into dimensions that all of a test share.
func amounts(x *resources.Index, text string) resources.Vector { return x.Vector(fixture.List(text)) }

func TestSurplusIsWhatLiesAboveTheShare(t *testing.T) {
	for name, test := range map[string]struct {
		allocated, deserved, leaving, wanted string
		want                                 bool
	}{
		"all above":                               {"cpu=4", "cpu=2", "cpu=2", "cpu=1", true},
		"partly above":                            {"cpu=4", "cpu=3", "cpu=2", "cpu=1", false},
		"all within":                              {"cpu=2", "cpu=2", "cpu=1", "cpu=1", false},
		"above in one that is wanted":             {"cpu=4 memory=4", "cpu=2 memory=4", "cpu=1 memory=1", "cpu=1", true},
		"above in one that is not wanted":         {"cpu=4 memory=4", "cpu=2 memory=4", "cpu=1 memory=1", "memory=1", false},
		"above in one that does not leave":        {"cpu=4 memory=4", "cpu=2 memory=4", "memory=1", "cpu=1 memory=1", false},
		"the share does not speak of what leaves": {"cpu=4 memory=4", "cpu=9", "memory=1", "memory=1", true},
		"the share speaks of pods alone":          {"cpu=4 pods=4", "pods=9", "cpu=1 pods=1", "cpu=1 pods=1", true},
		"no share at all":                         {"cpu=4", "", "cpu=4", "cpu=1", true},
		"deserving nothing":                       {"cpu=4", "cpu=0", "cpu=4", "cpu=1", true},
	} {
		x := resources.NewIndex()
		got := quota.IsSurplus(amounts(x, test.allocated), x.Limits(fixture.List(test.deserved)), amounts(x, test.leaving), amounts(x, test.wanted))
		if got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAQueueIsAboveItsShareInWhatIsAskedAbout(t *testing.T) {
	for name, test := range map[string]struct {
		allocated, deserved, asked string
		want                       bool
	}{
		"above":                        {"cpu=3", "cpu=2", "cpu=1", true},
		"at it":                        {"cpu=2", "cpu=2", "cpu=1", false},
		"above in what is not asked":   {"cpu=3 memory=1", "cpu=2 memory=1", "memory=1", false},
		"above in one of two":          {"cpu=3 memory=1", "cpu=2 memory=1", "cpu=1 memory=1", true},
		"above in what is not named":   {"cpu=3", "memory=1", "cpu=1", false},
		"above in the number of pods":  {"pods=3", "pods=1", "pods=1", false},
		"deserving nothing of what is": {"cpu=1", "cpu=0", "cpu=1", true},
	} {
		x := resources.NewIndex()
		if got := quota.IsAbove(amounts(x, test.allocated), x.Limits(fixture.List(test.deserved)), amounts(x, test.asked)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhatIsSurplusLeavesAQueueThatIsAboveItsShare(t *testing.T) {
	draw := rapid.SliceOfN(rapid.Int64Range(0, 4), 5, 5)
	rapid.Check(t, func(r *rapid.T) {
		allocated, leaving, wanted := resources.Vector(draw.Draw(r, "allocated")), resources.Vector(draw.Draw(r, "leaving")), resources.Vector(draw.Draw(r, "wanted"))
		leaving.AtMost(allocated)
		var deserved resources.Limits
		speaks := false
		for d := range resources.Dim(5) {
			if rapid.Bool().Draw(r, "named") {
				deserved.Set(d, rapid.Int64Range(0, 4).Draw(r, "deserved"))
				speaks = speaks || leaving.At(d) > 0 && d != resources.Pods
			}
		}
		isSurplus := quota.IsSurplus(allocated, deserved, leaving, wanted)
		if !speaks && !isSurplus {
			r.Fatal("what the share does not speak of is not surplus")
		}
		if speaks && isSurplus && !quota.IsAbove(allocated, deserved, leaving) {
			r.Fatal("there is a surplus, and the queue is not above its share")
		}
		// What was surplus when it left is no right to come back: some resource that is named is at its share without it.
		if speaks && isSurplus {
			atShare := false
			for d := range resources.Dim(5) {
				limit, ok := deserved.At(d)
				atShare = atShare || ok && leaving.At(d) > 0 && allocated.At(d)-leaving.At(d) >= limit
			}
			if !atShare {
				r.Fatal("the queue could take back by right what it lost by right")
			}
		}
	})
}

func TestLimitsAreTheAmountsOfWhatCounts(t *testing.T) {
	x := resources.NewIndex()
	limits := quota.Limits(amounts(x, "cpu=2 memory=0 example.com/a=3"), amounts(x, "cpu=1 memory=1"))
	a, _ := x.Find("example.com/a")
	if limits.Value(resources.CPU) != 2000 || limits.Value(resources.Memory) != 0 {
		t.Errorf("the limits are %v", x.LimitList(limits))
	}
	if _, ok := limits.At(a); ok {
		t.Error("a resource that does not count has a limit")
	}
	if _, ok := limits.At(resources.Pods); ok {
		t.Error("a resource that nobody spoke of has a limit")
	}
}
