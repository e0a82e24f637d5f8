package similar

import "testing"

func TestDistanceCountsSlipsOfTheFinger(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{{"gang", "gang", 0}, {"gagn", "gang", 1}, {"gng", "gang", 1}, {"gaang", "gang", 1}, {"gong", "gang", 1}, {"", "drf", 3}, {"kitten", "sitting", 3}}
	for _, test := range tests {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q are %d, want %d", test.a, test.b, got, test.want)
		}
		if got := editDistance(test.b, test.a); got != test.want {
			t.Errorf("from %q to %q are %d, want %d", test.b, test.a, got, test.want)
		}
	}
}

func TestOnlyANearNameIsSuggested(t *testing.T) {
	known := []string{"reclaim", "preempt", "gang", "drf", "predicate.NodeAffinityEnable", "pdb", "cdp"}
	for name, want := range map[string]string{"recliam": "reclaim", "Preempt": "preempt", "gangs": "gang", "frd": "", "sharing": "",
		"predicate.NodeAffinity": "predicate.NodeAffinityEnable", "cdb": "cdp", "": ""} {
		if got := Nearest(name, known); got != want {
			t.Errorf("for %q it suggests %q, want %q", name, got, want)
		}
	}
}
