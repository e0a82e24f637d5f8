package scheduler_test

import (
	"math/rand/v2"
	"testing"
)

// FuzzLife reads a history from bytes: every byte is one choice. Whatever happens between cycles, nothing panics, the
// totals are right, and the rules hold.
func FuzzLife(f *testing.F) {
	f.Add([]byte{})
	for seed := range 12 {
		source := rand.NewChaCha8([32]byte{byte(seed)})
		history := make([]byte, 300)
		source.Read(history)
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, history []byte) {
		var choose chooser = func(n int) int {
			if len(history) == 0 {
				return 0
			}
			choice := int(history[0]) % n
			history = history[1:]
			return choice
		}
		l := newRandomCluster(choose, names(configurations)[choose(len(configurations))])
		steps := l.steps()
		all := names(steps)
		for len(history) > 0 {
			for range 1 + choose(4) {
				steps[choose.oneOf(all...)]()
			}
			l.check(t)
		}
		l.checkRest(t)
		l.checkReplay(t)
	})
}
