package jobs

import (
	"strings"
	"testing"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

func TestTheReportOfJobsIsReadable(t *testing.T) {
	r := &Report{Parameters: Parameters{Jobs: 1000, Pods: 10, Runs: 2}, RequestsAtOnce: 16, Findings: testbed.NoFindings(), Runs: []Pair{
		{LoopFirst: true, Ratio: 1.5, Loop: Measurement{PodsPerSecond: 200, PodsPerSecondFromStart: 199, WritesPerSecond: 220, Cost: testbed.Cost{APIWrites: testbed.Writes{"POST pods 201": 10000}}},
			Hekla: Measurement{PodsPerSecond: 300, WritesPerSecond: 385, ProcessCPUSeconds: 2.5, PeakMemoryBytes: 64 << 20, Cost: testbed.Cost{APIWrites: testbed.Writes{"POST pods 201": 10000, "PATCH jobs/status 200": 7}}}},
		{Ratio: 2},
	}}
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"Load 1000 Jobs of 10 pods; the loop sends 16 requests at once", "1 loop 200 199 220 0.00 0.0 0.0", "1 Hekla 300 0 385 0.00 2.50 64 0.0 0.0", "1 ratio 1.50 1.75",
		"2 Hekla 0 0 0 0.00 0.0 0.0 2 loop", "all writes in run 2", "Every Job has its pods"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	r.Violations = []string{"Job a has 9 pods"}
	out.Reset()
	if err := r.WriteText(&out); err != nil || !strings.Contains(out.String(), "WRONG: Job a has 9 pods") || strings.Contains(out.String(), "Every Job") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
