package imports

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// ofTheContract is what the placement engine uses of package framework: what plugins answer about nodes, and what the engine
// implements. Sessions and transactions are above it.
var ofTheContract = []string{"Policy", "NodeFilter", "NodeVetoer", "NodeScorer", "NodeInvalidator", "Point", "Placer", "Outlook", "Supplier"}

// usesOfContract says what a file uses of package framework beside that.
func usesOfContract(s *source) []string {
	var wrong []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		used, isSelector := n.(*ast.SelectorExpr)
		if !isSelector {
			return true
		}
		if of, isName := used.X.(*ast.Ident); isName && of.Name == "framework" && !slices.Contains(ofTheContract, used.Sel.Name) {
			wrong = append(wrong, fmt.Sprintf("%s: the placement engine uses framework.%s", s.at(n), used.Sel.Name))
		}
		return true
	})
	return wrong
}

func TestThePlacementEngineKnowsNoSession(t *testing.T) {
	for _, s := range sources(t) {
		if !isIn(s.room, "internal/placement") || !slices.Contains(s.imports(), module+"/pkg/framework") {
			continue
		}
		for _, wrong := range usesOfContract(s) {
			t.Error(wrong)
		}
	}
	s := snippet(t, "internal/placement", "package p\nimport \""+module+"/pkg/framework\"\nfunc f(s *framework.Session, p framework.Placer) {}\n")
	if said := strings.Join(usesOfContract(s), "; "); !strings.Contains(said, "uses framework.Session") || strings.Contains(said, "Placer") {
		t.Errorf("said is %q", said)
	}
}
