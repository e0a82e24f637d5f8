package restart

import (
	"strings"
	"testing"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

func TestOptionsThatCannotBeMeasuredAreRefused(t *testing.T) {
	good := Options{Options: testbed.Options{Nodes: 2}, Pods: 40, Gang: 10, Runs: 1}
	for want, change := range map[string]func(*Options){
		"":                                 func(*Options) {},
		"nodes is 0; it must be 1 or more": func(o *Options) { o.Nodes = 0 },
		"pods is 0; it must be 1 or more":  func(o *Options) { o.Pods = 0 },
		"gang is -1; it must be 1 or more": func(o *Options) { o.Gang = -1 },
		"runs is 0; it must be 1 or more":  func(o *Options) { o.Runs = 0 },
		"40 pods are no gangs of 7":        func(o *Options) { o.Gang = 7 },
		"60 pods and a gang of 10 do not fit: 2 nodes have room for 64": func(o *Options) { o.Pods = 60 },
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

func TestTheTextHasALineForEachStart(t *testing.T) {
	r := &Report{Parameters: Parameters{Nodes: 7, Pods: 40, Gang: 10, Runs: 2}, Fill: &Measurement{Pods: 40, FirstSeconds: 1.5},
		Runs:     []Measurement{{Pods: 10, ListsSeconds: 0.25, FirstSeconds: 1, LastSeconds: 2, CPUSeconds: 3, MemoryBytes: 2 << 20, PeakMemoryBytes: 4 << 20}, {Pods: 10}},
		Findings: testbed.Findings{Violations: []string{"a pod was bound twice"}}}
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"40 pods in gangs of 10 on 7 nodes", "fill 40 0.00 1.50", "restart 1 10 0.25 1.00 2.00 3.00 2 4", "restart 2 10 0.00", "WRONG: a pod was bound twice"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
