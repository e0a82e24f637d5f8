package process_test

import (
	"runtime"
	"testing"

	"hekla.sh/hekla/internal/process"
)

func TestHalfOfTheCoresAreLeftToOthers(t *testing.T) {
	all := runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(all))
	t.Setenv("GOMAXPROCS", "")
	if !process.LeaveCores() || runtime.GOMAXPROCS(0) != max(all/2, 1) {
		t.Errorf("of %d cores it computes on %d", all, runtime.GOMAXPROCS(0))
	}
	for name, set := range map[string]func(t *testing.T){
		"by the environment": func(t *testing.T) { t.Setenv("GOMAXPROCS", "7") },
		"by a limit":         func(*testing.T) { runtime.GOMAXPROCS(all + 3) },
	} {
		t.Run(name, func(t *testing.T) {
			runtime.GOMAXPROCS(all)
			set(t)
			if before := runtime.GOMAXPROCS(0); process.LeaveCores() || runtime.GOMAXPROCS(0) != before {
				t.Errorf("the number of cores was set, and is changed from %d to %d", before, runtime.GOMAXPROCS(0))
			}
		})
	}
}
