package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/simulator"
)

// scenario is an expect.yaml.
type scenario struct {
	Source      string      `yaml:"source"`
	Laws        []string    `yaml:"laws"`
	Note        string      `yaml:"note"`
	Cycles      int         `yaml:"cycles"`
	UntilStable bool        `yaml:"untilStable"`
	Args        []string    `yaml:"args"`
	Expect      expectation `yaml:"expect"`
}

func readScenario(folder string) (*scenario, error) {
	text, err := os.ReadFile(filepath.Join(folder, "expect.yaml"))
	if err != nil {
		return nil, err
	}
	s := &scenario{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(s); err != nil {
		return nil, err
	}
	if s.UntilStable == (s.Cycles > 0) {
		return nil, errors.New("either cycles or untilStable must be given")
	}
	return s, nil
}

// options are what the flags of hekla simulate would make of it.
func (s *scenario) options() (simulator.Options, error) {
	options := simulator.Options{SchedulerNames: []string{"volcano"}, Cycles: s.Cycles, UntilStable: s.UntilStable}
	flags := pflag.NewFlagSet("args", pflag.ContinueOnError)
	flags.BoolVar(&options.Grace, "grace", false, "")
	flags.IntVar(&options.MaxCycles, "max-cycles", 1000, "")
	now := flags.String("now", "", "")
	if err := flags.Parse(s.Args); err != nil {
		return options, err
	}
	if *now != "" {
		var err error
		if options.Now, err = time.Parse(time.RFC3339, *now); err != nil {
			return options, err
		}
	}
	return options, nil
}

// run simulates manifests.
func (s *scenario) run(manifests string) (*simulator.Report, error) {
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	input, err := simulator.Read([]string{"-"}, strings.NewReader(manifests))
	if err != nil {
		return nil, err
	}
	registry := scheduler.NewRegistry()
	configuration := conf.Default(registry.Catalogue())
	if input.Configuration != "" {
		if configuration, err = conf.Parse([]byte(input.Configuration), registry.Catalogue()); err != nil {
			return nil, err
		}
	}
	policy, err := registry.Build(configuration)
	if err != nil {
		return nil, err
	}
	return simulator.Run(input, policy, options)
}

func TestScenarios(t *testing.T) {
	folders, err := filepath.Glob("*/expect.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are %d scenarios, %v", len(folders), err)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			s, err := readScenario(folder)
			if err != nil {
				t.Fatalf("expect.yaml: %v", err)
			}
			manifests, err := os.ReadFile(filepath.Join(folder, "cluster.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			report, err := s.run(string(manifests))
			if err != nil {
				t.Fatal(err)
			}
			for _, difference := range s.Expect.compare(report) {
				t.Error(difference)
			}
			if s.Expect.Shuffle {
				s.checkShuffle(t, string(manifests), report)
			}
			if t.Failed() {
				t.Logf("decided:\n%s", printed(report))
			}
		})
	}
}

var separator = regexp.MustCompile(`(?m)^---[ \t]*\n`)

// checkShuffle gives the documents in other orders: backwards, and every third first.
func (s *scenario) checkShuffle(t *testing.T, manifests string, report *simulator.Report) {
	documents := slices.DeleteFunc(separator.Split(manifests, -1), func(d string) bool { return strings.TrimSpace(d) == "" })
	for i := range documents {
		documents[i] = strings.TrimRight(documents[i], "\n") + "\n"
	}
	backwards := slices.Clone(documents)
	slices.Reverse(backwards)
	var thirds []string
	for first := range 3 {
		for i := first; i < len(documents); i += 3 {
			thirds = append(thirds, documents[i])
		}
	}
	for _, order := range [][]string{backwards, thirds} {
		again, err := s.run(strings.Join(order, "---\n"))
		if err != nil {
			t.Fatalf("in another order: %v", err)
		}
		if got, want := printed(again), printed(report); got != want {
			t.Errorf("in another order it is decided:\n%s", got)
		}
	}
}

func printed(report *simulator.Report) string {
	var b bytes.Buffer
	if err := report.WriteJSON(&b); err != nil {
		return fmt.Sprint(err)
	}
	return b.String()
}
