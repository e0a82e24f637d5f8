package version_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/version"
)

// The linker says nothing of a variable that it does not find, so both builds are tried as they name it.
func TestTheLinkerSetsTheVersionOfBothBuilds(t *testing.T) {
	for _, file := range []string{"../../Makefile", "../../hack/release/build.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`-X (\S+\.Version)=`).FindSubmatch(text)
		if named == nil {
			t.Fatalf("%s sets no version", file)
		}
		build := exec.CommandContext(t.Context(), "go", "run", "-ldflags", "-X "+string(named[1])+"=v1.2.3", "./testdata/say")
		if said, err := build.CombinedOutput(); err != nil || strings.TrimSpace(string(said)) != "v1.2.3" {
			t.Errorf("with the name %s of %s a build says %q, %v", named[1], file, said, err)
		}
	}
}

func TestABuildWithoutAVersionSaysSo(t *testing.T) {
	if version.Version != "unknown" {
		t.Errorf("the version of this test is %q", version.Version)
	}
}

func TestNoCodeChangesTheVersion(t *testing.T) {
	change := regexp.MustCompile(`(?m)^[^"\n]*version\.Version\s*=[^=]|&version\.Version\b`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		if bytes.Contains(text, []byte("version.Version")) {
			if found := change.Find(text); found != nil {
				t.Errorf("%s: %s", path, found)
			}
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("read %d files: %v", files, err)
	}
}
