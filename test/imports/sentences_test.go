package imports

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sentences says which files read text that was written for people, and why there is no data in its place. Whatever
// else code has to know is a field of its own.
var sentences = map[string]string{
	"internal/cli/quota/commands.go":                            "the keys are commands of two words",
	"internal/cli/session/errors.go":                            "the API server's sentence is printed without its full stop",
	"internal/cli/usage.go":                                     "cobra's errors have no types",
	"internal/cli/volcano.go":                                   "the keys are commands of two words",
	"internal/controllers/hypernode/discovery/configuration.go": "the YAML library's error is printed without its name",
	"internal/controllers/job/lifecycle/podgroup.go":            "the condition is a list of lines that begin with their times; it has no other field that could hold one",
	"internal/controllers/job/lifecycle/refused.go":             "the reasons of the kubelet are codes that begin with OutOf",
	"internal/edge/plans/step.go":                               "the API server refuses a dry run that a webhook does not support with BadRequest and no cause",
	"internal/importer/source/reader.go":                        "the YAML library's error is printed without its name",
	"internal/jobplugins/plugins.go":                            "an error of several lines is printed in one",
	"internal/localcluster/manifests.go":                        "the API server refuses what an admission policy cannot judge yet as Invalid, like what one forbids",
	"internal/queueing/lifecycle.go":                            "the reasons of Kueue's condition Requeued are codes that begin alike",
	"internal/simulator/manifests/read.go":                      "the decoder's error is printed without its name",
	"internal/statuses/evictions.go":                            "the condition is a list of lines that begin with their times; it has no other field that could hold one",
	"pkg/actions/enqueue/missing.go":                            "Volcano's condition has no field for a time; this file alone writes and reads it",
	"pkg/apis/kueue/conditions/preemption.go":                   "Kueue's condition Preempted says whom only in its message; this file alone writes and reads it",
	"pkg/apis/scheduling/builder/taskgroups.go":                 "an error of several lines is printed in one",
	"pkg/conf/document.go":                                      "the YAML library's error is printed without its name and line, which is counted here",
}

// sentenceName is how variables, fields, parameters and functions are called that hold what is written for people.
var sentenceName = regexp.MustCompile(`^(?:.*[a-z])?(?:[Mm]essage|[Ss]entence|[Rr]eason|[Ww]hy|[Dd]etail|[Ee]xplanation|[Nn]ote)$`)

// readers are the functions that look into text: what they are given first is read.
var readers = []string{"Contains", "ContainsAny", "ContainsFunc", "ContainsRune", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields", "FieldsFunc", "HasPrefix", "HasSuffix",
	"Index", "IndexByte", "LastIndex", "LastIndexByte", "Lines", "Split", "SplitN", "SplitAfter", "SplitSeq", "FieldsSeq", "Count", "Trim", "TrimLeft", "TrimRight", "TrimPrefix", "TrimSuffix",
	"Replace", "ReplaceAll"}

// reading finds where the files of one package read sentences.
type reading struct {
	info *types.Info
	from map[types.Object]bool // variables that have got a sentence
}

// isText reports whether an expression is a plain string: a code has a type of its own.
func (r *reading) isText(e ast.Expr) bool {
	of := r.info.TypeOf(e)
	return of != nil && types.Identical(types.Default(of), types.Typ[types.String])
}

// isSentence reports whether an expression is text for people: by its name, as what a method Error or String of a
// protection returns, or as a variable that has got one.
func (r *reading) isSentence(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return r.isText(e) && r.info.Types[e].Value == nil && (sentenceName.MatchString(e.Name) || r.from[r.info.ObjectOf(e)])
	case *ast.SelectorExpr:
		return r.isText(e) && r.info.Types[e].Value == nil && sentenceName.MatchString(e.Sel.Name)
	case *ast.IndexExpr:
		return r.isSentence(e.X)
	case *ast.SliceExpr:
		return r.isSentence(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (r.isSentence(e.X) || r.isSentence(e.Y))
	case *ast.CallExpr:
		if called, isMethod := e.Fun.(*ast.SelectorExpr); isMethod && len(e.Args) == 0 && r.isText(e) {
			of := types.TypeString(r.info.TypeOf(called.X), nil)
			return called.Sel.Name == "Error" || sentenceName.MatchString(called.Sel.Name) || called.Sel.Name == "String" && strings.HasSuffix(of, "verdict.Protection")
		}
		if name, isIdent := e.Fun.(*ast.Ident); isIdent && r.isText(e) {
			return sentenceName.MatchString(name.Name)
		}
		if is := r.info.Types[e.Fun]; is.IsType() && len(e.Args) == 1 { // string(text), []byte(text)
			return r.isSentence(e.Args[0])
		}
		if name, isStrings := r.ofStrings(e); isStrings && (name == "ToLower" || strings.HasPrefix(name, "Trim")) {
			return r.isSentence(e.Args[0])
		}
	}
	return false
}

// ofStrings returns the name of a function of package strings.
func (r *reading) ofStrings(call *ast.CallExpr) (string, bool) {
	selector, isSelector := call.Fun.(*ast.SelectorExpr)
	if !isSelector {
		return "", false
	}
	f, isFunction := r.info.Uses[selector.Sel].(*types.Func)
	if !isFunction || f.Pkg() == nil || f.Pkg().Path() != "strings" {
		return "", false
	}
	return f.Name(), true
}

// hasWords reports whether an expression is a constant of more than one word, as codes are not.
func (r *reading) hasWords(e ast.Expr) bool {
	v := r.info.Types[e].Value
	return v != nil && v.Kind() == constant.String && strings.Contains(strings.TrimSpace(constant.StringVal(v)), " ")
}

// follow notes the variables that get a sentence.
func (r *reading) follow(n ast.Node) {
	note := func(left ast.Expr, right ast.Expr) {
		if name, isIdent := left.(*ast.Ident); isIdent && r.isSentence(right) {
			if o := r.info.ObjectOf(name); o != nil {
				r.from[o] = true
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				note(n.Lhs[i], n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		for i := range n.Names {
			if len(n.Names) == len(n.Values) {
				note(n.Names[i], n.Values[i])
			}
		}
	}
}

// reads says what of a sentence a node reads, "" if nothing.
func (r *reading) reads(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		if name, isStrings := r.ofStrings(n); isStrings && slices.Contains(readers, name) && len(n.Args) > 0 && r.isSentence(n.Args[0]) {
			return "strings." + name
		}
		if method, isMethod := n.Fun.(*ast.SelectorExpr); isMethod && slices.ContainsFunc(n.Args, r.isSentence) &&
			strings.HasSuffix(types.TypeString(r.info.TypeOf(method.X), nil), "regexp.Regexp") {
			return "a regular expression"
		}
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && r.isText(n.X) && (r.hasWords(n.X) || r.hasWords(n.Y)) {
			return "a comparison with words"
		}
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			if n.Tag != nil && slices.ContainsFunc(clause.(*ast.CaseClause).List, r.hasWords) {
				return "a switch over words"
			}
		}
	case *ast.CompositeLit:
		if of, isMap := types.Unalias(r.info.TypeOf(n)).Underlying().(*types.Map); isMap && types.Identical(of.Key(), types.Typ[types.String]) &&
			slices.ContainsFunc(n.Elts, func(e ast.Expr) bool { return r.hasWords(e.(*ast.KeyValueExpr).Key) }) {
			return "a table by words"
		}
	}
	return ""
}

// readingsOf lists by file where one package reads sentences.
func readingsOf(t *testing.T, from types.Importer, files []*source) map[string][]string {
	t.Helper()
	r := &reading{&types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}, map[types.Object]bool{}}
	typed(t, from, files, r.info)
	found := map[string][]string{}
	for _, s := range files {
		if ast.IsGenerated(s.file) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool { r.follow(n); return true })
		ast.Inspect(s.file, func(n ast.Node) bool {
			if n != nil {
				if what := r.reads(n); what != "" {
					found[s.room+"/"+s.name] = append(found[s.room+"/"+s.name], fmt.Sprintf("%s: %s", s.at(n), what))
				}
			}
			return true
		})
	}
	return found
}

func TestNoCodeReadsASentence(t *testing.T) {
	from := exported(t, "...")
	rooms, used := byRoom(t, sources(t)), map[string]bool{}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		for file, places := range readingsOf(t, from, rooms[room]) {
			if used[file] = true; sentences[file] == "" {
				t.Errorf("%s\n\tgive what it needs a field, or say in sentences why there is none", strings.Join(places, "\n"))
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(sentences)) {
		if !used[file] {
			t.Errorf("%s reads no sentence: take it off the table", file)
		}
	}
}

func TestReadingASentenceIsFound(t *testing.T) {
	const code = `package p
import "strings"
type r struct{ Reason, Message string; err error }
type code string
const words, one = "it is so", "One"
var table = map[string]int{"it is so": 1}
func f(o r, message string, c code) bool {
	said := o.Message
	cut, _, _ := strings.Cut(said, ":")
	return strings.HasPrefix(o.Reason, "rule") || strings.Contains(o.err.Error(), "no") || message == words || strings.TrimPrefix(message, "a") == "" || cut == "" ||
		o.Message == "" || o.Reason == one || c == "A" || strings.HasPrefix(string(c), "A") || o.Message == message
}
func g(why string) bool {
	switch why {
	case words:
		return true
	}
	return false
}`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, places := range readingsOf(t, importer.ForCompiler(set, "source", nil), []*source{{"p", "p.go", file, set}}) {
		for _, place := range places {
			_, what, _ := strings.Cut(place, ": ")
			got = append(got, what)
		}
	}
	want := []string{"a table by words", "strings.Cut", "strings.HasPrefix", "strings.Contains", "a comparison with words", "strings.TrimPrefix", "a switch over words"}
	if !slices.Equal(got, want) {
		t.Errorf("found are %q, want %q", got, want)
	}
}
