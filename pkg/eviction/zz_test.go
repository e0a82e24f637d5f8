package eviction_test

import (
	"testing"

	"hekla.sh/hekla/test/fixture"
)

func TestZZ(t *testing.T) {
	w := newWorld(t, with(everything, "- name: gang\n", "- name: gang\n    enableJobStarving: false\n")+"configurations: [{name: preempt, arguments: {allowWholeGang: false}}, {name: reclaim, arguments: {allowWholeGang: false}}]\n").set(nodes("cpu=2", "n0"), queue("q0", 0, "cpu=1", "", ""), job("j0", "q0", "", 1, "n0"), job("j1", "q0", "", 1, "n0 - -", one(2, fixture.Asks(""))), job("t0", "q0", "high", 1, "-"))
	for range 4 {
		t.Log(w.cycle(), "|", w.why("t0"), "|", w.why("j1"))
		w.run()
	}
}
