package scenarios

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/test/script"
)

var rewrite = flag.Bool("rewrite", false, "write into the scripts what is decided now")

// scripted makes a scenario of a script.
func scripted(s *script.Script) (*scenario, error) {
	manifests, err := s.Manifests()
	if err != nil {
		return nil, err
	}
	made := &scenario{Source: s.Source, Rules: strings.Split(s.Rules, ", "), manifests: manifests, Fates: map[string]fate{},
		Args: append([]string{"--now=" + script.Start.Format("2006-01-02T15:04:05Z")}, s.Args...)}
	for pod, f := range s.Fates {
		made.Fates[pod] = fate{Refused: f.Refused, Late: f.Late, Overdue: f.Overdue}
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if i > 0 && len(step.Objects)+len(step.Deletes) > 0 {
			c := change{Before: made.Cycles + 1, Delete: step.Deletes}
			for _, o := range step.Objects {
				read, err := asRead(o)
				if err != nil {
					return nil, err
				}
				c.objects = append(c.objects, read...)
			}
			made.Changes = append(made.Changes, c)
		}
		if !step.Rest {
			made.Cycles += step.Cycles
		}
	}
	return made, nil
}

// asRead is an object as it is read from a manifest.
func asRead(o script.Object) ([]runtime.Object, error) {
	text, err := yaml.Marshal(o)
	if err != nil {
		return nil, err
	}
	return manifests.ReadObjects(strings.NewReader(string(text)))
}

// transcript is what a script decides, under each of its steps.
func transcript(s *script.Script, made *scenario) ([][]string, *simulator.Report, error) {
	last := len(s.Steps) - 1
	rests := s.Steps[last].Rest
	report, err := made.run(made.manifests, func(o *simulator.Options) {
		if rests {
			o.UntilStable, o.Cycles, o.MinCycles, o.MaxCycles = true, 0, made.lastChange(), maxCycles
		}
	})
	if report == nil || err != nil {
		return nil, nil, err
	}
	decided := make([][]string, len(s.Steps))
	until := 0
	for i := range s.Steps {
		from := until
		until += s.Steps[i].Cycles
		if s.Steps[i].Rest {
			until = report.Cycles
		}
		decided[i] = decisions(report, from, until)
	}
	decided[last] = append(decided[last], ending(report)...)
	return decided, report, nil
}

// decisions are those of the cycles after one and until another.
func decisions(report *simulator.Report, from, until int) []string {
	var lines []string
	for cycle := from + 1; cycle <= until; cycle++ {
		for _, e := range report.Evictions {
			if e.Cycle == cycle {
				line := fmt.Sprintf("%d evict %s from %s", cycle, e.Pod, e.Node)
				if e.For != "" {
					line += " for " + e.For
				}
				lines = append(lines, fmt.Sprintf("%s by %s (%s)", line, e.Action, cmp.Or(e.Rule, "no rule")))
			}
		}
		for _, n := range report.Nominations {
			if n.Cycle == cycle {
				lines = append(lines, fmt.Sprintf("%d nominate %s to %s", cycle, n.Pod, n.Node))
			}
		}
		for _, b := range report.Binds {
			if b.Cycle == cycle {
				lines = append(lines, fmt.Sprintf("%d bind %s to %s", cycle, b.Pod, b.Node))
			}
		}
	}
	return lines
}

// ending is where the jobs stand.
func ending(report *simulator.Report) []string {
	rest := "not at rest"
	if report.Stable {
		rest = "at rest"
	}
	lines := []string{fmt.Sprintf("after %d cycles, %s", report.Cycles, rest)}
	for _, j := range report.Jobs {
		line := fmt.Sprintf("%s %s %d/%d", j.Job, j.Phase, j.Ready, j.MinAvailable)
		if j.Reason != "" {
			line += " " + j.Reason + ": " + j.Message
		}
		lines = append(lines, line)
	}
	return lines
}

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := script.Parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			made, err := scripted(s)
			if err != nil {
				t.Fatal(err)
			}
			decided, report, err := transcript(s, made)
			if err != nil {
				t.Fatal(err)
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(s.Rewrite(decided)), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for i := range s.Steps {
				if diff := gocmp.Diff(s.Steps[i].Decided, slices.Clip(decided[i])); diff != "" {
					t.Errorf("under command %d it decides otherwise (-written +now):\n%s", i+1, diff)
				}
			}
			if s.Steps[len(s.Steps)-1].Rest {
				made.Cycles, made.UntilStable = 0, true
			}
			for _, difference := range slices.Concat(made.checkOrder(report), made.checkQuestions(report), made.checkRest()) {
				t.Error(difference)
			}
		})
	}
}
