package imports

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The marks: what is larger has an entry in overMark that says why. They count what a reader meets. Tests and generated
// files do not count.
const (
	lineMark   = 2000 // lines of all files of a package
	nameMark   = 60   // exported names of a package: types, functions, constants and variables, without methods
	methodMark = 30   // methods that a type can be called with: its own, and those of what it embeds as far as they are exported
)

// overMark are the packages and types that are over a mark, and why that is right. The reason is about what belongs
// together, and a package or type that is there need not be split. An entry that is not needed any more fails the test.
var overMark = map[string]string{
	"cmd/hekla":                                "each command of the program is a file",
	"internal/admission":                       "each webhook is a function of one server, and of what it knows",
	"internal/audit":                           "ten small rules, and the one cluster that all of them read",
	"internal/audit.Auditor":                   "each kind of object that a log shows is taken in by a method or two, and all keep the same cluster",
	"internal/cli/ask":                         "each verb that asks the scheduler is a file or two, and all share how it is reached and how answers are written",
	"internal/cohorts.Cycle":                   "each step of a round is a method, and all change the same books of what is taken and withheld",
	"internal/controllers/job.Reconciler":      "each part of what a Job needs in a phase is one of its steps",
	"internal/controllers/workload":            "its controllers share what they know of the configuration and of each other's objects",
	"internal/eviction":                        "one search with all its ways, which share the state of an attempt",
	"internal/eviction.attempt":                "each way to make a draft is one of its steps",
	"internal/eviction/rules.Guaranteed":       "it embeds guarantee.Rules, and asks them about the queues of one preemptor",
	"internal/eviction/rules.Rules":            "each rule that may spare a pod is a method, and it embeds what the rules of guaranteed shares say",
	"internal/eviction/victims":                "the order of victims, the bounds that follow from it, and their costs compare pods in one way",
	"internal/explain":                         "each question to the model and the data of its answer, which asks the same model",
	"internal/explain.Model":                   "each question is a method, and so is each part of an answer that asks the model",
	"internal/explain/propose.Job":             "it embeds the job that it proposes changes for",
	"internal/importer/kueue.importer":         "it embeds the reader of manifests, and each kind that is translated is a method",
	"internal/importer/yunikorn.importer":      "it embeds the checker of the configuration, and each part that is translated is a method",
	"internal/localcluster":                    "starting, waiting for, repairing and stopping a cluster share its folder and its processes",
	"internal/localcluster.Cluster":            "what is done with a cluster: its processes, nodes, objects and kubeconfigs are of the same folder",
	"internal/localcluster.controlPlane":       "it embeds the cluster that it starts",
	"internal/placement":                       "the ways to find the best node share the answers, which follow the same changes",
	"internal/placement.Engine":                "each question about pods and nodes is answered from the same tables",
	"internal/placement/kube":                  "what the plugins of kube-scheduler say, and what is said in their place, follows the same mirror",
	"internal/placement/kube.handle":           "the framework of kube-scheduler asks its plugins' handle for that many",
	"internal/queueing":                        "a kind of jobs, its Workload and the life of that are described in the same terms, and each kind is a file",
	"internal/simulator":                       "all that surrounds the scheduler changes the same virtual cluster",
	"internal/simulator/workloads.Controllers": "it plays all controllers of Workloads on the same virtual cluster",
	"internal/statuses.Reporter":               "each kind of status is written from the same record of what was written",
	"pkg/apis/batch/v1alpha1":                  "the names of the API are Volcano's",
	"pkg/apis/kueue/v1beta2":                   "the names of the API are Kueue's",
	"pkg/apis/scheduling/v1beta1":              "the names of the API are Volcano's",
	"pkg/cluster":                              "the objects of the model, which all other packages speak of",
	"pkg/cluster.Job":                          "what is asked of a job follows from its tasks together",
	"pkg/cluster/cache":                        "each event is read into the same model, and the audit checks all of it",
	"pkg/cluster/cache.Cache":                  "what an event means for jobs, pods and namespaces changes the same model",
	"pkg/cluster/cache.base":                   "it embeds the model, which the cache fills",
	"pkg/cluster/cache.nodes":                  "a part of the cache that embeds what all parts share, the model among it",
	"pkg/cluster/cache.owners":                 "a part of the cache that embeds what all parts share, the model among it",
	"pkg/cluster/cache.queues":                 "a part of the cache that embeds what all parts share, the model among it",
	"pkg/cluster/cache.ranks":                  "a part of the cache that embeds what all parts share, the model among it",
	"pkg/cluster/cache.refusals":               "a part of the cache that embeds what all parts share, the model among it",
	"pkg/cluster/cache/held.Workloads":         "it embeds the reader of Workloads, and keeps the model in step with it",
	"pkg/cluster/model":                        "all totals of the model change in one place",
	"pkg/cluster/model.Cluster":                "each operation that can be undone is a method",
	"pkg/cluster/model.attention":              "it embeds the registry of objects: what has changed is noted by object",
	"pkg/cluster/model.ledger":                 "it embeds the attention: whatever changes a total is noted",
	"pkg/cluster/standins.StandIns":            "it embeds the model, to which stand-ins are added as pods are",
	"pkg/cluster/workload":                     "what is decided about Workloads, in which words: flavors, policies, modes, outcomes and phases",
	"pkg/cluster/workload.Queue":               "it embeds the node of the quota tree, and has the line of its Workloads",
	"pkg/cluster/workloads":                    "what Workloads hold, promise and wait for is one state",
	"pkg/cluster/workloads/queues.Registry":    "each kind of objects is set, dropped and found by a method of its own",
	"pkg/cluster/workloads.Entry":              "it embeds the Workload that decisions are made about, and each question about its object is a method",
	"pkg/cluster/workloads.Reader":             "it embeds what its parts share, and each event and each decision is a method",
	"pkg/framework":                            "the contract between actions and plugins is one package that authors of plugins read",
	"pkg/framework.Session":                    "what actions and plugins ask of a session is one contract",
	"pkg/quota.View":                           "each question of the rules about a queue is a method",
	"pkg/quota.bounding":                       "it embeds the view whose bounds it works out",
	"pkg/quota/cohort.Node":                    "each question of the rules about a ClusterQueue or Cohort is a method",
	"pkg/verdict":                              "each reason for which a job waits is a constant",
}

// size is a number over which a mark may be.
type size struct {
	name  string // a package, or a type such as pkg/cluster.Job
	what  string
	count int
	mark  int
}

// sizesOf measures a package.
func sizesOf(t *testing.T, from types.Importer, files []*source) (sizes []size) {
	t.Helper()
	room, lines := files[0].room, 0
	isGenerated := map[string]bool{}
	for _, s := range files {
		if name := s.set.File(s.file.Pos()).Name(); ast.IsGenerated(s.file) {
			isGenerated[name] = true
		} else {
			lines += s.set.File(s.file.Pos()).LineCount()
		}
	}
	scope, names := typed(t, from, files, nil).Scope(), 0
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if isGenerated[files[0].set.File(o.Pos()).Name()] {
			continue
		}
		if o.Exported() {
			names++
		}
		if of, isType := o.(*types.TypeName); isType && !of.IsAlias() && !types.IsInterface(of.Type()) {
			sizes = append(sizes, size{room + "." + name, "methods", callable(of.Type()), methodMark})
		}
	}
	return append(sizes, size{room, "lines", lines, lineMark}, size{room, "exported names", names, nameMark})
}

// callable counts the methods that a value of a type, or a pointer to it, can be called with: all of its own, and the
// exported ones of what it embeds. Of another module's types, such as those of the API, only its own count.
func callable(of types.Type) (count int) {
	set := types.NewMethodSet(types.NewPointer(of))
	for i := range set.Len() {
		m := set.At(i)
		isOwn := len(m.Index()) == 1
		if isOwn || m.Obj().Exported() && m.Obj().Pkg() != nil && strings.HasPrefix(m.Obj().Pkg().Path(), module) {
			count++
		}
	}
	return count
}

// checkSizes says which packages and types are over a mark without a reason, and which reasons are not needed.
func checkSizes(all []size, reasons map[string]string) []string {
	var wrong []string
	used := map[string]bool{}
	for _, s := range all {
		switch {
		case s.count <= s.mark:
		case reasons[s.name] != "":
			used[s.name] = true
		default:
			wrong = append(wrong, fmt.Sprintf("%s has %d %s, and the mark is %d: say in overMark why they belong together, or take out what does not", s.name, s.count, s.what, s.mark))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		if !used[name] {
			wrong = append(wrong, name+" is under the marks: take it off the table")
		}
	}
	return wrong
}

func TestWhatIsOverAMarkSaysWhy(t *testing.T) {
	from := exported(t, "...")
	rooms := byRoom(t, sources(t))
	var all []size
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		all = append(all, sizesOf(t, from, rooms[room])...)
	}
	for _, wrong := range checkSizes(all, overMark) {
		t.Error(wrong)
	}
	for _, s := range all {
		if s.count > s.mark {
			t.Logf("%s: %d %s", s.name, s.count, s.what)
		}
	}
}

func TestWhatIsOverAMarkIsNoticed(t *testing.T) {
	methods := func(of string, n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "func (*%s) M%d() {}\n", of, i)
		}
		return text.String()
	}
	var names strings.Builder
	for i := range nameMark + 1 {
		fmt.Fprintf(&names, "N%d = %d\nn%d = 0\n", i, i, i)
	}
	long := "package p\n" + strings.Repeat("\n", lineMark)
	from := exported(t, "pkg/apis/termination") // it imports what the cases do
	for name, test := range map[string]struct {
		text   string
		reason string // of what
		want   string // part of what is said, "" if nothing is wrong
	}{
		"under the marks":        {"package p\n", "", ""},
		"many lines":             {long, "", "pkg/p has 2001 lines"},
		"many lines, and why":    {long, "pkg/p", ""},
		"a reason too many":      {"package p\n", "pkg/p", "pkg/p is under the marks"},
		"a reason for nothing":   {"package p\n", "pkg/q", "pkg/q is under the marks"},
		"a generated file":       {"// Code generated by x. DO NOT EDIT.\n\n" + long + "type T struct{}\n" + methods("T", methodMark+1), "", ""},
		"many names":             {"package p\nconst (\n" + names.String() + ")\n", "", "pkg/p has 61 exported names"},
		"many methods":           {"package p\ntype T struct{}\n" + methods("T", methodMark+1), "", "pkg/p.T has 31 methods"},
		"many methods, and why":  {"package p\ntype T struct{}\n" + methods("T", methodMark+1), "pkg/p.T", ""},
		"methods of two types":   {"package p\ntype T struct{ u }\ntype u struct{}\n" + methods("T", methodMark) + "func (u) Other() {}\n", "", "pkg/p.T has 31 methods"},
		"unexported of another":  {"package p\ntype T struct{ u }\ntype u struct{}\n" + methods("T", methodMark) + "func (u) other() {}\n", "", ""},
		"of another module":      {"package p\nimport \"time\"\ntype T struct{ time.Time }\n", "", ""},
		"a type with parameters": {"package p\ntype T[K any] struct{}\n" + methods("T[K]", methodMark+1), "", "pkg/p.T has 31 methods"},
	} {
		t.Run(name, func(t *testing.T) {
			reasons := map[string]string{}
			if test.reason != "" {
				reasons[test.reason] = "it is tried here"
			}
			s := snippet(t, "pkg/p", test.text)
			said := strings.Join(checkSizes(sizesOf(t, from, []*source{s}), reasons), "; ")
			if !strings.Contains(said, test.want) || test.want == "" && said != "" {
				t.Errorf("said is %q, want %q", said, test.want)
			}
		})
	}
}
