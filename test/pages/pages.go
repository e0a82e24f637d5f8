package pages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"
)

// root is the folder of the module, from where the tests of a package two folders below it run.
const root = "../.."

// Step is a block of commands on a page, and what the last of them says after a while, "" if the page does not quote
// it.
type Step struct{ Commands, Says string }

// StepsOf returns the steps of a section of a page, up to the next section of its level.
func StepsOf(t *testing.T, page, title string) []Step {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, isThere := strings.Cut(string(content), "\n"+title+"\n")
	if !isThere {
		t.Fatalf("%s has no section %q", page, title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var steps []Step
	block := regexp.MustCompile("(?s)```(sh)?\n(.*?)```\n")
	for _, match := range block.FindAllStringSubmatch(section, -1) {
		switch {
		case match[1] == "sh":
			steps = append(steps, Step{Commands: match[2]})
		case len(steps) == 0 || steps[len(steps)-1].Says != "":
			t.Fatalf("%s quotes what no command says: %s", page, match[2])
		default:
			steps[len(steps)-1].Says = match[2]
		}
	}
	return steps
}

// Reader is a person in front of a page.
type Reader struct {
	Dir         string   // where commands run, see [Checkout]
	Kubeconfig  string   // of the cluster
	Programs    string   // the folder that has kubectl
	Environment []string // further variables
}

// Follow runs a step as a reader of the page does: all commands once, and the last again until it prints what the page
// quotes, where … stands for anything.
func (r Reader) Follow(t *testing.T, s Step) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.Commands), "\n")
	if s.Says == "" {
		if output, err := r.Type(t.Context(), strings.Join(lines, "\n")); err != nil {
			t.Fatalf("%s\n%v\n%s", s.Commands, err, output)
		}
		return
	}
	last := lines[len(lines)-1]
	if output, err := r.Type(t.Context(), strings.Join(lines[:len(lines)-1], "\n")); err != nil {
		t.Fatalf("%s\n%v\n%s", s.Commands, err, output)
	}
	want := strings.ReplaceAll(regexp.QuoteMeta(words(s.Says)), "…", ".*")
	pattern := regexp.MustCompile("^" + want + "$")
	apitest.Eventually(t, func(ctx context.Context) error {
		output, err := r.Type(ctx, last)
		if err == nil && !pattern.MatchString(words(output)) {
			err = fmt.Errorf("%s\nsays\n%s\nthe page quotes\n%s", last, output, s.Says)
		}
		return err
	})
}

// words leaves one space between words: columns are as wide as their contents.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// Type runs commands of a page.
func (r Reader) Type(ctx context.Context, commands string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	command.Dir = r.Dir
	command.WaitDelay = time.Second // for what it has started, if it is given up
	command.Env = append(os.Environ(), "KUBECONFIG="+r.Kubeconfig,
		"PATH="+r.Programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	command.Env = append(command.Env, r.Environment...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// Checkout makes a folder that looks like the root of the module, with the programs of a folder in bin. The commands of
// a page can be run there, and leave files behind.
func Checkout(t *testing.T, programs string) string {
	t.Helper()
	dir := t.TempDir()
	for name, target := range map[string]string{
		"bin": programs, "docs": filepath.Join(root, "docs"), "example": filepath.Join(root, "example"), "installer": filepath.Join(root, "installer"),
	} {
		absolute, err := filepath.Abs(target)
		if err == nil {
			err = os.Symlink(absolute, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
