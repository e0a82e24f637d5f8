package imports

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// startsGoroutine says where a file starts a goroutine, if it does.
func startsGoroutine(s *source) (at string, does bool) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			at, does = s.at(n), true
		case *ast.SelectorExpr:
			if n.Sel.Name == "Go" || n.Sel.Name == "Parallel" {
				at, does = s.at(n), true
			}
		}
		return !does
	})
	return at, does
}

// isRaced reports whether a package is among the patterns of the race step.
func isRaced(room string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, isTree := strings.CutSuffix(strings.TrimPrefix(p, "./"), "/...")
		return room == below || isTree && isIn(room, below)
	})
}

// The race step of the Makefile leaves out what decides, which is pure. So no test of that may have it run in several
// goroutines either, unless its package is in the step.
func TestWhatRunsInGoroutinesIsTestedForRaces(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^RACED := ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no RACED")
	}
	patterns := strings.Fields(strings.ReplaceAll(string(line[1]), "\\\n", " "))
	found := 0
	for _, s := range parse(t, func(string) bool { return true }) {
		if at, does := startsGoroutine(s); does && (isCore(s.room) || isIn(s.room, "internal/edge")) {
			found++
			if !isRaced(s.room, patterns) {
				t.Errorf("%s starts a goroutine: add the package to RACED in the Makefile", at)
			}
		}
	}
	if found == 0 {
		t.Error("no goroutine is found at all")
	}
	if isRaced("pkg/scheduling", patterns) || !isRaced("internal/edge/load", patterns) {
		t.Errorf("patterns are matched wrongly: %q", patterns)
	}
}
