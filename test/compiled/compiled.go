// Package compiled finds what the compiler has written down of packages, so that tests can check the types of sources
// that import them. It compiles what has changed; the go command keeps the rest.
package compiled

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Importer imports the packages that match some patterns in a folder of a module, and all that these depend on. Their
// positions go into the set.
func Importer(t testing.TB, set *token.FileSet, folder string, patterns ...string) types.Importer {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, patterns...)...)
	list.Dir, list.Stderr = folder, os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}
