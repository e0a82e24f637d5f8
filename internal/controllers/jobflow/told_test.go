package jobflow

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestTroublesAreToldOnce(t *testing.T) {
	name := types.NamespacedName{Namespace: "lab", Name: "f"}
	one, two := trouble{"InvalidSpec", "no"}, trouble{"FailedCreate", "a no"}
	var told told
	for i, step := range []struct {
		uid          types.UID
		now, already []trouble
	}{
		{"u", []trouble{one}, nil},
		{"u", []trouble{one, two}, []trouble{one}},
		{"u", nil, []trouble{one, two}},
		{"u", []trouble{two}, nil},
		{"other", []trouble{two}, nil},
	} {
		if got := told.replace(name, step.uid, step.now); !slices.Equal(got, step.already) {
			t.Errorf("step %d: told are %v, want %v", i, got, step.already)
		}
	}
	told.forget(name)
	if got := told.replace(name, "other", nil); got != nil || len(told.of) != 0 {
		t.Errorf("a JobFlow that is gone has told %v", got)
	}
}
