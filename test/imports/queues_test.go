package imports

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/test/compiled"
)

// ofQueues are the types of which the eviction engine reads nothing: what a queue may give and take it asks
// quota.Rules.
var ofQueues = []string{module + "/pkg/cluster.Queue", module + "/pkg/quota.Node", module + "/pkg/quota.Terms"}

// engine is the rooms that read nothing of them.
var engine = []string{"internal/eviction", "internal/eviction/rules", "internal/eviction/victims", "internal/eviction/plans", "internal/eviction/candidates", "internal/eviction/spared"}

// exported finds what the compiler has written down of the packages that a room imports.
func exported(t *testing.T, room string) types.Importer {
	t.Helper()
	return compiled.Importer(t, sources(t)[0].set, "../..", "./"+room)
}

// typed checks the types of the files of one package. The info, if there is one, is filled in.
func typed(t *testing.T, from types.Importer, files []*source, info *types.Info) *types.Package {
	t.Helper()
	var parsed []*ast.File
	for _, s := range files {
		parsed = append(parsed, s.file)
	}
	p, err := (&types.Config{Importer: from}).Check(module+"/"+files[0].room, files[0].set, parsed, info)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// readsOfQueues says where files of one package read a field of a queue.
func readsOfQueues(t *testing.T, from types.Importer, files []*source) []string {
	t.Helper()
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	typed(t, from, files, info)
	var found []string
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			read, isSelector := n.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			if selected := info.Selections[read]; selected != nil && selected.Kind() == types.FieldVal {
				if of := nameOf(selected.Recv()); slices.Contains(ofQueues, of) {
					found = append(found, fmt.Sprintf("%s: reads %s of a %s", s.at(n), read.Sel.Name, strings.TrimPrefix(of, module+"/")))
				}
			}
			return true
		})
	}
	return found
}

// nameOf is the name of a type, or of what it points to.
func nameOf(t types.Type) string {
	if pointer, isPointer := t.Underlying().(*types.Pointer); isPointer {
		t = pointer.Elem()
	}
	return types.TypeString(t, nil)
}

func TestTheEvictionEngineReadsNoFieldOfAQueue(t *testing.T) {
	from := exported(t, engine[0])
	files := map[string][]*source{}
	for _, s := range sources(t) {
		if isIn(s.room, engine[0]) {
			files[s.room] = append(files[s.room], s)
		}
	}
	if rooms := slices.Collect(maps.Keys(files)); !slices.Equal(sorted(rooms), sorted(engine)) {
		t.Errorf("the packages of the engine are %v, and %v are looked at", rooms, engine)
	}
	for _, room := range engine {
		for _, read := range readsOfQueues(t, from, files[room]) {
			t.Errorf("%s: ask quota.Rules", read)
		}
	}
	for name, test := range map[string]struct{ text, want string }{
		"a field":            {"func f(j *cluster.Job) int32 { return j.Queue.Priority }", "reads Priority of a pkg/cluster.Queue"},
		"a local variable":   {"func f(j *cluster.Job) any { q := j.Queue; return q.Parent }", "reads Parent of a pkg/cluster.Queue"},
		"a node of the tree": {"func f(j *cluster.Job) int { return j.QuotaNode().Depth }", "reads Depth of a pkg/quota.Node"},
		"the ledger":         {"func f(j *cluster.Job) any { return &j.Queue.Subtree.Allocated }", "reads Subtree of a pkg/cluster.Queue"},
		"which queue it is":  {"func f(j, k *cluster.Job) bool { return j.Queue == k.Queue && j.QueueName != \"\" }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := snippet(t, engine[0], "package p\nimport \""+module+"/pkg/cluster\"\n"+test.text+"\n")
			if said := strings.Join(readsOfQueues(t, from, []*source{s}), "; "); !strings.Contains(said, test.want) || test.want == "" && said != "" {
				t.Errorf("said is %q, want %q", said, test.want)
			}
		})
	}
}
