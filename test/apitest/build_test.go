package apitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestAProgramIsLinkedOnceForAllWhoNeedIt(t *testing.T) {
	const source = "hekla.sh/hekla/pkg/apis/internal/crddoc"
	folder := t.TempDir()
	t.Setenv("GOCACHE", goCache(t)) // which stands in the user's cache folder otherwise
	t.Setenv("XDG_CACHE_HOME", filepath.Join(folder, "cache"))
	var built []os.FileInfo
	for _, name := range []string{"a/crddoc", "b/crddoc", "b/crddoc"} { // the last replaces the one before
		path := filepath.Join(folder, name)
		if err := BuildPackage(t.Context(), path, source); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		built = append(built, info)
	}
	for _, other := range built[1:] {
		if !os.SameFile(built[0], other) {
			t.Errorf("it was linked again: %v and %v", built[0], other)
		}
	}
	if output, err := exec.Command(filepath.Join(folder, "a/crddoc"), "--no-such-flag").CombinedOutput(); err == nil || len(output) == 0 {
		t.Errorf("it does not run: %v %s", err, output)
	}
}

func TestACopyStaysWhenItsProgramIsLinkedAgain(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "linked"), filepath.Join(folder, "copy")
	write := func(text string) {
		t.Helper()
		next := filepath.Join(folder, "next")
		if err := os.WriteFile(next, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, from); err != nil { // as the go command does
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(to); err != nil || string(got) != want {
			t.Errorf("the copy has %q and %v, want %q", got, err, want)
		}
	}
	write("one")
	if err := copyProgram(from, to); err != nil {
		t.Fatal(err)
	}
	write("two")
	expect("one")
	if err := copyProgram(from, to); err != nil {
		t.Fatal(err)
	}
	expect("two")
}

func goCache(t *testing.T) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output[:len(output)-1])
}
