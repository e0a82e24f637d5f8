package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testNames are the names of all tests of the project.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, root := range []string{"../cmd", "../internal", "../pkg", "../test"} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range testFunction.FindAllSubmatch(text, -1) {
				all[string(found[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Each promise of the page is held by tests that exist, and what hekla audit finds are promises.
func TestEveryPromiseIsHeldByATest(t *testing.T) {
	text, has := page(t, "promises.md"), testNames(t)
	promises, _, _ := strings.Cut(text, "## How they are tried")
	rows := 0
	for line := range strings.Lines(promises) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Promise |") {
			continue
		}
		rows++
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test holds: %s", line)
		}
		for _, name := range names {
			if !has[name[1]] {
				t.Errorf("there is no test %s, which holds: %s", name[1], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("the page has only %d promises", rows)
	}
	rules := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ").FindAllStringSubmatch(page(t, "audit.md"), -1)
	if len(rules) == 0 {
		t.Error("the page on hekla audit lists no rules")
	}
	for _, rule := range rules {
		if !strings.Contains(promises, "| `"+rule[1]+"`: ") {
			t.Errorf("%s is a rule of hekla audit and no promise", rule[1])
		}
	}
}

// Each defect of the page names how it was found, and its commit.
func TestEveryDefectNamesItsCommit(t *testing.T) {
	_, found, _ := strings.Cut(page(t, "promises.md"), "## What they found")
	found, _, _ = strings.Cut(found, "## What is open")
	rows := slices.DeleteFunc(strings.Split(found, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Defect |")
	})
	if len(rows) < 20 {
		t.Errorf("the page has only %d defects", len(rows))
	}
	row := regexp.MustCompile(`^\| [^|]{20,} \| [^|]{5,} \| [0-9a-f]{8} \|$`)
	for _, line := range rows {
		if !row.MatchString(line) {
			t.Errorf("want a defect, its method and its commit: %s", line)
		}
	}
}
