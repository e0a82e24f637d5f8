package workloads

import (
	"strings"
	"testing"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

func TestTheReportOfWorkloadsIsReadable(t *testing.T) {
	r := &Report{Parameters: Parameters{Nodes: 1000, Workloads: 100, Runs: 1}, RequestsAtOnce: 16, Findings: testbed.NoFindings(), Runs: []Pair{
		{LoopFirst: true, Ratio: 0.9, Loop: Measurement{Admissions: 100, AdmissionsPerSecond: 200, Cost: testbed.Cost{APIWrites: testbed.Writes{"PATCH workloads/status 200": 200, "PATCH jobs 200": 100}}},
			Hekla: Measurement{Admissions: 100, AdmissionsPerSecond: 180, SchedulerCPUSeconds: 0.5, Cost: testbed.Cost{APIWrites: testbed.Writes{"PATCH workloads/status 200": 250}}}},
	}}
	text := func() string {
		var out strings.Builder
		if err := r.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	said := text()
	for _, want := range []string{"100 Jobs of one pod, 1000 nodes; the loop sends 3 requests for each, 16 at once", "1 loop 200 3.00", "1 Hekla 180 2.50 0.00 0.00 0.50",
		"1 ratio 0.90", "PATCH workloads/status 200 200 250", "PATCH jobs 200 100 0", "Every Job was started"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	r.Violations = []string{"hekla-1: 9 Jobs were started, and not 10"}
	if said := text(); !strings.Contains(said, "WRONG: hekla-1: 9 Jobs") || strings.Contains(said, "Every Job") {
		t.Errorf("it says\n%s", said)
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"one":           {Options{Options: testbed.Options{Nodes: 1}, Workloads: 1, Runs: 1}, "workloads is 1"},
		"no run":        {Options{Options: testbed.Options{Nodes: 1}, Workloads: 2}, "runs is 0"},
		"no node":       {Options{Workloads: 2, Runs: 1}, "nodes is 0"},
		"more than fit": {Options{Options: testbed.Options{Nodes: 1}, Workloads: 33, Runs: 1}, "33 workloads do not fit: 1 nodes have room for 32"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.options.validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
