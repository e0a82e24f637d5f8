package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is a block of commands on a page, and what the last of them says after a while, "" if the page does not quote
// it.
type step struct{ commands, says string }

// stepsOf returns the steps of a section of a page, up to the next section of its level.
func stepsOf(t *testing.T, page, title string) []step {
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
	var steps []step
	block := regexp.MustCompile("(?s)```(sh)?\n(.*?)```\n")
	for _, match := range block.FindAllStringSubmatch(section, -1) {
		switch {
		case match[1] == "sh":
			steps = append(steps, step{commands: match[2]})
		case len(steps) == 0 || steps[len(steps)-1].says != "":
			t.Fatalf("%s quotes what no command says: %s", page, match[2])
		default:
			steps[len(steps)-1].says = match[2]
		}
	}
	return steps
}

// follow runs a step in the shared cluster, see [reader.follows].
func (s step) follow(t *testing.T, dir string) {
	t.Helper()
	reader{dir: dir, kubeconfig: cluster.KubeconfigPath()}.follows(t, s)
}

// reader is a person in front of a page, in a folder that looks like the root of the module.
type reader struct {
	dir, kubeconfig string
	environment     []string // further variables
}

// follows runs a step as a reader of the page does: all commands once, and the last again until it prints what the page
// quotes, where … stands for anything.
func (r reader) follows(t *testing.T, s step) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.commands), "\n")
	if s.says == "" {
		if output, err := r.types(t.Context(), strings.Join(lines, "\n")); err != nil {
			t.Fatalf("%s\n%v\n%s", s.commands, err, output)
		}
		return
	}
	last := lines[len(lines)-1]
	if output, err := r.types(t.Context(), strings.Join(lines[:len(lines)-1], "\n")); err != nil {
		t.Fatalf("%s\n%v\n%s", s.commands, err, output)
	}
	want := strings.ReplaceAll(regexp.QuoteMeta(words(s.says)), "…", ".*")
	pattern := regexp.MustCompile("^" + want + "$")
	apitest.Eventually(t, func(ctx context.Context) error {
		output, err := r.types(ctx, last)
		if err == nil && !pattern.MatchString(words(output)) {
			err = fmt.Errorf("%s\nsays\n%s\nthe page quotes\n%s", last, output, s.says)
		}
		return err
	})
}

// words leaves one space between words: columns are as wide as their contents.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// types runs commands of a page.
func (r reader) types(ctx context.Context, commands string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	command.Dir = r.dir
	command.Env = append(os.Environ(), "KUBECONFIG="+r.kubeconfig,
		"PATH="+filepath.Dir(cluster.Kubectl())+string(os.PathListSeparator)+os.Getenv("PATH"))
	command.Env = append(command.Env, r.environment...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// checkout is a folder in which the commands of a page can be run, and leave files behind.
func checkout(t *testing.T) string {
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

// What docs/preemption.md shows, word for word, but for bringing up the cluster: the tests have theirs.
func TestTheWalkThroughOfPreemptionShowsWhatThePageSays(t *testing.T) {
	steps := stepsOf(t, "docs/preemption.md", "## See it")
	if len(steps) < 10 || !strings.Contains(steps[0].commands, "bin/hekla up --nodes 2") {
		t.Fatalf("the page begins with %+v, of %d steps", steps[0], len(steps))
	}
	haveNodes(t, 2)
	tidyUp(t)
	// The Events of others would be quoted too.
	if err := core.EventsV1().Events(metav1.NamespaceDefault).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	dir := checkout(t)
	for _, s := range steps[1:] {
		s.follow(t, dir)
	}
	nothingWasForbidden(t)
}
