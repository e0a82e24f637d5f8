package imports

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// core are the rooms that decide.
var core = []string{"pkg/resources", "internal/recent", "pkg/verdict", "internal/topology", "pkg/quota", "pkg/cluster", "pkg/framework", "internal/placement", "internal/placer", "internal/gang", "internal/eviction", "internal/cohorts", "pkg/actions",
	"pkg/plugins", "internal/explain", "internal/statuses", "internal/journal", "pkg/scheduler"}

// forbidden is what the core has no use for: the API server, the machine, threads, chance and logs.
var forbidden = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/klog", "k8s.io/apiserver", "go.uber.org/zap",
	"net", "os", "log", "sync", "math/rand", "crypto/rand", "syscall", "unsafe", module + "/pkg/client"}

// exempt are imports that are allowed all the same, with the reason.
var exempt = map[string]map[string]string{
	"pkg/plugins/extender/callout": {
		"net/http": "asking somebody outside is what an extender is for, and this package does nothing else",
		"net/url":  "it checks where it is told to ask",
	},
	"internal/placement/supply": {
		"k8s.io/client-go": "kube-scheduler's plugins read volumes and devices through these types; none is connected to anything",
	},
	"internal/placement/kube": {
		"k8s.io/client-go":                  "the handle that kube-scheduler's plugins take is declared in these types; none is connected to anything",
		"k8s.io/klog":                       "the plugins take a logger with their context; it is one that discards",
		"k8s.io/apiserver/pkg/util/feature": "the plugins are made for the feature gates of kube-scheduler",
	},
}

// taken are the rooms that may take the code of Kubernetes' own programs, each for one thing, so that what changes
// there is mended in one place.
var taken = map[string]struct{ below, reason string }{
	"internal/placement/kube":         {"k8s.io/kubernetes", "kube-scheduler's plugins"},
	"internal/placement/kube/domains": {"k8s.io/kubernetes", "the terms and words of kube-scheduler's plugins"},
	"internal/admission/corerules":    {"k8s.io/kubernetes", "the validation of pods"},
	"internal/simulator/manifests":    {"k8s.io/kubernetes/pkg/apis", "the defaults that the API server sets"},
	"test/simulation/apiserver":       {"k8s.io/kubernetes", "the API server in memory is the API server's own code"},
	"internal/controllers/jobflow":    {"k8s.io/kubernetes/pkg/probe", "pods are asked as a kubelet asks them"},
}

// clock are the functions that read or wait for the time.
var clock = []string{"Now", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Since", "Until"}

func isCore(room string) bool {
	return slices.ContainsFunc(core, func(c string) bool { return isIn(room, c) })
}

// checkImports says which imports of a file the core must not have, and whether it takes Kubernetes' own code.
func checkImports(s *source) []string {
	var wrong []string
	for _, name := range s.imports() {
		if isIn(name, "k8s.io/kubernetes") && (taken[s.room].below == "" || !isIn(name, taken[s.room].below)) {
			wrong = append(wrong, fmt.Sprintf("%s/%s imports %s, which is Kubernetes' own: see taken", s.room, s.name, name))
		}
		for _, f := range forbidden {
			if isCore(s.room) && isIn(name, f) && !isExempt(s.room, name) {
				wrong = append(wrong, fmt.Sprintf("%s/%s imports %s, and it decides", s.room, s.name, name))
			}
		}
	}
	return wrong
}

func isExempt(room, name string) bool {
	for allowed := range exempt[room] {
		if isIn(name, allowed) {
			return true
		}
	}
	return false
}

// room is a package whose names are resolved, those of imports excepted.
type room struct {
	files []*source
	scope *types.Scope
	uses  map[*ast.Ident]types.Object
}

// nowhere lets every import fail: what a name of another package stands for does not matter here.
type nowhere struct{}

func (nowhere) Import(string) (*types.Package, error) { return nil, errors.New("not read") }

func resolve(files []*source) *room {
	var parsed []*ast.File
	for _, s := range files {
		parsed = append(parsed, s.file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checker := types.Config{Importer: nowhere{}, Error: func(error) {}}
	// It reports that imports cannot be read, and resolves all else.
	resolved, _ := checker.Check(files[0].room, files[0].set, parsed, info)
	return &room{files: files, scope: resolved.Scope(), uses: info.Uses}
}

// checkStatements finds goroutines, readings of the clock, and writes to the package's own variables: those may be
// tables, nothing more.
func checkStatements(files []*source) []string {
	r := resolve(files)
	var wrong []string
	for _, s := range files {
		say := func(n ast.Node, what string) { wrong = append(wrong, s.at(n)+": "+what) }
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				say(n, "starts a goroutine")
			case *ast.SelectorExpr:
				if r.isPackage(n.X, "time") && slices.Contains(clock, n.Sel.Name) {
					say(n, "asks the clock, time."+n.Sel.Name)
				}
			}
			for _, w := range writes(n) {
				if name := root(w.to); name != nil && r.isVariable(name) {
					say(n, w.how+" the package's own variable "+name.Name)
				}
			}
			return true
		})
	}
	return wrong
}

// isPackage reports whether an expression is the name of an imported package.
func (r *room) isPackage(e ast.Expr, name string) bool {
	x, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	imported, ok := r.uses[x].(*types.PkgName)
	return ok && imported.Imported().Path() == name
}

// isVariable reports whether a name is that of one of the package's own variables.
func (r *room) isVariable(name *ast.Ident) bool {
	v, ok := r.uses[name].(*types.Var)
	return ok && v.Parent() == r.scope
}

// write is something that a statement writes to, or lets others write to.
type write struct {
	to  ast.Expr
	how string
}

func writes(n ast.Node) []write {
	var all []write
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			all = append(all, write{left, "sets"})
		}
	case *ast.IncDecStmt:
		all = append(all, write{n.X, "changes"})
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			all = append(all, write{n.X, "hands out"})
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
			all = append(all, write{n.Args[0], "empties"})
		}
	}
	return all
}

// root returns the variable that an expression is a part of.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func TestTheCoreIsPure(t *testing.T) {
	rooms := map[string][]*source{}
	for _, s := range sources(t) {
		for _, wrong := range checkImports(s) {
			t.Error(wrong)
		}
		if isCore(s.room) {
			rooms[s.room] = append(rooms[s.room], s)
		}
	}
	for _, files := range rooms {
		for _, wrong := range checkStatements(files) {
			t.Error(wrong)
		}
	}
}

func TestWhatIsImpureIsNoticed(t *testing.T) {
	check := func(s *source) string {
		return strings.Join(slices.Concat(checkImports(s), checkStatements([]*source{s})), "; ")
	}
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                  {"", ""},
		"a table":                  {"var table = map[string]int{\"a\": 1}\nfunc f() int { return table[\"a\"] }", ""},
		"the API server":           {"import _ \"k8s.io/client-go/kubernetes\"", "imports k8s.io/client-go/kubernetes"},
		"the network":              {"import _ \"net/http\"", "imports net/http"},
		"the machine":              {"import _ \"os\"", "imports os"},
		"kube-scheduler's code":    {"import _ \"k8s.io/kubernetes/pkg/scheduler\"", "which is Kubernetes' own"},
		"a path that is like one":  {"import _ \"network/of/mine\"", ""},
		"the clock":                {"import \"time\"\nfunc f() { _ = time.Now() }", "snippet.go:3: asks the clock, time.Now"},
		"waiting":                  {"import \"time\"\nfunc f() { <-time.After(time.Second) }", "time.After"},
		"a time that is given":     {"import \"time\"\nfunc f(now time.Time) { _ = now.After(now) }", ""},
		"a goroutine":              {"func f() { go f() }", "starts a goroutine"},
		"a counter":                {"var n int\nfunc f() { n++ }", "changes the package's own variable n"},
		"a cache":                  {"var m = map[int]int{}\nfunc f() { m[1] = 2 }", "sets the package's own variable m"},
		"emptying a cache":         {"var m = map[int]int{}\nfunc f() { delete(m, 1) }", "empties the package's own variable m"},
		"a field of a variable":    {"var v struct{ n int }\nfunc f() { v.n = 1 }", "sets the package's own variable v"},
		"a pointer to a variable":  {"var v int\nfunc f() *int { return &v }", "hands out the package's own variable v"},
		"a local of the same name": {"var n int\nfunc f() { n := 1; n++; _ = n }", ""},
		"a parameter of that name": {"var n int\nfunc f(n int) { n++ }", ""},
		"a local variable":         {"var n int\nfunc f() { var n int; n = 1; _ = n }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			said := check(snippet(t, "pkg/cluster", "package p\n"+test.text+"\n"))
			if !strings.Contains(said, test.want) || test.want == "" && said != "" {
				t.Errorf("said is %q, want %q", said, test.want)
			}
		})
	}
}

func TestEveryExemptionIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, name := range s.imports() {
			for allowed := range exempt[s.room] {
				used[s.room+" "+allowed] = used[s.room+" "+allowed] || isIn(name, allowed)
			}
		}
	}
	for room, imports := range exempt {
		for allowed := range imports {
			if !used[room+" "+allowed] {
				t.Errorf("%s does not import %s any more", room, allowed)
			}
		}
	}
}
