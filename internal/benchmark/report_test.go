package benchmark

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsThatCannotBeMeasuredAreRefused(t *testing.T) {
	good := Options{Nodes: 2, Pods: 40, Gang: 10, Runs: 1}
	for want, change := range map[string]func(*Options){
		"":                                  func(*Options) {},
		"runs is 0; it must be 1 or more":   func(o *Options) { o.Runs = 0 },
		"nodes is -1; it must be 1 or more": func(o *Options) { o.Nodes = -1 },
		"41 pods cannot be divided into gangs of 10":                       func(o *Options) { o.Pods = 41 },
		"70 pods do not fit: 2 nodes have room for 64":                     func(o *Options) { o.Pods = 70 },
		"the time from the first binding to the last needs 2 pods or more": func(o *Options) { o.Pods, o.Gang = 1, 1 },
	} {
		o := good
		change(&o)
		var got string
		if err := o.validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMediansAreTakenOfEachNumber(t *testing.T) {
	pair := func(plain, hekla, ratio, cpu float64) Pair {
		return Pair{
			PlainLoop: Measurement{PodsPerSecond: plain},
			Hekla:     Measurement{PodsPerSecond: hekla, Process: &ProcessUse{CPUSeconds: cpu}},
			Ratio:     ratio,
		}
	}
	odd := medianOf([]Pair{pair(100, 90, 0.9, 3), pair(10, 20, 2, 1), pair(50, 40, 0.8, 2)})
	if odd.PlainLoopPodsPerSecond != 50 || odd.HeklaPodsPerSecond != 40 || odd.Ratio != 0.9 || odd.HeklaCPUSeconds != 2 {
		t.Errorf("of three: %+v", odd)
	}
	even := medianOf([]Pair{pair(100, 90, 0.9, 3), pair(50, 40, 0.8, 2)})
	if even.PlainLoopPodsPerSecond != 75 || even.HeklaCPUSeconds != 2.5 {
		t.Errorf("of two: %+v", even)
	}
}

const apiServerMetrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 7
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 5000
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="events.k8s.io",resource="events",scope="resource",subresource="",verb="PATCH",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="PATCH",version="v1"} 4
# TYPE apiserver_request_total_of_another_kind counter
apiserver_request_total_of_another_kind{verb="POST"} 1
`

func TestWritesThatAreRefusedForWhatTheyAskAreWrong(t *testing.T) {
	writes := Writes{
		bindingRequest: 5000, "POST pods/binding 409": 2, "PATCH podgroups/status 404": 1, "POST pods/eviction 429": 3, "PATCH pods/status 503": 1,
		"PATCH queues/status 422": 4, "DELETE pods 403": 1,
	}
	want := []string{"the API server refused 1 times: DELETE pods 403", "the API server refused 4 times: PATCH queues/status 422"}
	if difference := cmp.Diff(want, writes.refused()); difference != "" {
		t.Error(difference)
	}
}

func TestWritesAreReadFromTheMetricsOfTheAPIServer(t *testing.T) {
	writes, err := parseWrites(apiServerMetrics)
	if err != nil {
		t.Fatal(err)
	}
	want := Writes{bindingRequest: 5000, "POST pods/binding 409": 2, "PATCH events 200": 7}
	if difference := cmp.Diff(want, writes); difference != "" {
		t.Errorf("(-want +got):\n%s", difference)
	}
	later := Writes{bindingRequest: 5003, "POST pods/binding 409": 2, "PATCH events 200": 7, "POST leases 201": 1}
	if difference := cmp.Diff(Writes{bindingRequest: 3, "POST leases 201": 1}, later.since(writes)); difference != "" {
		t.Errorf("since the earlier reading (-want +got):\n%s", difference)
	}
}

func TestTheTextHoldsTheRunsInTheirOrder(t *testing.T) {
	report := &Report{
		Machine:    Machine{CPUs: 2, MemoryBytes: 24<<30 - 300<<20},
		Parameters: Parameters{Nodes: 20, Pods: 200, Gang: 10, PodsRun: true},
		Runs: []Pair{
			{
				PlainLoopFirst: true, Ratio: 0.5,
				PlainLoop: Measurement{PodsPerSecond: 111, APIWrites: Writes{bindingRequest: 200}},
				Hekla:     Measurement{PodsPerSecond: 222, Process: &ProcessUse{CPUSeconds: 1.25}, APIWrites: Writes{bindingRequest: 200}},
			},
			{
				PlainLoop: Measurement{PodsPerSecond: 333, APIWrites: Writes{bindingRequest: 200}},
				Hekla:     Measurement{PodsPerSecond: 444, Process: &ProcessUse{}, APIWrites: Writes{"PATCH podgroups/status 200": 21}},
			},
		},
	}
	report.Median = medianOf(report.Runs)
	var out bytes.Buffer
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	rest := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Machine 2 cores, 24 GiB", "become Running", "1 plain loop 111", "1 Hekla 222", "1.25", "1 ratio 0.50",
		"2 Hekla 444", "2 plain loop 333", "median plain loop 222", "median Hekla 333",
		"PATCH podgroups/status 200 0 21", "POST pods/binding 201 200 0", "Every pod was bound once",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q does not follow what is before it in\n%s", want, out.String())
		}
		rest = after
	}
}

func TestTheReportOfJobsIsReadable(t *testing.T) {
	r := &JobReport{Parameters: JobParameters{Jobs: 1000, Pods: 10, Runs: 2}, Violations: []string{}, Runs: []JobPair{
		{PlainLoopFirst: true, Ratio: 1.5, PlainLoop: JobMeasurement{PodsPerSecond: 200, PodsPerSecondFromStart: 199, WritesPerSecond: 220, APIWrites: Writes{"POST pods 201": 10000}},
			Hekla: JobMeasurement{PodsPerSecond: 300, WritesPerSecond: 385, ProcessCPUSeconds: 2.5, PeakMemoryBytes: 64 << 20, APIWrites: Writes{"POST pods 201": 10000, "PATCH jobs/status 200": 7}}},
		{Ratio: 2},
	}}
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"Load 1000 Jobs of 10 pods", "1 plain loop 200 199 220 0.00 0.0 0.0", "1 Hekla 300 0 385 0.00 2.50 64 0.0 0.0", "1 ratio 1.50 1.75",
		"2 Hekla 0 0 0 0.00 0.0 0.0 2 plain loop", "all writes in run 2", "Every Job has its pods"} {
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
