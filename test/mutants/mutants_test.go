package mutants

import (
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hekla.sh/hekla/test/compiled"
)

const (
	// mutantsEnv is the variable of the environment that says which mutants are looked for.
	mutantsEnv = "HEKLA_MUTANTS"
	// number is how many mutants there are.
	number = 40
)

func TestEachMutantIsOneChangeThatCompiles(t *testing.T) {
	mutants, known, names := readMutants(t), machines(), map[string]bool{}
	if len(mutants) != number {
		t.Errorf("there are %d mutants, want %d", len(mutants), number)
	}
	for _, m := range mutants {
		if m.Name == "" || m.Defect == "" || names[m.Name] {
			t.Errorf("a mutant has the name %q, which is none or that of another, or its defect %q is not said", m.Name, m.Defect)
		}
		if names[m.Name] = true; len(m.Machines) == 0 {
			t.Errorf("no machine is to find %s", m.Name)
		}
		for _, name := range m.Machines {
			if known[name] == nil {
				t.Errorf("%s: there is no machine %q", m.Name, name)
			}
		}
	}
	for _, problem := range compiles(t, weaveAll(t, mutants)) {
		t.Error(problem)
	}
}

// compiles checks the types of the packages of some files, with these in place of the sources, and returns what is
// wrong.
func compiles(t *testing.T, woven map[string][]byte) (problems []error) {
	t.Helper()
	folders := map[string]bool{}
	for file := range woven {
		folders[filepath.Dir(file)] = true
	}
	var patterns []string
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		patterns = append(patterns, "./"+folder)
	}
	set := token.NewFileSet()
	from := compiled.Importer(t, set, root, patterns...)
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		of, err := build.ImportDir(filepath.Join(root, folder), 0)
		if err != nil {
			t.Fatal(err)
		}
		var files []*ast.File
		for _, name := range append(of.GoFiles, "chosenmutant.go") {
			var source any // nil reads the file
			if text, is := woven[filepath.Join(folder, name)]; is {
				source = text
			}
			parsed, err := parser.ParseFile(set, filepath.Join(root, folder, name), source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, parsed)
		}
		config := types.Config{Importer: from, Error: func(err error) { problems = append(problems, err) }}
		_, _ = config.Check(folder, set, files, nil) // Error gets them all
	}
	return problems
}

func TestAMutantStandsNextToWhatItReplaces(t *testing.T) {
	const source = "package p\n\nfunc f(a, b int) int {\n\tif a < b && b > 0 {\n\t\ta++\n\t}\n\tg(a)\n\treturn a\n}\n"
	for _, c := range []struct {
		what, from, to, want string
	}{
		{"a condition", "a < b", "a <= b", `if (chosenMutant == "m" && (a <= b) || chosenMutant != "m" && (a < b)) && b > 0 {`},
		{"a statement that goes", "g(a)", "", "\tif chosenMutant != \"m\" {\ng(a)\n}\n\treturn a"},
		{"a statement that is another", "return a", "return b", "if chosenMutant == \"m\" {\nreturn b\n} else {\nreturn a\n}\n}"},
		{"a part of a statement", "b > 0 {", "{", "neither an expression nor a statement"},
		{"what stands twice", "a", "b", "stands 7 times"},
		{"what is not there", "h(a)", "", "stands 0 times"},
	} {
		t.Run(c.what, func(t *testing.T) {
			woven, err := weave([]byte(source), []mutant{{Name: "m", File: "p.go", From: c.from, To: c.to}})
			if got := string(woven) + fmt.Sprint(err); !strings.Contains(got, c.want) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAMutantOfAWrongTypeIsSeen(t *testing.T) {
	const file = "internal/version/version.go"
	source, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	woven := map[string][]byte{file: append(source, "\nfunc wrong() bool { return 1 }\n"...), filepath.Dir(file) + "/chosenmutant.go": []byte(chooser("version"))}
	if problems := compiles(t, woven); len(problems) == 0 {
		t.Error("a function that returns what it must not is not seen")
	}
}

// TestEachMutantIsFound takes some minutes for each mutant, so that it only runs if HEKLA_MUTANTS names some of them,
// or says "all".
func TestEachMutantIsFound(t *testing.T) {
	wanted := os.Getenv(mutantsEnv)
	if wanted == "" {
		t.Skip(mutantsEnv + " names no mutants")
	}
	all := readMutants(t)
	folder := t.TempDir()
	s := &survey{binaries: map[string]string{}, controls: map[control]func() (bool, error){}, machines: machines()}
	list := overlay(t, folder, weaveAll(t, all))
	var chosen []mutant
	for _, m := range all {
		if wanted == "all" || slices.Contains(strings.Split(wanted, ","), m.Name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		t.Fatalf("%s is %q, which names no mutant", mutantsEnv, wanted)
	}
	for _, m := range chosen {
		for _, name := range m.Machines {
			if of := s.machines[name]; s.binaries[of.folder] == "" {
				begin := time.Now()
				s.binaries[of.folder] = of.compile(t, folder, list)
				t.Logf("compiled %s in %s", of.folder, time.Since(begin).Round(time.Second))
			}
		}
	}
	queue := make(chan mutant)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for m := range queue {
				f, err := s.find(t.Context(), &m)
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
					continue
				}
				if f.By == "" {
					t.Errorf("%s: not found in %s", m.Name, strings.Join(f.Tried, ", "))
				} else {
					t.Logf("%s: found by %s after %d %s, %d s: %s", m.Name, f.By, f.After, f.Unit, f.Seconds, f.Says)
				}
				s.mutex.Lock()
				findings := readFindings(t)
				findings[m.Name] = f
				writeFindings(t, all, findings) // after each, so that none is lost
				s.mutex.Unlock()
			}
		})
	}
	for _, m := range chosen {
		queue <- m
	}
	close(queue)
	workers.Wait()
}

// survey looks for mutants with all machines.
type survey struct {
	machines map[string]*machine
	binaries map[string]string // by the folder of their tests

	mutex    sync.Mutex
	controls map[control]func() (passes bool, err error)
}

// control is a round without a mutant.
type control struct {
	machine string
	round   int
}

// find lets the machines of a mutant look for it.
func (s *survey) find(ctx context.Context, m *mutant) (finding, error) {
	f := finding{Of: m.digest()}
	var took time.Duration
	for _, name := range m.Machines {
		of, done := s.machines[name], 0
		for round := 0; done < of.most; round++ {
			o, err := of.play(ctx, s.binaries[of.folder], round, m.Name)
			if err != nil {
				return f, err
			}
			took += o.took
			done += o.count
			if !o.hasFailed {
				continue
			}
			passes, err := s.passes(ctx, of, round)
			if err != nil {
				return f, err
			}
			again := outcome{}
			if passes {
				if again, err = of.play(ctx, s.binaries[of.folder], round, m.Name); err != nil {
					return f, err
				}
				took += again.took
			}
			if again.hasFailed {
				f.By, f.After, f.Unit, f.Seconds, f.Says = name, done, of.unit, int(took.Round(time.Second).Seconds()), o.says
				return f, nil
			}
			done += 1 + of.most/1000 // a round that fails by itself comes to an end, too
		}
		f.Tried = append(f.Tried, fmt.Sprintf("%d %s of %s", done, of.unit, name))
	}
	f.Seconds = int(took.Round(time.Second).Seconds())
	return f, nil
}

// passes reports whether a round finds nothing without a mutant.
func (s *survey) passes(ctx context.Context, of *machine, round int) (bool, error) {
	s.mutex.Lock()
	key := control{of.name, round}
	if s.controls[key] == nil {
		s.controls[key] = sync.OnceValues(func() (bool, error) {
			o, err := of.play(ctx, s.binaries[of.folder], round, "")
			return !o.hasFailed, err
		})
	}
	once := s.controls[key]
	s.mutex.Unlock()
	return once()
}
