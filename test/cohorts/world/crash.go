package world

import (
	"math/rand/v2"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/test/harness/loop"
)

// crash is the end of the scheduler that is to come.
type crash struct {
	left   int
	isOver bool
}

// CrashAfter ends the scheduler when it wants to make the write after so many of them, and starts another at the end
// of that step. The API server never sees what the first had decided and not written.
func (w *World) CrashAfter(writes int) { w.crash = &crash{left: writes} }

// HasCrashed reports whether the crash that was to come has come.
func (w *World) HasCrashed() bool { return w.crash == nil }

// HasRestarted reports whether another scheduler was started in the last step.
func (w *World) HasRestarted() bool { return w.hasRestarted }

func (w *World) mayWrite() bool {
	if w.crash == nil {
		return true
	}
	if w.crash.isOver = w.crash.left == 0; w.crash.isOver {
		return false
	}
	w.crash.left--
	return true
}

func (w *World) hasCrashed() bool { return w.crash != nil && w.crash.isOver }

// Restart starts another scheduler, which knows the objects only. It sees them in an order by chance, or by their
// names if random is nil.
func (w *World) Restart(random *rand.Rand) *World {
	w.tb.Helper()
	w.crash = nil
	clear(w.late)
	now := w.Now
	w.Loop = loop.New(w.tb, w.configuration)
	w.Now = now
	var all []client.Object
	for _, o := range w.objects {
		all = append(all, o)
	}
	for _, p := range w.pods {
		all = append(all, p.Pod)
	}
	slices.SortFunc(all, func(a, b client.Object) int { return strings.Compare(keyOf(a), keyOf(b)) })
	if random != nil {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	for _, o := range all {
		w.Set(o)
	}
	return w
}
