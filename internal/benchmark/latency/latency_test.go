package latency

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

func TestOptionsThatCannotBeMeasuredAreRefused(t *testing.T) {
	good := Options{Options: testbed.Options{Nodes: 2}, Rates: []int{30}, Duration: 2 * time.Second, Gang: 10, Queues: 1}
	for want, change := range map[string]func(*Options){
		"":                                                      func(*Options) {},
		"nodes is 0; it must be 1 or more":                      func(o *Options) { o.Nodes = 0 },
		"gang is 0; it must be 1 or more":                       func(o *Options) { o.Gang = 0 },
		"queues is 0; it must be 1 or more":                     func(o *Options) { o.Queues = 0 },
		"backlog is -1; it must be 0 or more":                   func(o *Options) { o.Backlog = -1 },
		"no rate is given":                                      func(o *Options) { o.Rates = nil },
		"rate 0: it must be 1 pod a second or more":             func(o *Options) { o.Rates = []int{30, 0} },
		"rate 30: no gang of 100 pods arrives within 2s":        func(o *Options) { o.Gang = 100 },
		"rate 40: 80 pods do not fit: 2 nodes have room for 64": func(o *Options) { o.Rates = []int{40} },
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

func TestPercentilesAreWaitsThatPodsHad(t *testing.T) {
	var waits []time.Duration
	for i := 200; i > 0; i-- {
		waits = append(waits, time.Duration(i)*time.Millisecond)
	}
	if got, want := waitsOf(waits), (Waits{P50: 100, P90: 180, P99: 198, Most: 200}); got != want {
		t.Errorf("of 1 to 200 ms: got %+v, want %+v", got, want)
	}
	if got, want := waitsOf(waits[199:]), (Waits{1, 1, 1, 1}); got != want {
		t.Errorf("of one: got %+v, want %+v", got, want)
	}
	if got := waitsOf(nil); got != (Waits{}) {
		t.Errorf("of none: got %+v", got)
	}
}

func TestMoreStatusesThanTheBudgetAreAViolation(t *testing.T) {
	l := &testbed.Load{Name: "rate-50", Gangs: 10, Members: 4}
	for name, test := range map[string]struct {
		groups, pods int
		want         []string
	}{
		"as many as there may be": {groups: 3*10 + 20*3, pods: 40 + 20*3},
		"one of a group too many": {groups: 91, want: []string{"rate-50: 91 writes of podgroups/status, and the budget is 90"}},
		"one of a pod too many":   {pods: 101, want: []string{"rate-50: 101 writes of pods/status, and the budget is 100"}},
	} {
		writes := testbed.Writes{"PATCH podgroups/status 200": test.groups, "PATCH pods/status 200": test.pods, "POST pods 201": 1000}
		if diff := cmp.Diff(test.want, overBudget(writes, l, 20, 20)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheTextHasALineForEachRate(t *testing.T) {
	r := &Report{Parameters: Parameters{Nodes: 7, Gang: 3, Queues: 2, Backlog: 9, DurationSeconds: 20}, Rates: []Measurement{
		{PodsPerSecond: 50, CreatedPerSecond: 49, WaitMillis: Waits{1.5, 2.5, 3.5, 4.5}, ProcessCPUMillisPerPod: 0.25, BusyPercent: 61.4, APIWrites: testbed.Writes{"POST pods 201": 5}},
		{PodsPerSecond: 100, APIWrites: testbed.Writes{"POST events 201": 6}},
	}}
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"gangs of 3, each rate for 20 s, on 7 nodes; queues: 2; pods that fit no node: 9", "50 49 1.5 2.5 3.5 4.5 0.25 0", "0.00 0.00 61 %", "100 0 0.0",
		"all writes at pods/s 50 100", "POST pods 201 5 0", "POST events 201 0 6", "Every pod was bound once"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
