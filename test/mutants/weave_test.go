package mutants

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// root is the folder of the module, from this one.
const root = "../.."

// chosenEnv is the variable of the environment that names the mutant of a process.
const chosenEnv = "HEKLA_MUTANT"

// mutant is one defect that can be put into the sources.
type mutant struct {
	Name   string `json:"name"`
	Defect string `json:"defect"` // a sentence without its full stop
	File   string `json:"file"`
	// From is the text of one expression or statement of the file, and To what stands in its place, "" if nothing does.
	From string `json:"from"`
	To   string `json:"to"`
	// Machines are the names of those that are to find it, in the order in which they are tried.
	Machines []string `json:"machines"`
}

// digest tells a mutant from one that changes something else.
func (m *mutant) digest() string {
	sum := sha256.Sum256([]byte(m.File + "\n" + m.From + "\n" + m.To))
	return hex.EncodeToString(sum[:4])
}

func readMutants(t *testing.T) []mutant {
	t.Helper()
	text, err := os.ReadFile("mutants.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// weave returns a source with all of some mutants next to what they replace. Which of them counts, the variable
// declared by chooser says.
func weave(source []byte, mutants []mutant) ([]byte, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, "", source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	for i := range mutants {
		m := &mutants[i]
		if count := strings.Count(string(source), m.From); count != 1 {
			return nil, fmt.Errorf("%s: its text stands %d times in %s", m.Name, count, m.File)
		}
		e := edit{from: strings.Index(string(source), m.From)}
		e.to = e.from + len(m.From)
		switch nodeAt(set, parsed, e.from, e.to).(type) {
		case ast.Expr:
			e.text = fmt.Sprintf("(chosenMutant == %q && (%s) || chosenMutant != %q && (%s))", m.Name, m.To, m.Name, m.From)
		case ast.Stmt:
			if m.To == "" {
				e.text = fmt.Sprintf("if chosenMutant != %q {\n%s\n}", m.Name, m.From)
			} else {
				e.text = fmt.Sprintf("if chosenMutant == %q {\n%s\n} else {\n%s\n}", m.Name, m.To, m.From)
			}
		default:
			return nil, fmt.Errorf("%s: its text is neither an expression nor a statement of %s", m.Name, m.File)
		}
		edits = append(edits, e)
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var woven strings.Builder
	end := 0
	for i, e := range edits {
		if e.from < end {
			return nil, fmt.Errorf("%s: it overlaps with another mutant", mutants[i].File)
		}
		woven.Write(source[end:e.from])
		woven.WriteString(e.text)
		end = e.to
	}
	woven.Write(source[end:])
	return []byte(woven.String()), nil
}

// nodeAt returns the outermost expression or statement that is all of a range of a file, nil if there is none.
func nodeAt(set *token.FileSet, file *ast.File, from, to int) (found ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || found != nil || set.Position(n.Pos()).Offset > from || set.Position(n.End()).Offset < to {
			return false
		}
		if _, isFile := n.(*ast.File); !isFile && set.Position(n.Pos()).Offset == from && set.Position(n.End()).Offset == to {
			found = n
		}
		return found == nil
	})
	return found
}

// chooser declares the variable by which a package knows the mutant of its process.
func chooser(of string) string {
	return fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar chosenMutant = os.Getenv(%q)\n", of, chosenEnv)
}

// weaveAll returns all files that are compiled in place of the sources, or in addition to them, by their names in the
// module.
func weaveAll(t *testing.T, mutants []mutant) map[string][]byte {
	t.Helper()
	byFile := map[string][]mutant{}
	for _, m := range mutants {
		byFile[m.File] = append(byFile[m.File], m)
	}
	woven := map[string][]byte{}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if woven[file], err = weave(source, byFile[file]); err != nil {
			t.Error(err)
			continue
		}
		folder := filepath.Dir(file)
		of, err := build.ImportDir(filepath.Join(root, folder), 0)
		if err != nil {
			t.Fatal(err)
		}
		woven[filepath.Join(folder, "chosenmutant.go")] = []byte(chooser(of.Name))
	}
	if t.Failed() {
		t.FailNow()
	}
	return woven
}

// overlay writes the files that are compiled in place of the sources into a folder, and returns the file that tells the
// go command of them.
func overlay(t *testing.T, folder string, woven map[string][]byte) string {
	t.Helper()
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	for name, text := range woven {
		file := filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(module, name)] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
