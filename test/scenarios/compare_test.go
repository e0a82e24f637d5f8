package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"hekla.sh/hekla/internal/simulator"
)

var half = 0.5

// decided is a report with a little of everything.
var decided = &simulator.Report{
	Cycles: 4, Stable: true,
	Binds: []simulator.Bind{{Cycle: 2, Pod: "work/x-0", Node: "n1"}, {Cycle: 2, Pod: "work/x-1", Node: "n2"}, {Cycle: 2, Pod: "work/x-2", Node: "n2"}},
	Evictions: []simulator.Eviction{
		{Cycle: 1, Pod: "work/b", Node: "n1", Action: "preempt", Rule: "J1", For: "work/x", Message: "why"},
		{Cycle: 1, Pod: "work/a", Node: "n2", Action: "preempt", For: "work/x", Message: "why"}},
	Nominations: []simulator.Nomination{{Cycle: 1, Pod: "work/x-0", Node: "n1"}},
	Jobs:        []simulator.Job{{Job: "work/y", Phase: "Pending", Reason: "OverShare", Message: "2 by rule J1"}},
	Queues:      []simulator.Queue{{Queue: "q", Allocated: map[string]string{"cpu": "4"}, Deserved: map[string]string{"cpu": "8"}, Share: &half}},
}

func TestEveryExpectationCanBeMetAndCanFail(t *testing.T) {
	for name, test := range map[string]struct{ met, failing, difference string }{
		"evict":           {`{evict: [work/a, work/b]}`, `{evict: [work/a]}`, "evict: expected [work/a], evicted are [work/a work/b]"},
		"evict nobody":    {`{evict: [work/b, work/a]}`, `{evict: []}`, "evict: expected [], evicted"},
		"evictAnyOf":      {`{evictAnyOf: [[], [work/b, work/a]]}`, `{evictAnyOf: [[], [work/a]]}`, "evictAnyOf: expected one of"},
		"evictCount":      {`{evictCount: 2}`, `{evictCount: 1}`, "evictCount: expected 1"},
		"evictions":       {`{evictions: {work/b: {action: preempt, rule: J1, for: work/x}}}`, `{evictions: {work/b: {rule: Q1}}}`, "evictions work/b: expected rule Q1, it is J1"},
		"eviction of it":  {`{evictions: {work/b: {}}}`, `{evictions: {work/c: {}}}`, "evictions: work/c is not evicted"},
		"eviction's rule": {`{evictions: {work/b: {}}}`, `{evictions: {work/a: {}}}`, "neither rule nor message may be empty"},
		"bind":            {`{bind: {work/x-0: n1, work/x-1: "*"}}`, `{bind: {work/x-0: n2}}`, "bind work/x-0: expected n2, it is [n1]"},
		"bind at all":     {`{bind: {work/x-1: "*"}}`, `{bind: {work/z: "*"}}`, "bind work/z: expected *, it is []"},
		"notBound":        {`{notBound: [work/z]}`, `{notBound: [work/x-0]}`, "notBound: work/x-0 is, to [n1]"},
		"nominate":        {`{nominate: {work/x-0: n1}}`, `{nominate: {work/x-1: n2}}`, "nominate work/x-1: expected n2"},
		"nominateCount":   {`{nominateCount: 1}`, `{nominateCount: 2}`, "nominateCount: expected 2, it is 1"},
		"notNominated":    {`{notNominated: [work/x-1]}`, `{notNominated: [work/x-0]}`, "notNominated: work/x-0 is"},
		"apart":           {`{apart: [[work/x-0, work/x-1]]}`, `{apart: [[work/x-1, work/x-2]]}`, "apart [work/x-1 work/x-2]: they are on [n2]"},
		"jobs":            {`{jobs: {work/y: {phase: Pending, ready: 0}}}`, `{jobs: {work/y: {ready: 1}}}`, "jobs work/y: expected ready 1, it is 0"},
		"a job":           {`{jobs: {work/y: {}}}`, `{jobs: {work/z: {}}}`, "jobs: there is no work/z"},
		"a field":         {`{jobs: {work/y: {}}}`, `{jobs: {work/y: {colour: red}}}`, "there is no field colour"},
		"reasonNot":       {`{jobs: {work/y: {reasonNot: ""}}}`, `{jobs: {work/y: {reasonNot: OverShare}}}`, "expected reasonNot OverShare"},
		"says":            {`{says: {work/y: [rule J1]}}`, `{says: {work/y: [rule J2]}}`, `says: of work/y it is not said "rule J2"`},
		"queues":          {`{queues: {q: {allocated: {cpu: 4000m}, share: 0.502}}}`, `{queues: {q: {deserved: {cpu: "7"}}}}`, "queues q deserved: expected cpu 7, it is 8"},
		"share":           {`{queues: {q: {share: 0.5}}}`, `{queues: {q: {share: 0.6}}}`, "queues q share: expected 0.6"},
		"a queue":         {`{queues: {q: {}}}`, `{queues: {r: {}}}`, "queues: there is no r"},
		"stable":          {`{stable: true}`, `{stable: false}`, "stable: expected false"},
	} {
		t.Run(name, func(t *testing.T) {
			for text, want := range map[string]string{test.met: "", test.failing: test.difference} {
				var e expectation
				if err := yaml.Unmarshal([]byte(text), &e); err != nil {
					t.Fatal(err)
				}
				differences := e.compare(decided)
				if want == "" && len(differences) > 0 || want != "" && (len(differences) != 1 || !strings.Contains(differences[0], want)) {
					t.Errorf("of %s it is said %q, want %q", text, differences, want)
				}
			}
		})
	}
}

func TestAnExpectationThatIsNotUnderstoodIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"source: s\nrules: [S1]\ncycles: 1\nexpect: {evicts: []}":                   "field evicts not found",
		"source: s\nrules: [S1]\nexpect: {evict: []}":                               "either cycles or untilStable",
		"source: s\nrules: [S1]\ncycles: 1\nuntilStable: true\nexpect: {evict: []}": "either cycles or untilStable",
		"source: s\ncycles: 1\nexpect: {evict: []}":                                 "source and rules",
		"rules: [S1]\ncycles: 1\nexpect: {evict: []}":                               "source and rules",
		"source: s\nrules: [S1]\ncycles: 1\nexpect: {}":                             "could not fail",
	} {
		if _, err := parseScenario([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read with %v, want %q", text, err, want)
		}
	}
	if _, err := (&scenario{Cycles: 1, Fates: map[string]fate{"work/a": {Overdue: "soon"}}}).options(); err == nil || !strings.Contains(err.Error(), "fates: work/a") {
		t.Errorf("a fate that cannot be read gives %v", err)
	}
}

func TestADraftIsAScenarioThatLacksSourceAndRulesOnly(t *testing.T) {
	draft := string(drafted(decided))
	if _, err := parseScenario([]byte(draft)); err == nil || !strings.Contains(err.Error(), "source and rules") {
		t.Errorf("a draft is accepted with %v", err)
	}
	complete := strings.NewReplacer(`source: ""`, "source: here", "rules: []", "rules: [S1]", `rule: ""`, "rule: J1").Replace(draft)
	s, err := parseScenario([]byte(complete))
	if err != nil {
		t.Fatalf("%v in\n%s", err, complete)
	}
	met := *decided
	met.Evictions = append([]simulator.Eviction{}, decided.Evictions...)
	met.Evictions[1].Rule = "J1"
	if diff := gocmp.Diff([]string(nil), s.Expect.compare(&met)); diff != "" {
		t.Errorf("what is drafted is not met:\n%s", diff)
	}
}

func TestKnownDifferencesComeWithAReason(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known.yaml")
	if err := os.WriteFile(file, []byte("a-case: \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readKnownDifferences(file); err == nil || !strings.Contains(err.Error(), "a-case has no reason") {
		t.Errorf("one without is read with %v", err)
	}
}

// The page shows a person how evictions are told.
func TestThePageOnSimulateQuotesAScenario(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	const folder = "where-reclaim-comes-first-the-lower-queue-gives"
	s, err := readScenario(folder)
	if err != nil {
		t.Fatal(err)
	}
	_, words := s.differences()
	for _, want := range []string{"-f test/scenarios/" + folder + "/cluster.yaml --until-stable", strings.TrimSpace(words)} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say\n%s", want)
		}
	}
}
