package imports

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// byName is what the file of a package ends with, in which its tests start an API server. Who runs the tests that need
// none, such as hack/check.sh, goes by it.
const byName = "apiserver_test.go"

// starters are what a test starts an API server with: by itself, and by programs of ours that do.
var starters = []string{"localcluster.Start", "installed.Start", "apitest.Shared", "apitest.Build"}

// startsServer says where the tests of a file start an API server, if they do.
func startsServer(s *source) (at string, does bool) {
	found := func(n ast.Node) {
		if !does {
			at, does = s.at(n), true
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, isName := n.X.(*ast.Ident); isName && slices.Contains(starters, of.Name+"."+n.Sel.Name) {
				found(n)
			}
		case *ast.CallExpr:
			if called, isName := n.Fun.(*ast.Ident); isName && called.Name == "Start" && s.room == "internal/localcluster" {
				found(n)
			}
		}
		return true
	})
	return at, does
}

// checkServers compares, by package, the names of files of tests with what starts an API server.
func checkServers(tests []*source) (wrong []string) {
	says, does := map[string]string{}, map[string]string{}
	for _, s := range tests {
		if s.name == byName || strings.HasSuffix(s.name, "_"+byName) {
			says[s.room] = s.name
		}
		if at, starts := startsServer(s); starts && (does[s.room] == "" || s.name == says[s.room]) {
			does[s.room] = at
		}
	}
	for room, at := range does {
		switch {
		case says[room] == "":
			wrong = append(wrong, at+": it starts an API server: call the file that does "+byName+", or _"+byName+" after a word")
		case !strings.HasPrefix(at, room+"/"+says[room]+":"):
			wrong = append(wrong, room+"/"+says[room]+": it starts no API server, but "+at+" does")
		}
	}
	for room, name := range says {
		if does[room] == "" {
			wrong = append(wrong, room+"/"+name+": no test of the package starts an API server: call it otherwise")
		}
	}
	slices.Sort(wrong)
	return wrong
}

func TestPackagesThatNeedAnAPIServerSaySoByAName(t *testing.T) {
	tests := parse(t, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	for _, complaint := range checkServers(tests) {
		t.Error(complaint)
	}
}

func TestNamesAreComparedWithWhatStartsAnAPIServer(t *testing.T) {
	file := func(room, name, text string) *source {
		s := snippet(t, room, "package p\n"+text)
		s.name = name
		return s
	}
	const none, one, shared = "func f() {}", "func f() { localcluster.Start(nil) }", "var s apitest.Shared"
	for name, test := range map[string]struct {
		files []*source
		want  string
	}{
		"none, and no name":  {[]*source{file("a", "a_test.go", none)}, ""},
		"one, by its name":   {[]*source{file("a", "apiserver_test.go", shared), file("a", "b_test.go", one)}, ""},
		"one, after a word":  {[]*source{file("a", "b_test.go", one), file("a", "up_apiserver_test.go", one)}, ""},
		"one, and no name":   {[]*source{file("a", "b_test.go", one)}, "a/b_test.go:2: it starts an API server"},
		"a name, and none":   {[]*source{file("a", "apiserver_test.go", none)}, "a/apiserver_test.go: no test of the package"},
		"in another file":    {[]*source{file("a", "apiserver_test.go", none), file("a", "b_test.go", one)}, "a/apiserver_test.go: it starts no API server, but a/b_test.go:2"},
		"in another package": {[]*source{file("a", "apiserver_test.go", one), file("b", "b_test.go", shared)}, "b/b_test.go:2: it starts"},
		"its own starter":    {[]*source{file("internal/localcluster", "a_test.go", "func f() { Start() }")}, "internal/localcluster/a_test.go:2: it starts"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := checkServers(test.files)
			if len(wrong) > 1 || (len(wrong) == 1) != (test.want != "") || len(wrong) == 1 && !strings.HasPrefix(wrong[0], test.want) {
				t.Errorf("complaints %q, want %q", wrong, test.want)
			}
		})
	}
}
