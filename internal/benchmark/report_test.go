package benchmark

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

func TestOptionsThatCannotBeMeasuredAreRefused(t *testing.T) {
	good := Options{Options: testbed.Options{Nodes: 2}, Shapes: []Shape{{4, 10}}, Runs: 1, Queues: 1}
	for want, change := range map[string]func(*Options){
		"":                                    func(*Options) {},
		"runs is 0; it must be 1 or more":     func(o *Options) { o.Runs = 0 },
		"nodes is -1; it must be 1 or more":   func(o *Options) { o.Nodes = -1 },
		"queues is 0; it must be 1 or more":   func(o *Options) { o.Queues = 0 },
		"backlog is -1; it must be 0 or more": func(o *Options) { o.Backlog = -1 },
		"no shape is given":                   func(o *Options) { o.Shapes = nil },
		"shape 7x10: 70 pods do not fit: 2 nodes have room for 64":                    func(o *Options) { o.Shapes = append(o.Shapes, Shape{7, 10}) },
		"shape 1x1: the time from the first binding to the last needs 2 pods or more": func(o *Options) { o.Shapes = []Shape{{1, 1}} },
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

func TestShapesAreGangsTimesMembers(t *testing.T) {
	got, err := ParseShapes([]string{"50x100", "1x5000"})
	if err != nil || len(got) != 2 || got[0] != (Shape{50, 100}) || got[1] != (Shape{1, 5000}) {
		t.Errorf("got %v and %v", got, err)
	}
	for _, text := range []string{"", "50", "x5", "5x", "0x5", "5x-1", "5x5x5", "axb"} {
		if got, err := ParseShapes([]string{text}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("of %q: got %v and %v, want an error that names it", text, got, err)
		}
	}
}

func TestMediansAreTakenOfEachNumber(t *testing.T) {
	pair := func(loop, hekla, ratio, cpu float64) Pair {
		return Pair{
			Loop:  Measurement{PodsPerSecond: loop},
			Hekla: Measurement{PodsPerSecond: hekla, Process: &ProcessUse{CPUSeconds: cpu}},
			Ratio: ratio,
		}
	}
	odd := medianOf([]Pair{pair(100, 90, 0.9, 3), pair(10, 20, 2, 1), pair(50, 40, 0.8, 2)})
	if odd.LoopPodsPerSecond != 50 || odd.HeklaPodsPerSecond != 40 || odd.Ratio != 0.9 || odd.HeklaCPUSeconds != 2 {
		t.Errorf("of three: %+v", odd)
	}
	even := medianOf([]Pair{pair(100, 90, 0.9, 3), pair(50, 40, 0.8, 2)})
	if even.LoopPodsPerSecond != 75 || even.HeklaCPUSeconds != 2.5 {
		t.Errorf("of two: %+v", even)
	}
}

func TestRatesAreTakenFromTheFirstBindingToTheLast(t *testing.T) {
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(second int) time.Time { return epoch.Add(time.Duration(second) * time.Second) }
	w := &window{begin: testbed.Reading{At: at(-1)}}
	// Bound at seconds 1, 2 and 5, running at 3, 6 and 7; the clock started one second before 0.
	m := w.measurement(&testbed.Seen{Bound: 3, First: at(1), Last: at(5), Running: 3, LastRun: at(7), RunsAtLast: 1})
	for name, number := range map[string]struct{ got, want float64 }{
		"PodsBound":              {float64(m.PodsBound), 3},
		"PodsPerSecond":          {m.PodsPerSecond, 2.0 / 4},
		"PodsPerSecondFromStart": {m.PodsPerSecondFromStart, 3.0 / 6},
		"PodsRunningPerSecond":   {m.PodsRunningPerSecond, 3.0 / 8},
		"PodsRunningAtLast":      {float64(m.PodsRunningAtLast), 1},
		"StartToFirstSeconds":    {m.StartToFirstSeconds, 2},
		"StartToLastSeconds":     {m.StartToLastSeconds, 6},
		"FirstToLastSeconds":     {m.FirstToLastSeconds, 4},
	} {
		if number.got != number.want {
			t.Errorf("%s is %v, want %v", name, number.got, number.want)
		}
	}
	if m := w.measurement(&testbed.Seen{}); m.PodsPerSecond != 0 || m.PodsPerSecondFromStart != 0 || m.PodsBound != 0 {
		t.Errorf("without bindings: got %+v, want zeros", m)
	}
}

func TestTheTextHoldsTheRunsInTheirOrder(t *testing.T) {
	binds := testbed.Writes{testbed.BindingRequest: 200}
	report := &Report{
		About:          testbed.About{Machine: testbed.Machine{CPUs: 2, MemoryBytes: 24<<30 - 300<<20}},
		Parameters:     Parameters{Nodes: 20, Queues: 3, Backlog: 7, PodsRun: true},
		RequestsAtOnce: 8, Trials: []Trial{{1, 90}, {8, 800}}, SchedulersWay: Trial{64, 900},
		Shapes: []ShapeReport{{Shape: Shape{20, 10}, Runs: []Pair{
			{
				LoopFirst: true, Ratio: 0.5,
				Loop:  Measurement{PodsPerSecond: 111, PodsBound: 200, Process: &ProcessUse{CPUSeconds: 0.5}, Cost: testbed.Cost{APIWrites: binds}},
				Hekla: Measurement{PodsPerSecond: 222, PodsBound: 200, Process: &ProcessUse{CPUSeconds: 1.25, CPUSecondsAfterIdle: 1.5, PeakMemoryBytesAfterIdle: 4 << 20}, Cost: testbed.Cost{APIWrites: binds}},
			},
			{
				Loop:  Measurement{PodsPerSecond: 333, Cost: testbed.Cost{APIWrites: binds}},
				Hekla: Measurement{PodsPerSecond: 444, Process: &ProcessUse{}, Cost: testbed.Cost{APIWrites: testbed.Writes{"PATCH podgroups/status 200": 21}}},
			},
		}}},
	}
	report.Shapes[0].Median = medianOf(report.Shapes[0].Runs)
	var out bytes.Buffer
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	rest := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Machine 2 cores, 24 GiB", "queues: 3", "fit no node: 7", "become Running", "8 requests at once (1: 90/s, 8: 800/s); over connections like hekla-scheduler's, 64: 900/s",
		"20x10 1 loop 111", "20x10 1 Hekla 222", "1.25 1.50 6.25 4", "20x10 1 ratio 0.50",
		"20x10 2 Hekla 444", "20x10 2 loop 333", "20x10 222 333",
		"20x10 loop Hekla", "PATCH podgroups/status 200 0 21", "POST pods/binding 201 200 0", "Every pod was bound once",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q does not follow what is before it in\n%s", want, out.String())
		}
		rest = after
	}
}
