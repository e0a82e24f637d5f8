package imports

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxName is how many letters the name of a test may have, without the word Test, and the name of a subtest.
const maxName = 60

// harnesses are what no type of a test is called: package harness, or the thing itself, has a name that says what it
// is.
var harnesses = []string{"world", "stage", "life"}

// checkNames says which tests and subtests of a file have names that are too long, and which types are called like a
// harness.
func checkNames(s *source) []string {
	var wrong []string
	say := func(n ast.Node, format string, arguments ...any) {
		wrong = append(wrong, s.at(n)+": "+fmt.Sprintf(format, arguments...))
	}
	for _, declared := range s.file.Decls {
		if f, isFunc := declared.(*ast.FuncDecl); isFunc && f.Recv == nil {
			if name, isTest := strings.CutPrefix(f.Name.Name, "Test"); isTest && len(name) > maxName {
				say(f, "%s has %d letters after Test, and %d are the most", f.Name.Name, len(name), maxName)
			}
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if slices.Contains(harnesses, strings.ToLower(n.Name.Name)) {
				say(n, "type %s: use package harness, or name it after what it is", n.Name.Name)
			}
		case *ast.CallExpr:
			if f, isSelector := n.Fun.(*ast.SelectorExpr); isSelector && f.Sel.Name == "Run" && len(n.Args) == 2 {
				if text := n.Args[0]; isTooLong(text) {
					say(text, "the subtest %s has more than %d letters", text.(*ast.BasicLit).Value, maxName)
				}
			}
		case *ast.RangeStmt:
			for _, text := range namesOf(n) {
				if isTooLong(text) {
					say(text, "the subtest %s has more than %d letters", text.(*ast.BasicLit).Value, maxName)
				}
			}
		}
		return true
	})
	return wrong
}

// isTooLong reports whether an expression is a text that is no name of a subtest.
func isTooLong(e ast.Expr) bool {
	literal, isLiteral := e.(*ast.BasicLit)
	if !isLiteral || literal.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(literal.Value)
	return err == nil && utf8.RuneCountInString(text) > maxName
}

// namesOf are the names of the subtests that a loop runs over a table: the keys of a map, if its key is passed to Run.
func namesOf(loop *ast.RangeStmt) []ast.Expr {
	table, isTable := loop.X.(*ast.CompositeLit)
	key, hasKey := loop.Key.(*ast.Ident)
	if !isTable || !hasKey {
		return nil
	}
	runs := false
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall || len(call.Args) != 2 {
			return true
		}
		f, isSelector := call.Fun.(*ast.SelectorExpr)
		name, isName := call.Args[0].(*ast.Ident)
		runs = runs || isSelector && isName && f.Sel.Name == "Run" && name.Name == key.Name
		return true
	})
	if !runs {
		return nil
	}
	var names []ast.Expr
	for _, row := range table.Elts {
		if pair, isPair := row.(*ast.KeyValueExpr); isPair {
			names = append(names, pair.Key)
		}
	}
	return names
}

func TestNamesOfTestsCanBeRead(t *testing.T) {
	files := parse(t, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	if len(files) < 100 {
		t.Fatalf("only %d files of tests were found", len(files))
	}
	for _, s := range files {
		for _, wrong := range checkNames(s) {
			t.Error(wrong)
		}
	}
}

func TestEveryTestThatAPageNamesIsThere(t *testing.T) {
	isThere := map[string]bool{}
	for _, s := range parse(t, func(file string) bool { return strings.HasSuffix(file, "_test.go") }) {
		for _, declared := range s.file.Decls {
			if f, isFunc := declared.(*ast.FuncDecl); isFunc {
				isThere[f.Name.Name] = true
			}
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("of the pages were found %v: %v", pages, err)
	}
	named := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`").FindAllStringSubmatch(string(text), -1) {
			if named++; !isThere[name[1]] {
				t.Errorf("%s names %s, and there is no such test", page, name[1])
			}
		}
	}
	if named == 0 {
		t.Error("the pages name no test")
	}
}

func TestNamesThatAreTooLongAreFound(t *testing.T) {
	long := strings.Repeat("n", maxName+1)
	fits := long[1:]
	for name, test := range map[string]struct{ text, want string }{
		"a name that fits":        {"func Test" + fits + "(t *testing.T) {}", ""},
		"a long name":             {"func Test" + long + "(t *testing.T) {}", "snippet.go:2: Test" + long + " has 61 letters"},
		"a helper":                {"func help" + long + "() {}", ""},
		"a subtest that fits":     {"func f(t T) { t.Run(\"" + fits + "\", g) }", ""},
		"letters, and not bytes":  {"func f(t T) { t.Run(\"" + strings.Repeat("é", maxName) + "\", g) }", ""},
		"a long subtest":          {"func f(t T) { t.Run(\"" + long + "\", g) }", "more than 60 letters"},
		"a long key of a table":   {"func f(t T) { for name := range map[string]int{\"" + long + "\": 1} { t.Run(name, g) } }", "more than 60 letters"},
		"a table without names":   {"func f(t T) { for text := range map[string]int{\"" + long + "\": 1} { t.Run(\"x\", g(text)) } }", ""},
		"a type called world":     {"type world struct{}", "type world: use package harness"},
		"a type called otherwise": {"type worldwide struct{}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := strings.Join(checkNames(snippet(t, "pkg/cluster", "package p\n"+test.text+"\n")), "; ")
			if !strings.Contains(said, test.want) || test.want == "" && said != "" {
				t.Errorf("said is %q, want %q", said, test.want)
			}
		})
	}
}
