package verdict

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// kinds reads the kinds of protections out of the source, so that none can be forgotten.
func kinds(t *testing.T) (all []ProtectionKind) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "protection.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "ProtectionKind" {
				text, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				all = append(all, ProtectionKind(text))
			}
		}
		return true
	})
	return all
}

func TestEveryProtectionIsWorded(t *testing.T) {
	seen := map[string]ProtectionKind{}
	all := kinds(t)
	if len(all) < 20 {
		t.Fatalf("%d kinds are read", len(all))
	}
	for _, kind := range all {
		words := Protection{Kind: kind, Detail: "q"}.String()
		if other, is := seen[words]; is || words == "" || strings.Contains(words, "%") {
			t.Errorf("%s and %q say %q", kind, other, words)
		}
		if isRule := kind.Rule() != ""; isRule != strings.HasPrefix(words, "rule "+kind.Rule()+" (") || isRule == (kind.IsObjection() || kind == HoldsNothing) {
			t.Errorf("%s has rule %q and says %q", kind, kind.Rule(), words)
		}
		if kind != ByPlugin && kind != ByMark && kind != ByBudget { // those have no words of their own
			seen[words] = kind
		}
	}
}

func TestTheWordsOfAProtection(t *testing.T) {
	for want, p := range map[string]Protection{
		"":                                       {},
		"rule J2 (their gang is at its minimum)": RuleAtItsMinimum.Protection(),
		"rule G7 (outside the fence of queue q)": {Kind: RuleOutsideFence, Detail: "q"},
		"pdb (their disruption budget is spent)": {Kind: ByBudget, Plugin: "pdb"},
		"mine (they are precious)":               {Kind: ByPlugin, Plugin: "mine", Detail: "they are precious"},
		"mine (it objects)":                      {Kind: ByPlugin, Plugin: "mine"},
		"the queue holds nothing":                HoldsNothing.Protection(),
	} {
		if got := p.String(); got != want || p.IsNone() != (want == "") || p.Exists() == p.IsNone() {
			t.Errorf("%+v says %q, want %q", p, got, want)
		}
	}
	if got := (Protection{}).Or(RuleCritical.Protection()); got.Kind != RuleCritical || got.Or(RuleDisabled.Protection()) != got {
		t.Errorf("it is %+v", got)
	}
}

func TestTheMostFrequentComesFirst(t *testing.T) {
	spared := []Spared{{RuleGuaranteed.Protection(), 1}, {Protection{Kind: ByPlugin, Plugin: "b"}, 2}, {Protection{Kind: ByPlugin, Plugin: "a"}, 2}}
	var order []string
	for _, s := range MostFirst(spared) {
		order = append(order, s.Why.Plugin)
	}
	if got := strings.Join(order, ","); got != "a,b," || spared[0].Pods != 1 {
		t.Errorf("the order is %q", got)
	}
}
