package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/benchmark"
	"hekla.sh/hekla/internal/benchmark/testbed"
)

func TestAReportWithViolationsFailsTheBenchmark(t *testing.T) {
	for _, output := range []string{"json", "text"} {
		var out bytes.Buffer
		report := &benchmark.Report{Findings: testbed.Findings{Violations: []string{"hekla-1: the gang g is not whole"}}}
		err := writeReport(&out, report, output)
		if err == nil || exitCode(err) != 1 {
			t.Errorf("%s: got error %v, want one with exit code 1", output, err)
		}
		if !strings.Contains(out.String(), report.Violations[0]) {
			t.Errorf("%s: the report does not say what went wrong:\n%s", output, out.String())
		}
	}
}

func TestAReportWithoutViolationsIsReadBackFromItsJSON(t *testing.T) {
	var out bytes.Buffer
	want := &benchmark.Report{Shapes: []benchmark.ShapeReport{{Median: benchmark.Median{Ratio: 0.97}}}, Findings: testbed.NoFindings()}
	if err := writeReport(&out, want, "json"); err != nil {
		t.Fatal(err)
	}
	var got benchmark.Report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Shapes) != 1 || got.Shapes[0].Median.Ratio != 0.97 {
		t.Errorf("the shapes are %+v, want one with the ratio 0.97", got.Shapes)
	}
}

func TestBenchRefusesAShapeThatIsNone(t *testing.T) {
	command := newBenchCommand()
	command.SetArgs([]string{"--shapes=50x100,7"})
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.Execute(); err == nil || !strings.Contains(err.Error(), `--shapes: shape "7"`) {
		t.Errorf("got %v, want an error that names the flag and the shape", err)
	}
}

func TestBenchRefusesAnOutputThatIsNotThere(t *testing.T) {
	command := newBenchCommand()
	command.SetArgs([]string{"--output=xml"})
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.Execute(); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("got %v, want an error that names the output", err)
	}
}
