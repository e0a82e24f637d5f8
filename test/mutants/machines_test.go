package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machine is a test that looks for defects, a round at a time. Each round tries something else.
type machine struct {
	name         string // as docs/promises.md has it
	folder, test string
	arguments    []string
	environment  func(round int) []string
	unit         string // in which it is counted what a round does
	// counted finds how many units a round has done, and failing, if there is one, how many it had done before it
	// failed.
	counted, failing *regexp.Regexp
	said             *regexp.Regexp // what it objects to
	most             int            // units that are done for a mutant, about
}

// longestRound is how long a round may take. With some mutants a program does not end.
const longestRound = 30 * time.Minute

// machines are all that are asked, by their names.
func machines() map[string]*machine {
	all := map[string]*machine{}
	for _, m := range []*machine{{
		name: "small clusters", folder: "test/rules", test: "TestEveryStateOfSmallClustersIsAllowedAndComesToRest", unit: "states", most: 4_000,
		environment: func(round int) []string {
			return []string{"HEKLA_SMALL_DEPTH=4", fmt.Sprintf("HEKLA_SMALL_ONE_IN=%d", 211>>round)} // each round has twice as many
		},
		counted: regexp.MustCompile(`(\d+) states`), said: regexp.MustCompile(`\n +after: .*\n +(.*)`),
	}, {
		name: "judge of rules", folder: "test/rules", test: "TestTheRulesHoldInRandomClusters", unit: "clusters", most: 4_000,
		arguments: []string{"-rapid.shrinktime=1ms", "-rapid.nofailfile"},
		environment: func(round int) []string {
			return []string{"HEKLA_RULES_WORLDS=1000", fmt.Sprintf("HEKLA_RULES_SEED=%d", 1+round)}
		},
		counted: regexp.MustCompile(`(\d+) clusters, `), failing: regexp.MustCompile(`failed after (\d+) tests`),
		said: regexp.MustCompile(`failed after \d+ tests: (.*)`),
	}, {
		name: "fresh against running", folder: "test/differential", test: "TestNothingIsMissed", unit: "scenarios", most: 2_000,
		environment: func(round int) []string {
			return []string{"HEKLA_DIFFERENTIAL_WORLDS=500", fmt.Sprintf("HEKLA_DIFFERENTIAL_SEED=%d", 1+500*round)}
		},
		counted: regexp.MustCompile(`(\d+) scenarios from seed`), said: regexp.MustCompile(`made smaller: (.*)`),
	}, {
		name: "walk of cohorts", folder: "test/cohorts", test: "TestWhateverHappensNoRuleIsBroken", unit: "steps", most: 30_000,
		environment: func(round int) []string {
			return []string{"HEKLA_COHORT_STEPS=6000", fmt.Sprintf("HEKLA_COHORT_SEED=%d", 1+40*round)}
		},
		counted: regexp.MustCompile(`(\d+) steps, `), said: regexp.MustCompile(`walk_test\.go:\d+: (.*)`),
	}, {
		name: "simulation", folder: "test/simulation", test: "TestRandomRunsBreakNoRuleAndComeToRest", unit: "steps", most: 100_000,
		environment: func(round int) []string {
			return []string{"HEKLA_SIMULATION_RUNS=1", "HEKLA_SIMULATION_STEPS=1500", fmt.Sprintf("HEKLA_SIMULATION_SEED=%d", 1+round)}
		},
		counted: regexp.MustCompile(`(\d+) steps in `), said: regexp.MustCompile(`\n +step \d+: (.*)`),
	}} {
		all[m.name] = m
	}
	return all
}

// compile builds the tests of a machine with the files of an overlay, and returns the binary.
func (m *machine) compile(t *testing.T, folder, overlay string) string {
	t.Helper()
	binary := filepath.Join(folder, filepath.Base(m.folder)+".test")
	command := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+m.folder)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}

// outcome is what came of a round.
type outcome struct {
	hasFailed bool
	count     int    // of units
	says      string // why it has failed
	took      time.Duration
}

var panicked = regexp.MustCompile(`\npanic: (.*)`)

// play plays a round with a mutant, or with none if its name is "".
func (m *machine) play(ctx context.Context, binary string, round int, mutant string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, longestRound+time.Minute)
	defer cancel()
	arguments := append([]string{"-test.v", "-test.run", "^" + m.test + "$", "-test.timeout", longestRound.String()}, m.arguments...)
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Dir = filepath.Join(root, m.folder)
	command.Env = append(append(os.Environ(), m.environment(round)...), chosenEnv+"="+mutant)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	begin := time.Now()
	err := command.Run()
	o := outcome{hasFailed: err != nil, took: time.Since(begin)}
	if _, isEnd := errors.AsType[*exec.ExitError](err); err != nil && !isEnd {
		return o, err
	}
	counted := m.counted
	if o.hasFailed && m.failing != nil {
		counted = m.failing
	}
	if found := counted.FindStringSubmatch(output.String()); found != nil {
		if o.count, _ = strconv.Atoi(found[1]); counted == m.failing {
			o.count++ // the one with which it failed
		}
	} else if !o.hasFailed {
		return o, fmt.Errorf("%s does not say how much it has done:\n%s", m.name, &output)
	}
	for _, said := range []*regexp.Regexp{m.said, panicked} {
		if found := said.FindStringSubmatch(output.String()); o.hasFailed && o.says == "" && found != nil {
			o.says = clip(found[1])
		}
	}
	if o.hasFailed && o.says == "" {
		return o, fmt.Errorf("%s does not say why it has failed:\n%s", m.name, &output)
	}
	return o, nil
}

// clip makes a text fit into a table.
func clip(text string) string {
	const most = 140
	letters := []rune(strings.Join(strings.Fields(text), " "))
	if len(letters) > most {
		return strings.TrimSpace(string(letters[:most])) + " …"
	}
	return string(letters)
}
