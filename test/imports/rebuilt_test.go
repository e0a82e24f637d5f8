package imports

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// mostRebuilt is how many packages the tests of one package may have built again for them.
const mostRebuilt = 12

// rebuilt are the packages, by the package whose tests they are built again for: where a test inside of a package adds
// to it, each package between an outer test and that package is compiled, vetted and linted once more.
func rebuilt(files []*source) map[string][]string {
	imports, outer, isInner := map[string][]string{}, map[string][]string{}, map[string]bool{}
	for _, s := range files {
		isTest := strings.HasSuffix(s.name, "_test.go")
		isOuter := isTest && strings.HasSuffix(s.file.Name.Name, "_test")
		isInner[s.room] = isInner[s.room] || isTest && !isOuter
		for _, name := range s.imports() {
			if room, ok := inside(name); ok && isOuter {
				outer[s.room] = append(outer[s.room], room)
			} else if ok && !isTest {
				imports[s.room] = append(imports[s.room], room)
			}
		}
	}
	all := map[string][]string{}
	for tested := range outer {
		if !isInner[tested] {
			continue
		}
		leads := map[string]bool{tested: true} // by package: whether it is the tested one, or imports it
		var follow func(room string) bool
		follow = func(room string) bool {
			if known, ok := leads[room]; ok {
				return known
			}
			leads[room] = false
			for _, next := range imports[room] {
				leads[room] = follow(next) || leads[room]
			}
			if leads[room] {
				all[tested] = append(all[tested], room)
			}
			return leads[room]
		}
		for _, room := range outer[tested] {
			follow(room)
		}
	}
	return all
}

func TestTestsHaveFewPackagesBuiltAgain(t *testing.T) {
	for tested, rooms := range rebuilt(parse(t, func(string) bool { return true })) {
		if len(rooms) > mostRebuilt {
			t.Errorf("for the tests of %s, %d packages are built again: move those that import %s elsewhere, or make all of them outer ones",
				tested, len(rooms), rooms[len(rooms)-1])
		}
	}
}

func TestWhatIsBuiltAgainIsFound(t *testing.T) {
	file := func(room, name, text string) *source {
		s := snippet(t, room, text)
		s.name = name
		return s
	}
	others := []*source{
		file("b", "b.go", `package b; import "hekla.sh/hekla/a"`),
		file("c", "c.go", `package c; import ("hekla.sh/hekla/b"; "hekla.sh/hekla/d")`),
		file("d", "d.go", `package d`),
	}
	outer := file("a", "outer_test.go", `package a_test; import ("hekla.sh/hekla/a"; "hekla.sh/hekla/c")`)
	for name, test := range map[string]struct {
		tests []*source
		want  string
	}{
		"inner and outer tests": {[]*source{file("a", "inner_test.go", "package a"), outer}, "map[a:[b c]]"},
		"outer tests alone":     {[]*source{outer}, "map[]"},
		"inner tests alone":     {[]*source{file("a", "inner_test.go", "package a")}, "map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(rebuilt(slices.Concat(others, test.tests))); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}
