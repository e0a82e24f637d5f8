package scheduler_test

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever happens between cycles, the rules hold under every configuration. More of it: go test -rapid.checks=5000.
func TestInvariantsHoldWhateverHappens(t *testing.T) {
	for _, configuration := range names(configurations) {
		t.Run(configuration, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				l := newRandomCluster(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }, configuration)
				steps := map[string]func(*rapid.T){"": func(t *rapid.T) { l.check(t) }}
				for name, step := range l.steps() {
					steps[name] = func(*rapid.T) { step() }
				}
				t.Repeat(steps)
				l.checkRest(t)
				l.checkReplay(t)
				l.checkIdle(t)
			})
		})
	}
}
