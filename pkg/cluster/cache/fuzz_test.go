package cache

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzEvents reads a history out of bytes: every byte is one choice. Whatever happens the model is sound, nothing
// panics, and in the end it is what a restarted one would be.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(8) {
		source := rand.NewChaCha8([32]byte{byte(seed)})
		history := make([]byte, 200*(seed+1))
		source.Read(history)
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, history []byte) {
		choose := func(n int) int {
			if len(history) == 0 {
				return 0
			}
			choice := int(history[0]) % n
			history = history[1:]
			return choice
		}
		w := newRandomModel(choose)
		actions := w.actions()
		var names []string
		for name := range actions {
			names = append(names, name)
		}
		slices.Sort(names)
		for len(history) > 0 {
			actions[names[choose(len(names))]]()
			sound(t, w.model)
		}
		w.settle()
		w.model.Expire(w.now)
		sound(t, w.model)
		if diff := cmp.Diff(meaning(w.model), meaning(w.again())); diff != "" {
			t.Fatalf("a restarted model differs (-this +restarted):\n%s", diff)
		}
	})
}
