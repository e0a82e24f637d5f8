package imports

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// maxLines is how many lines the files of a package may have together, and maxMethods how many methods a type. Tests and
// generated files do not count.
const (
	maxLines   = 2000
	maxMethods = 30
)

// overLimit are the packages and types that may be larger, and why. An entry that is not needed any more fails the test, so
// that the list only shrinks.
var overLimit = map[string]string{
	"internal/explain.Model":                   "each question is a method, and so is each part of an answer that asks the model",
	"pkg/cluster/cache":                        "each event is read into the same model, and the audit checks all of it",
	"pkg/cluster/cache.Cache":                  "what an event means for jobs, pods and namespaces changes the same model",
	"pkg/framework":                            "the contract between actions and plugins is one package that authors of plugins read",
	"pkg/quota/cohort.Node":                    "each question of the rules about a ClusterQueue or Cohort is a method",
	"pkg/cluster/model":                        "all totals of the model change in one place",
	"pkg/cluster/workloads":                    "what Workloads hold, promise and wait for is one state",
	"internal/admission":                       "each webhook is a function of one server, and of what it knows",
	"internal/controllers/workload":            "its controllers share what they know of the configuration and of each other's objects",
	"internal/eviction":                        "one search with all its ways, which share the state of an attempt",
	"internal/eviction.attempt":                "each way to make a draft is one of its steps",
	"internal/eviction/victims":                "the order of victims, the bounds that follow from it, and their costs compare pods in one way",
	"internal/placement":                       "the ways to find the best node share the answers, which follow the same changes",
	"internal/simulator":                       "all that surrounds the scheduler changes the same virtual cluster",
	"internal/simulator/workloads.Controllers": "it plays all controllers of Workloads on the same virtual cluster",
	"pkg/cluster.Job":                          "what is asked of a job follows from its tasks together",
	"pkg/cluster/model.Cluster":                "each operation that can be undone is a method",
	"internal/placement.Engine":                "each question about pods and nodes is answered from the same tables",
	"internal/statuses.Reporter":               "each kind of status is written from the same record of what was written",
	"pkg/framework.Session":                    "what actions and plugins ask of a session is one contract",
	"internal/placement/kube":                  "what the plugins of kube-scheduler say, and what is said in their place, follows the same mirror",
	"internal/placement/kube.handle":           "the framework of kube-scheduler asks its plugins' handle for that many",
}

// sizes adds up the lines of each package and the methods of each type, named like pkg/cluster.Job.
func sizes(files []*source) (lines, methods map[string]int) {
	lines, methods = map[string]int{}, map[string]int{}
	for _, s := range files {
		if ast.IsGenerated(s.file) {
			continue
		}
		lines[s.room] += s.set.File(s.file.Pos()).LineCount()
		for _, declared := range s.file.Decls {
			if method, isFunc := declared.(*ast.FuncDecl); isFunc && method.Recv != nil {
				methods[s.room+"."+receiver(method.Recv.List[0].Type)]++
			}
		}
	}
	return lines, methods
}

// receiver is the name of the type that a method is of.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return fmt.Sprintf("%T", of)
}

// checkLimits says which packages and types are larger than the limits, and which exceptions are not needed.
func checkLimits(files []*source, exceptions map[string]string) []string {
	lines, methods := sizes(files)
	var wrong []string
	used := map[string]bool{}
	check := func(all map[string]int, limit int, what string) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			_, isExcepted := exceptions[name]
			switch {
			case all[name] <= limit:
			case isExcepted:
				used[name] = true
			default:
				wrong = append(wrong, fmt.Sprintf("%s has %d %s, and %d are the most: split it", name, all[name], what, limit))
			}
		}
	}
	check(lines, maxLines, "lines")
	check(methods, maxMethods, "methods")
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if !used[name] {
			wrong = append(wrong, name+" is within the limits: take it off the list of exceptions")
		}
	}
	return wrong
}

func TestPackagesAndTypesAreWithinTheLimits(t *testing.T) {
	for _, wrong := range checkLimits(sources(t), overLimit) {
		t.Error(wrong)
	}
}

func TestAPackageOrTypeOverTheLimitIsNoticed(t *testing.T) {
	long := "package p\n" + strings.Repeat("\n", maxLines)
	var many strings.Builder
	many.WriteString("package p\ntype T[K any] struct{}\n")
	for i := range maxMethods + 1 {
		fmt.Fprintf(&many, "func (t *T[K]) m%d() {}\n", i)
	}
	for name, test := range map[string]struct {
		text      string
		exception string
		want      string // part of what is said, "" if nothing is wrong
	}{
		"within":               {"package p\n", "", ""},
		"too many lines":       {long, "", "pkg/p has 2001 lines"},
		"an excepted package":  {long, "pkg/p", ""},
		"a stale exception":    {"package p\n", "pkg/p", "pkg/p is within the limits"},
		"an unknown exception": {"package p\n", "pkg/q", "pkg/q is within the limits"},
		"a generated file":     {"// Code generated by x. DO NOT EDIT.\n\n" + long, "", ""},
		"too many methods":     {many.String(), "", "pkg/p.T has 31 methods"},
		"an excepted type":     {many.String(), "pkg/p.T", ""},
		"a type that shrank":   {"package p\ntype T int\nfunc (T) m() {}\n", "pkg/p.T", "pkg/p.T is within the limits"},
	} {
		t.Run(name, func(t *testing.T) {
			exceptions := map[string]string{}
			if test.exception != "" {
				exceptions[test.exception] = "it is tried here"
			}
			said := strings.Join(checkLimits([]*source{snippet(t, "pkg/p", test.text)}, exceptions), "; ")
			if !strings.Contains(said, test.want) || test.want == "" && said != "" {
				t.Errorf("said is %q, want %q", said, test.want)
			}
		})
	}
}
