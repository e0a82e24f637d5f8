package imports

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "../../docs/architecture.md"

// quoted are the names between backquotes in a text.
func quoted(text string) []string {
	var names []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// floorsOf reads the table of floors on a page, from the ground up.
func floorsOf(page string) [][]string {
	var read [][]string
	_, section, _ := strings.Cut(page, "\n## The floors\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			read = append(read, quoted(strings.Split(line, "|")[1]))
		}
	}
	slices.Reverse(read)
	return read
}

// coreOf reads the sentence that names the core.
func coreOf(page string) []string {
	_, sentence, _ := strings.Cut(page, "\nThe *core*")
	sentence, _, _ = strings.Cut(sentence, ":")
	return quoted(sentence)
}

// sorted returns a copy in order.
func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func TestThePageOfTheArchitectureShowsTheFloors(t *testing.T) {
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	shown := floorsOf(string(text))
	if len(shown) != len(floors) {
		t.Errorf("docs/architecture.md shows %d floors, the table of this test has %d", len(shown), len(floors))
	}
	for i := range min(len(shown), len(floors)) {
		if !slices.Equal(sorted(shown[i]), sorted(floors[i])) {
			t.Errorf("floor %d from the ground is %v in docs/architecture.md, and %v in the table of this test", i+1, shown[i], floors[i])
		}
	}
	if got := coreOf(string(text)); !slices.Equal(sorted(got), sorted(core)) {
		t.Errorf("the core is %v in docs/architecture.md, and %v in the table of this test", got, core)
	}
}

func TestARowThatDiffersIsNoticed(t *testing.T) {
	const page = "# A\n\n## The floors\n\n| Floor | What |\n|---|---|\n| `b`, `c` | two `d` |\n| `a` | one |\n\n" +
		"The *core*, which decides, is `a`\nand `b`: no `clock`.\n\n## Next\n\n| `e` | another table |\n"
	got := floorsOf(page)
	if len(got) != 2 || !slices.Equal(got[0], []string{"a"}) || !slices.Equal(got[1], []string{"b", "c"}) {
		t.Errorf("the floors are read as %v", got)
	}
	if got := coreOf(page); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the core is read as %v", got)
	}
}
