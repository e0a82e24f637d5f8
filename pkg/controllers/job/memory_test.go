package job

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestAnOlderVersionThanTheOneWrittenIsOutdated(t *testing.T) {
	name := types.NamespacedName{Namespace: "lab", Name: "sim"}
	m := newMemory()
	if m.outdated(name, "u1", "5", noon) {
		t.Error("nothing was written, yet version 5 is outdated")
	}
	m.wrote(name, "u1", "10", noon)
	for _, test := range []struct {
		uid     types.UID
		version string
		at      time.Time
		want    bool
	}{
		{"u1", "9", noon, true},
		{"u1", "10", noon, false},
		{"u1", "11", noon, false},
		{"u1", "100", noon, false},
		{"u1", "9", noon.Add(memoryLasts + time.Second), false},
		{"u1", "not a number", noon, false},
	} {
		if got := m.outdated(name, test.uid, test.version, test.at); got != test.want {
			t.Errorf("version %s at %s: outdated is %t", test.version, test.at.Sub(noon), got)
		}
	}
	if m.outdated(name, "u2", "9", noon) {
		t.Error("a new Job under the name inherits the memory of the old one")
	}
}

func TestACreatedPodIsAwaitedUntilItIsSeenOrTooLongAgo(t *testing.T) {
	name := types.NamespacedName{Namespace: "lab", Name: "sim"}
	m := newMemory()
	m.create(name, "u1", "sim-a-0", noon)
	m.create(name, "u1", "sim-a-1", noon)
	m.settle(name, "u1", "sim-a-1")
	m.settle(name, "u2", "sim-a-0") // a pod of another Job of the name
	if !m.awaited(name, "u1", "sim-a-0", noon) {
		t.Error("sim-a-0 was created and not seen, and is not awaited")
	}
	if m.awaited(name, "u1", "sim-a-1", noon) {
		t.Error("sim-a-1 was seen and is still awaited")
	}
	if m.awaited(name, "u1", "sim-a-0", noon.Add(memoryLasts+time.Second)) {
		t.Error("sim-a-0 is awaited for ever")
	}
	m.forget(name)
	if m.awaited(name, "u1", "sim-a-0", noon) || len(m.jobs) != 1 {
		t.Error("a forgotten Job is remembered")
	}
}
