package scheduler

import (
	"testing"

	"pgregory.net/rapid"
)

// The laws hold whatever happens between cycles, under every configuration. More: go test -rapid.checks=5000.
func TestTheLawsHoldWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		steps := map[string]func(*rapid.T){"": func(t *rapid.T) { l.check(t) }}
		for name, step := range l.steps() {
			steps[name] = func(*rapid.T) { step() }
		}
		t.Repeat(steps)
		l.checkRest(t)
		l.checkReplay(t)
		l.checkIdle(t)
	})
}
