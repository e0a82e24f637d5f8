//go:debug randseednop=0
package simulation_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/simulation"
)

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

func TestRandomRunsBreakNoRuleAndComeToRest(t *testing.T) {
	first := number(t, "HEKLA_SIMULATION_SEED", 1)
	runs := number(t, "HEKLA_SIMULATION_RUNS", 2)
	steps := number(t, "HEKLA_SIMULATION_STEPS", 1500)
	total, begin := 0, time.Now()
	happened := map[string]int{}
	for seed := first; seed < first+runs; seed++ {
		plan := simulation.NewPlan(uint64(seed), steps, simulation.DefaultRates)
		result := simulation.Run(t, plan, programs)
		t.Log(result)
		total += result.Steps
		for kind, n := range result.Happened {
			happened[kind] += n
		}
		if file := os.Getenv("HEKLA_SIMULATION_TRACE"); file != "" {
			if err := os.WriteFile(file, []byte(strings.Join(result.Trace, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if len(result.Violations) > 0 {
			t.Errorf("HEKLA_SIMULATION_SEED=%d HEKLA_SIMULATION_STEPS=%d:\n%s", seed, steps, strings.Join(result.Violations, "\n"))
			shrink(t, plan)
		}
	}
	took := time.Since(begin)
	t.Logf("%d steps in %s, %.0f a second; %v", total, took.Round(time.Second), float64(total)/took.Seconds(), happened)
}

// shrink prints a smaller plan that fails, if it may use runs for that.
func shrink(t *testing.T, plan *simulation.Plan) {
	t.Helper()
	attempts := number(t, "HEKLA_SIMULATION_SHRINK", 0)
	if attempts == 0 {
		return
	}
	var last *simulation.Result
	shrunk := simulation.Shrink(plan, attempts, func(p *simulation.Plan) bool {
		result := simulation.Run(t, p, programs)
		if len(result.Violations) > 0 {
			last = result
		}
		return len(result.Violations) > 0
	})
	t.Logf("a smaller plan that fails: %s", shrunk)
	if last != nil {
		t.Logf("%s\nthe last of its steps:\n%s", strings.Join(last.Violations, "\n"), strings.Join(last.Trace[max(0, len(last.Trace)-200):], "\n"))
	}
}
