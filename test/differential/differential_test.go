package differential

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/test/harness"
)

// The variables that say how many scenarios are led, which is the first, and where failures are written as scenarios.
const (
	scenariosEnv = "HEKLA_DIFFERENTIAL_WORLDS"
	seedEnv      = "HEKLA_DIFFERENTIAL_SEED"
	outEnv       = "HEKLA_DIFFERENTIAL_OUT"
	featuresEnv  = "HEKLA_DIFFERENTIAL_FEATURES"

	plainScenarios = 5000
	// maxTold is how many failures are made smaller and told: that takes longer than many scenarios.
	maxTold = 3
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // scenarios are many, small and short-lived
	os.Exit(m.Run())
}

// tally counts what happened in all scenarios, to show that they are worth leading.
type tally struct{ cycles, binds, plans, changes, rests atomic.Int64 }

func (s *tally) add(l *run) {
	s.cycles.Add(int64(l.cycles))
	s.binds.Add(int64(l.binds))
	s.plans.Add(int64(l.plans))
	s.changes.Add(int64(len(l.scenario.changes)))
	s.rests.Add(int64(l.rests))
}

// leadAll leads the scenarios of some seeds, on all cores, and returns those that fail, in order.
func leadAll(first, count uint64, sum *tally, overlook func(wake.Cause) bool) []uint64 {
	var group sync.WaitGroup
	var mutex sync.Mutex
	var failed []uint64
	var next atomic.Uint64
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < count; i = next.Add(1) - 1 {
				w := makeScenario(first + i)
				w.overlook = overlook
				l := lead(w)
				sum.add(l)
				if l.failure != "" {
					mutex.Lock()
					failed = append(failed, first+i)
					mutex.Unlock()
				}
			}
		})
	}
	group.Wait()
	slices.Sort(failed)
	return failed
}

// Whatever the scenario is like and whatever happens in it: what a scheduler would do that starts now, the one that
// runs has done.
func TestNothingIsMissed(t *testing.T) {
	first, scenarios := harness.Number(t, seedEnv, uint64(1)), harness.Number(t, scenariosEnv, uint64(plainScenarios))
	var sum tally
	failed := leadAll(first, scenarios, &sum, nil)
	t.Logf("%d scenarios from seed %d: %d cycles, %d binds, %d plans, %d changes, %d rests compared", scenarios, first, sum.cycles.Load(), sum.binds.Load(),
		sum.plans.Load(), sum.changes.Load(), sum.rests.Load())
	if len(failed) > 0 {
		t.Errorf("%d of %d scenarios fail: seeds %v", len(failed), scenarios, failed)
	}
	for _, seed := range failed[:min(len(failed), maxTold)] {
		l := lead(shrink(makeScenario(seed)))
		t.Errorf("seed %d, made smaller: %s", seed, l.tell())
		if out := os.Getenv(outEnv); out != "" {
			if err := l.write(filepath.Join(out, "seed-"+strconv.FormatUint(seed, 10))); err != nil {
				t.Error(err)
			}
		}
	}
	if n := int64(scenarios); sum.binds.Load() < n/3 || sum.plans.Load() < n/12 || sum.rests.Load() < 2*n {
		t.Error("too little happens in these scenarios: the test shows nothing")
	}
}
