package blocks

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

func TestMarksAreOfABlockOrOfASection(t *testing.T) {
	const fence = "```"
	page := strings.ReplaceAll(`# Page

'''sh
first
'''
## A section
<!-- run by TestOther -->

Text.

'''sh
second
'''

### Within

<!-- not run: a reason -->
'''sh
third
'''

'''
$ fourth
and what it says
'''

## Another section

<!-- a comment -->

'''yaml
no: commands
'''

'''sh
fifth
'''
`, "'''", fence)
	found, err := read("docs/page.md", page)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range found {
		got = append(got, fmt.Sprintf("%d %s %q %q", b.Line, strings.TrimSpace(b.Commands), b.NotRun, b.RunBy))
	}
	want := []string{`4 first "" ""`, `12 second "" "TestOther"`, `19 third "a reason" ""`, `23 fourth "" "TestOther"`, `36 fifth "" ""`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the blocks are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, wrong := range []string{
		"<!-- run by nobody -->", "<!-- not run: -->", "<!-- not run: a -->\n<!-- run by TestB -->", "<!-- run by TestA -->\n" + fence + "yaml\na: b\n" + fence,
	} {
		if _, err := read("docs/page.md", "# Page\n"+wrong+"\n"); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// testFiles returns the texts of all files with tests.
func testFiles(t *testing.T) (files [][]byte) {
	t.Helper()
	for _, folder := range []string{"docs", "test", "internal", "hack"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			files = append(files, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// The test that a page names exists, and its file reads the page: by its name, or with all of its folder.
func TestEveryBlockIsRunOrItsPageSaysWhyNot(t *testing.T) {
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	files, run := testFiles(t), 0
	for _, b := range all {
		switch {
		case b.NotRun != "":
			t.Logf("%s:%d is not run: %s", b.Page, b.Line, b.NotRun)
		case b.RunBy == "":
			t.Errorf("%s:%d is run by no test: put <!-- run by TestName --> or <!-- not run: REASON --> above it\n%s", b.Page, b.Line, b.Commands)
		default:
			run++
			isThere, reads := false, false
			for _, text := range files {
				if bytes.Contains(text, []byte("\nfunc "+b.RunBy+"(t *testing.T) {")) {
					isThere = true
					reads = bytes.Contains(text, []byte(path.Base(b.Page)+`"`)) || bytes.Contains(text, []byte(path.Dir(b.Page)+`/*.md"`))
				}
			}
			if !isThere || !reads {
				t.Errorf("%s:%d is run by %s, which exists: %t, in a file that reads the page: %t", b.Page, b.Line, b.RunBy, isThere, reads)
			}
		}
	}
	t.Logf("of %d blocks tests run %d", len(all), run)
	if run < 50 {
		t.Errorf("tests run %d blocks; this test looks in the wrong place", run)
	}
}
