package imports

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// floors are the rooms of the house, from the ground up. A package belongs to the room with the longest name that it is
// in or below. What is in a room may import its own room and the floors below, never its own floor's other rooms.
var floors = [][]string{
	{"pkg/resources", "internal/version", "internal/process", "internal/timetable", "internal/keypair", "internal/recent", "internal/similar", "internal/trend", "internal/turns", "."},
	{"pkg/verdict", "pkg/apis", "pkg/conf"},
	{"internal/topology", "internal/jobplugins", "internal/audit", "pkg/quota"},
	{"pkg/cluster", "pkg/client", "pkg/apis/batch/validation", "test/fixture"},
	{"pkg/cluster/model"},
	{"pkg/cluster/standins"},
	{"pkg/cluster/cache"},
	{"internal/edge", "pkg/framework", "internal/localcluster", "internal/placement"},
	{"internal/placer", "internal/gang", "internal/journal"},
	{"internal/eviction", "internal/cohorts"},
	{"pkg/plugins"},
	{"pkg/actions"},
	{"internal/explain", "internal/statuses", "internal/queueing", "internal/snapshot"},
	{"pkg/scheduler"},
	{"internal/simulator", "internal/metrics", "internal/controllers", "internal/admission", "internal/answers"},
	{"internal/demo", "internal/cli", "internal/benchmark", "internal/chaos", "internal/importer", "internal/web"},
	{"cmd/scheduler", "cmd/controllers", "cmd/hekla", "test", "docs"},
}

// home returns the room and the floor of a package.
func home(name string) (room string, floor int, ok bool) {
	name = cmp.Or(name, ".")
	for i, rooms := range floors {
		for _, r := range rooms {
			if isIn(name, r) && (!ok || len(r) > len(room)) {
				room, floor, ok = r, i, true
			}
		}
	}
	return room, floor, ok
}

// checkFloor says what is wrong with the imports of a file.
func checkFloor(s *source) []string {
	room, floor, ok := home(s.room)
	if !ok {
		return []string{fmt.Sprintf("package %s stands on no floor: name it in the table", s.room)}
	}
	var wrong []string
	for _, name := range s.imports() {
		imported, ours := inside(name)
		if !ours {
			continue
		}
		otherRoom, otherFloor, ok := home(imported)
		if !ok || otherRoom != room && otherFloor >= floor {
			wrong = append(wrong, fmt.Sprintf("%s/%s imports %s, which is not below it", s.room, s.name, cmp.Or(imported, "the root")))
		}
	}
	return wrong
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		for _, wrong := range checkFloor(s) {
			t.Error(wrong)
		}
	}
}

func TestAnImportThatPointsUpIsNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		room, imported string
		want           string // part of what is said, "" if nothing is wrong
	}{
		"down":                         {"pkg/scheduler", "pkg/cluster", ""},
		"within a room":                {"pkg/actions/allocate", "pkg/actions/enqueue", ""},
		"the root":                     {"internal/localcluster", "", ""},
		"up":                           {"pkg/cluster", "pkg/framework", "imports pkg/framework"},
		"the edge knows no actions":    {"internal/edge", "pkg/actions/allocate", "imports pkg/actions/allocate"},
		"the edge knows no plugins":    {"internal/edge", "pkg/plugins/gang", "imports pkg/plugins/gang"},
		"the edge knows no loop":       {"internal/edge", "pkg/scheduler", "imports pkg/scheduler"},
		"nor the contract":             {"internal/edge", "pkg/framework", "imports pkg/framework"},
		"a plugin knows no action":     {"pkg/plugins/gang", "pkg/actions/allocate", "imports pkg/actions/allocate"},
		"the core knows no edge":       {"pkg/framework", "internal/edge", "imports internal/edge"},
		"a package without a floor":    {"pkg/helpers", "pkg/cluster", "stands on no floor"},
		"one that is like another":     {"pkg/schedulers", "pkg/cluster", "stands on no floor"},
		"importing one without":        {"pkg/scheduler", "pkg/helpers", "imports pkg/helpers"},
		"webhooks know no controller":  {"internal/admission", "internal/controllers/job", "imports internal/controllers/job"},
		"simulations know none either": {"internal/simulator", "internal/controllers/job", "imports internal/controllers/job"},
		"types know no validation":     {"pkg/apis/batch/v1alpha1", "pkg/apis/batch/validation", "imports pkg/apis/batch/validation"},
		"gangs know no engine":         {"internal/gang", "internal/placer", "imports internal/placer"},
		"placement knows no sessions":  {"internal/placement", "pkg/framework", "imports pkg/framework"},
		"the contract knows no engine": {"pkg/framework", "internal/placement", "imports internal/placement"},
		"placement knows no plugins":   {"internal/placement/kube", "pkg/plugins/predicates", "imports pkg/plugins/predicates"},
	} {
		t.Run(name, func(t *testing.T) {
			imported := strings.TrimSuffix(module+"/"+test.imported, "/")
			wrong := strings.Join(checkFloor(snippet(t, test.room, fmt.Sprintf("package p\nimport _ %q\n", imported))), "; ")
			if !strings.Contains(wrong, test.want) || test.want == "" && wrong != "" {
				t.Errorf("said is %q, want %q", wrong, test.want)
			}
		})
	}
}
