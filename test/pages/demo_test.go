package pages

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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

// The demo as a user without a terminal runs it, twice: a cluster of its own, its whole story, and a story again.
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
			"Two queues", "job experiment: Completed", "export KUBECONFIG=" + dir, "hekla down --dir=" + dir,
		} {
			_, after, isThere := strings.Cut(strings.ToLower(rest), strings.ToLower(want))
			if !isThere {
				t.Errorf("with %s the demo does not say %q, or too early; it says\n%s", nodes, want, output)
				break
			}
			rest = after
		}
	}
}
