package pages

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var pictures = flag.Bool("pictures", false, "make the picture of the README again")

// picture is what the demo ends with, as the README shows it.
const picture = root + "/docs/web/demo.svg"

// heklaIn runs hekla for a cluster in a folder, and returns what it says.
func heklaIn(ctx context.Context, t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(ctx, filepath.Join(programs, "hekla"), append(arguments, "--dir="+dir)...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("hekla %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

// The demo as a user without a terminal runs it, twice: a cluster of its own, its whole story, and a story again. It
// ends with the answer about the gang that was evicted, and with commands that work.
func TestTheDemoTellsItsStoryToTheEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() { heklaIn(context.Background(), t, dir, "down") })
	for _, nodes := range []string{"2 nodes", "3 nodes"} {
		began := time.Now()
		output := heklaIn(t.Context(), t, dir, "demo")
		t.Logf("the demo took %s", time.Since(began).Round(time.Second))
		rest := output
		for _, want := range []string{
			"there are " + nodes, "job gang: Pending, 0 of ", "GangShort: ", "insufficient cpu",
			"job several-tasks: Completed", "A node joins", "job gang: Running", "pods of gang ran", "job gang: Completed",
			"Two queues", "job experiment: Completed", "job training: Running", "job urgent: Running",
			"why vcjob/training --namespace=hekla-demo", "training waits: OverC", "Starts", " in ", " to ", "Held", "by hekla-demo/urgent", "Story",
			"were evicted: ", "for hekla-demo/urgent by rule J1 (preempt)", "http://127.0.0.1:", "/#token=", "export KUBECONFIG=" + dir, "hekla down --dir=" + dir,
		} {
			_, after, isThere := strings.Cut(strings.ToLower(rest), strings.ToLower(want))
			if !isThere {
				t.Errorf("with %s the demo does not say %q, or too early; it says\n%s", nodes, want, output)
				break
			}
			rest = after
		}
		if nodes == "2 nodes" {
			shows(t, tidy(output, dir))
		}
		tries(t, dir, output)
	}
}

// tidy is the end of the demo without what is this machine's.
func tidy(output, dir string) string {
	_, end, _ := strings.Cut(output, "\n$ ")
	replaced := strings.NewReplacer(filepath.Join(programs, "hekla"), "bin/hekla", dir+"/kubeconfig", "~/.cache/hekla/clusters/default/kubeconfig", " --dir="+dir, "")
	end = replaced.Replace(end)
	end = regexp.MustCompile(`#token=\S+`).ReplaceAllString(end, "#token=…")
	return "$ " + regexp.MustCompile(`alias kubectl=.*/`).ReplaceAllString(end, "alias kubectl=~/.cache/hekla/bin/…/")
}

// labels are what the lines of the answer are called, and the commands after it.
func labels(text string) (found []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		label, _, isRow := strings.Cut(strings.TrimPrefix(line, "  "), "  ")
		switch {
		case strings.HasPrefix(line, "   "), strings.Contains(line, "http://"): // goes on, or has a port
		case strings.HasPrefix(line, "  bin/hekla"), strings.HasPrefix(line, "bin/hekla"):
			found = append(found, strings.Join(strings.Fields(line), " "))
		case strings.HasPrefix(line, "  ") && isRow:
			found = append(found, label)
		}
	}
	return found
}

// shows compares the picture with what the demo says, or draws it.
func shows(t *testing.T, end string) {
	t.Helper()
	if *pictures {
		if err := os.WriteFile(picture, Picture(end), 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
	}
	drawn, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	text, err := TextOf(drawn)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := labels(text), labels(end); !slices.Equal(got, want) || len(want) < 10 {
		t.Errorf("the README shows %q, and the demo ends with %q; draw it again with go test ./test/pages -run Demo -pictures", got, want)
	}
}

// tries runs the commands that the demo ends with, but for the one that follows.
func tries(t *testing.T, dir, output string) {
	t.Helper()
	r := Reader{Dir: Checkout(t, programs), Programs: kubernetes.Dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	_, commands, _ := strings.Cut(output, "Try three commands:\n")
	commands, _, _ = strings.Cut(strings.TrimSpace(commands), "\n\n")
	count := 0
	for line := range strings.Lines(commands) {
		line, comment, _ := strings.Cut(strings.TrimSpace(line), "#")
		if comment == "" {
			continue // sets what the others need
		}
		count++
		line, _ = strings.CutSuffix(strings.TrimSpace(line), " -w")
		if said, err := r.Type(t.Context(), line); err != nil {
			t.Errorf("%s: %v\n%s", line, err, said)
		}
	}
	if count != 3 {
		t.Errorf("the demo ends with %d commands, want three", count)
	}
}

func TestAPictureCanBeReadBack(t *testing.T) {
	text := "$ hekla why job <a>\n  Comes back  \"x\" & y " + strings.Repeat("z", columns-22) + " and more\n  bin/hekla why   # c"
	got, err := TextOf(Picture(text))
	if want := strings.Replace(text, " and more", "\n              and more", 1); err != nil || got != want {
		t.Errorf("it reads\n%s\nwant\n%s\n%v", got, want, err)
	}
	if got := fmt.Sprint(labels(got)); got != "[Comes back bin/hekla why # c]" {
		t.Errorf("the labels are %s", got)
	}
}
