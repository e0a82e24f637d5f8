package report_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/simulator/report"
)

// page is the page that says what the fields mean.
const page = "../../../docs/simulate.md"

func Example() {
	r := report.New()
	r.Cycles, r.Stable = 2, true
	r.Evictions = append(r.Evictions, report.Eviction{Cycle: 1, Pod: "work/old", Node: "n1", Action: "reclaim", Rule: "Q1", For: "work/new", Message: "its queue comes first"})
	r.Nominations = append(r.Nominations, report.Nomination{Cycle: 1, Pod: "work/new-0", Node: "n1"})
	r.Binds = append(r.Binds, report.Bind{Cycle: 2, Pod: "work/new-0", Node: "n1"})
	r.Jobs = []report.Job{{Job: "work/new", Queue: "high", Phase: "Running", Ready: 1, MinAvailable: 1},
		{Job: "work/old", Queue: "low", Phase: "Inqueue", MinAvailable: 1, Reason: "NotEnoughResources", Message: "cpu: short by 1"}}
	if err := r.WriteText(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// Cycle 1
	//   evict     work/old    from n1  for work/new by reclaim (Q1): its queue comes first
	//   nominate  work/new-0  to n1
	// Cycle 2
	//   bind  work/new-0  to n1
	// After 2 cycles, at rest
	//   JOB       QUEUE  PHASE    READY  MIN
	//   work/new  high   Running  1      1
	//   work/old  low    Inqueue  0      1
	// work/old waits: NotEnoughResources: cpu: short by 1
}

func TestTextSaysWhereWorkloadsStand(t *testing.T) {
	r := report.New()
	r.Cycles = 2
	r.Evictions = append(r.Evictions, report.Eviction{Cycle: 1, Workload: "team/b", For: "team/a", Reason: "InCohortReclamation", Message: "preempted"})
	r.Workloads = []report.Workload{
		{Workload: "team/a", ClusterQueue: "q", Admitted: true, Nodes: map[string]map[string]int{"main": {"n2": 1, "n1": 2}, "other": {"n1": 1}}},
		{Workload: "team/b", ClusterQueue: "q", Reason: "Pending", Message: "quota is short"}}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `Cycle 1
  evict  team/b  for team/a (InCohortReclamation): preempted
After 2 cycles, not at rest
  JOB       QUEUE         PHASE     READY  MIN
  WORKLOAD  CLUSTERQUEUE  ADMITTED  NODES
  team/a    q             true      n1 (3), n2 (1)
  team/b    q             false     ` + `
team/b waits: Pending: quota is short
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("the text (-want +have):\n%s", diff)
	}
}

func TestAnEvictionSaysForWhomAndByWhichRule(t *testing.T) {
	for want, e := range map[string]report.Eviction{
		"for work/x by preempt (J1)":  {Action: "preempt", Rule: "J1", For: "work/x"},
		"for work/x by preempt":       {Action: "preempt", For: "work/x"},
		"by shuffle (T1)":             {Action: "shuffle", Rule: "T1"},
		"for team/a (InClusterQueue)": {Action: "admit", Workload: "team/b", For: "team/a", Reason: "InClusterQueue"},
		"NodeFailures":                {Workload: "team/b", Reason: "NodeFailures"},
	} {
		if have := e.Authority(); have != want {
			t.Errorf("it says %q, want %q", have, want)
		}
	}
}

func TestListsAreNeverNull(t *testing.T) {
	r := report.New()
	var b strings.Builder
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var have map[string]any
	if err := json.Unmarshal([]byte(b.String()), &have); err != nil {
		t.Fatal(err)
	}
	none := []any{}
	want := map[string]any{"cycles": 0.0, "stable": false, "binds": none, "evictions": none, "nominations": none, "jobs": none, "queues": none}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("an empty report (-want +have):\n%s", diff)
	}
}

func TestJSONShowsTextAsItIs(t *testing.T) {
	r := report.New()
	r.Jobs = append(r.Jobs, report.Job{Job: "work/a", Message: "needs 2 > 1 & more"})
	var b strings.Builder
	if err := r.WriteJSON(&b); err != nil || !strings.Contains(b.String(), "needs 2 > 1 & more") {
		t.Errorf("it is %s: %v", b.String(), err)
	}
}

func TestRowsAreAllThatWasDecided(t *testing.T) {
	r := report.New()
	for want, decide := range []func(){
		func() {},
		func() { r.Binds = append(r.Binds, report.Bind{}) },
		func() { r.Evictions = append(r.Evictions, report.Eviction{}) },
		func() { r.Nominations = append(r.Nominations, report.Nomination{}) },
		func() {
			r.Jobs = append(r.Jobs, report.Job{})
			r.Nominations = append(r.Nominations, report.Nomination{})
		},
	} {
		if decide(); r.Rows() != want {
			t.Errorf("there are %d rows, want %d", r.Rows(), want)
		}
	}
}

// members are those that the JSON of a type may have.
func members(of any) (names []string) {
	t := reflect.TypeOf(of)
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func TestThePageNamesAllFieldsOfTheJSON(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for what, of := range map[string]any{"the whole": report.Report{}, "`binds`": report.Bind{}, "`evictions`": report.Eviction{}, "`nominations`": report.Nomination{},
		"`jobs`": report.Job{}, "`queues`": report.Queue{}, "`workloads`": report.Workload{}, "`leftOut`": report.LeftOut{}, "`explanations`": report.Explanations{}} {
		row := regexp.MustCompile(`(?m)^\| ` + what + ` \| (.*) \|$`).FindStringSubmatch(string(text))
		if row == nil {
			t.Errorf("%s has no row for %s", page, what)
			continue
		}
		var named []string
		for _, name := range regexp.MustCompile("`[^`]*`").FindAllString(row[1], -1) {
			named = append(named, strings.Trim(name, "`"))
		}
		if diff := cmp.Diff(members(of), named); diff != "" {
			t.Errorf("the fields of %s (-in the JSON +on the page):\n%s", what, diff)
		}
	}
}

func TestTheWorkloadOnThePageIsOne(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```json\n")
	shown, _, _ := strings.Cut(after, "```")
	var w report.Workload
	decoder := json.NewDecoder(strings.NewReader(shown))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&w); err != nil {
		t.Fatalf("%v in %s", err, shown)
	}
	var have, want any
	printed, err := json.Marshal(w)
	if err != nil || json.Unmarshal(printed, &have) != nil || json.Unmarshal([]byte(shown), &want) != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the Workload (-on the page +printed):\n%s", diff)
	}
}
