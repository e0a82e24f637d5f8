package imports

import (
	"fmt"
	"go/ast"
	"testing"
)

// checkInternals says where a file uses the fields of the model's parts that are named Internal, and is not one of the
// packages that keep them.
func checkInternals(s *source) []string {
	if isIn(s.room, "pkg/cluster") {
		return nil
	}
	var wrong []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && selector.Sel.Name == "Internal" {
			wrong = append(wrong, fmt.Sprintf("%s: the field Internal is for the packages model and cache", s.set.Position(selector.Pos())))
		}
		return true
	})
	return wrong
}

func TestOnlyTheModelUsesItsInternals(t *testing.T) {
	for _, s := range sources(t) {
		for _, wrong := range checkInternals(s) {
			t.Error(wrong)
		}
	}
	const use = "package p\nfunc f(t *cluster.Task) int { return t.Internal.InJob }\n"
	if len(checkInternals(snippet(t, "pkg/plugins/gang", use))) != 1 || len(checkInternals(snippet(t, "pkg/cluster/cache", use))) != 0 {
		t.Error("a plugin that uses them is not noticed, or the cache is")
	}
}
