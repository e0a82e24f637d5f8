package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "hekla.sh/hekla"

// source is one file.
type source struct {
	room string // the package's path in the module, "" for the root
	name string
	file *ast.File
	set  *token.FileSet
}

// at says where something stands.
func (s *source) at(n ast.Node) string {
	return path.Join(s.room, s.name) + ":" + strconv.Itoa(s.set.Position(n.Pos()).Line)
}

// imports are the paths that a file imports; those of the module without its name.
func (s *source) imports() []string {
	var all []string
	for _, i := range s.file.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		all = append(all, name)
	}
	return all
}

// inside returns the path in the module, if it is one of the module.
func inside(name string) (room string, ok bool) {
	if name == module {
		return "", true
	}
	return strings.CutPrefix(name, module+"/")
}

// isIn reports whether a path is another or below it.
func isIn(name, above string) bool { return name == above || strings.HasPrefix(name, above+"/") }

// sources reads all files of the module but tests.
func sources(t *testing.T) []*source {
	t.Helper()
	return parse(t, func(file string) bool { return !strings.HasSuffix(file, "_test.go") })
}

// parse reads the files of the module that are wanted.
func parse(t *testing.T, isWanted func(file string) bool) []*source {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	var all []*source
	set := token.NewFileSet()
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil && file != root {
			return filepath.SkipDir // a module of its own
		}
		if entry.IsDir() || !strings.HasSuffix(file, ".go") || !isWanted(file) {
			return nil
		}
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		room, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		if room == "." {
			room = ""
		}
		all = append(all, &source{room: filepath.ToSlash(room), name: filepath.Base(file), file: parsed, set: set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(s *source) bool { return s.room == "pkg/scheduler" }) {
		t.Fatalf("of the %d files found none is of pkg/scheduler", len(all))
	}
	return all
}

// snippet is a file of a package that does not exist, for trying the checks.
func snippet(t *testing.T, room, text string) *source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "snippet.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return &source{room: room, name: "snippet.go", file: file, set: set}
}
