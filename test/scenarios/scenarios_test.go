package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

// scenario is an expect.yaml.
type scenario struct {
	Source      string          `yaml:"source"`
	Rules       []string        `yaml:"rules"`
	Note        string          `yaml:"note"`
	Cycles      int             `yaml:"cycles"`
	UntilStable bool            `yaml:"untilStable"`
	Args        []string        `yaml:"args"`
	Fates       map[string]fate `yaml:"fates"`
	Changes     []change        `yaml:"changes"`
	Expect      expectation     `yaml:"expect"`

	folder    string
	manifests string
}

// change is what happens in the world outside before a cycle: objects come or are as a file of the folder says, others
// go.
type change struct {
	Before int      `yaml:"before"`
	File   string   `yaml:"file"`
	Delete []string `yaml:"delete"` // "Pod work/a"

	objects []runtime.Object // that come besides
}

// apply makes it happen.
func (c *change) apply(folder string, l *simulator.Led) error {
	if c.File != "" {
		file, err := os.Open(filepath.Join(folder, c.File))
		if err != nil {
			return err
		}
		defer file.Close()
		objects, err := manifests.ReadObjects(file)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := l.Set(o); err != nil {
				return err
			}
		}
	}
	for _, o := range c.objects {
		if err := l.Set(o); err != nil {
			return err
		}
	}
	for _, name := range c.Delete {
		i := slices.IndexFunc(l.Objects(), func(o runtime.Object) bool { return simulator.NameOf(o) == name })
		if i < 0 {
			return fmt.Errorf("there is no %s to be deleted", name)
		}
		l.Delete(l.Objects()[i])
	}
	return nil
}

// fate is what becomes of the evictions of a pod.
type fate struct {
	Refused string `yaml:"refused"`
	Late    bool   `yaml:"late"`
	Overdue string `yaml:"overdue"` // a duration, or "never"
}

func (f fate) read() (simulator.Fate, error) {
	read := simulator.Fate{Refused: f.Refused, Late: f.Late}
	switch f.Overdue {
	case "":
	case "never":
		read.Overdue = simulator.Never
	default:
		var err error
		if read.Overdue, err = time.ParseDuration(f.Overdue); err != nil {
			return read, err
		}
	}
	return read, nil
}

func parseScenario(text []byte) (*scenario, error) {
	s := &scenario{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(s); err != nil {
		return nil, err
	}
	if s.UntilStable == (s.Cycles > 0) {
		return nil, errors.New("either cycles or untilStable must be given")
	}
	if s.Source == "" || len(s.Rules) == 0 {
		return nil, errors.New("source and rules must be given")
	}
	if s.Expect.isEmpty() {
		return nil, errors.New("expect says nothing, so it could not fail")
	}
	return s, nil
}

func readScenario(folder string) (*scenario, error) {
	text, err := os.ReadFile(filepath.Join(folder, "expect.yaml"))
	if err != nil {
		return nil, err
	}
	s, err := parseScenario(text)
	if err != nil {
		return nil, fmt.Errorf("expect.yaml: %w", err)
	}
	manifests, err := os.ReadFile(filepath.Join(folder, "cluster.yaml"))
	s.folder = folder
	s.manifests = string(manifests)
	return s, err
}

// options are what the flags of hekla simulate would make of it.
func (s *scenario) options() (simulator.Options, error) {
	options := simulator.Options{SchedulerNames: []string{"volcano"}, Cycles: s.Cycles, UntilStable: s.UntilStable, MinCycles: s.lastChange()}
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
	fates := map[string]simulator.Fate{}
	for pod, f := range s.Fates {
		read, err := f.read()
		if err != nil {
			return options, fmt.Errorf("fates: %s: %w", pod, err)
		}
		fates[pod] = read
	}
	options.Before = func(cycle int, l *simulator.Led) error {
		for i := range s.Changes {
			if c := &s.Changes[i]; c.Before == cycle {
				if err := c.apply(s.folder, l); err != nil {
					return fmt.Errorf("changes[%d]: %w", i, err)
				}
			}
		}
		return nil
	}
	options.Fate = func(e decision.Eviction) simulator.Fate { return fates[e.Pod.String()] }
	return options, nil
}

// lastChange is the cycle before which something happens in the world outside for the last time, zero if nothing does.
func (s *scenario) lastChange() int {
	last := 0
	for i := range s.Changes {
		last = max(last, s.Changes[i].Before)
	}
	return last
}

// isRestless reports whether what surrounds the scheduler keeps it from coming to rest: a pod never goes, or what is
// refused is tried again and again.
func (s *scenario) isRestless() bool {
	for _, f := range s.Fates {
		if f.Overdue == "never" || f.Refused != "" {
			return true
		}
	}
	return false
}

// run simulates manifests. The report is returned also where there is no rest.
func (s *scenario) run(text string, change func(*simulator.Options)) (*simulator.Report, error) {
	options, err := s.options()
	if err != nil {
		return nil, err
	}
	change(&options)
	input, err := manifests.Read([]string{"-"}, strings.NewReader(text))
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

func asWritten(*simulator.Options) {}

// differences runs a scenario and returns what differs from what is expected, and what was decided, for a person.
func (s *scenario) differences() (differences []string, decided string) {
	report, err := s.run(s.manifests, asWritten)
	if report == nil {
		return []string{err.Error()}, ""
	}
	if err != nil {
		differences = append(differences, err.Error())
	}
	differences = append(differences, s.Expect.compare(report)...)
	differences = append(differences, s.checkOrder(report)...)
	differences = append(differences, s.checkQuestions(report)...)
	differences = append(differences, s.checkRest()...)
	return differences, told(report)
}

func TestScenarios(t *testing.T) {
	folders, err := filepath.Glob("*/cluster.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are %d scenarios, %v", len(folders), err)
	}
	known, err := readKnownDifferences("known-differences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		reason, isKnown := known[folder]
		delete(known, folder)
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			s, err := readScenario(folder)
			if errors.Is(err, os.ErrNotExist) && *draft {
				err = writeDraft(folder)
			}
			if err != nil {
				t.Fatal(err)
			}
			differences, decided := s.differences()
			switch {
			case isKnown && len(differences) == 0:
				t.Error("it is met, and must not be in known-differences.yaml any more")
			case isKnown:
				t.Skipf("a known difference: %s\n%s", reason, strings.Join(differences, "\n"))
			case len(differences) > 0:
				t.Errorf("\n  %s\n\ndecided:\n%s", strings.Join(differences, "\n  "), decided)
			}
		})
	}
	for folder := range known {
		t.Errorf("known-differences.yaml names %s, and there is no such scenario", folder)
	}
}

func TestEachFolderSaysInTheReadmeWhyItIsOne(t *testing.T) {
	folders, err := filepath.Glob("*/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		if row := fmt.Sprintf("\n| [%s](%[1]s) | ", folder); strings.Count(string(readme), row) != 1 {
			t.Errorf("README.md has not one row that begins with %q", row)
		}
	}
	if rows := strings.Count(string(readme), "\n| ["); rows != len(folders) {
		t.Errorf("README.md has %d rows, and there are %d folders", rows, len(folders))
	}
}

// readKnownDifferences reads why which scenarios are not met.
func readKnownDifferences(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	if err := yaml.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for folder, reason := range known {
		if reason == "" {
			return nil, fmt.Errorf("%s: %s has no reason", file, folder)
		}
	}
	return known, nil
}
