package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newReader returns a reader without a cluster, whose home has the programs of Kubernetes, so that `hekla up` builds
// none. What the reader starts ends with the test.
func newReader(t *testing.T) reader {
	t.Helper()
	home := t.TempDir()
	cache := filepath.Join(home, ".cache", "hekla")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(filepath.Dir(cluster.Kubectl())), filepath.Join(cache, "bin")); err != nil {
		t.Fatal(err)
	}
	r := reader{dir: checkout(t), kubeconfig: filepath.Join(cache, "clusters", "default", "kubeconfig"),
		environment: []string{"HOME=" + home, "XDG_CACHE_HOME="}}
	t.Cleanup(func() {
		if output, err := r.types(context.Background(), "bin/hekla down"); err != nil {
			t.Errorf("hekla down: %v\n%s", err, output)
		}
	})
	return r
}

// What the pages show, word for word, from a cluster of the reader's own to its end.
func TestTheWalkThroughsThatBringUpAClusterShowWhatThePagesSay(t *testing.T) {
	for _, walk := range []struct {
		page, title string
		least       int // steps
	}{
		{"docs/guaranteed-shares.md", "## See it", 9},
		{"docs/migrate-from-yunikorn.md", "## Ten minutes on a local cluster", 7},
		{"docs/migrate-from-kueue.md", "## Ten minutes on a local cluster", 19},
	} {
		t.Run(walk.page, func(t *testing.T) {
			steps := stepsOf(t, walk.page, walk.title)
			if len(steps) < walk.least || !strings.HasPrefix(steps[0].commands, "bin/hekla up ") || steps[len(steps)-1].commands != "bin/hekla down\n" {
				t.Fatalf("the page has %d steps, of which the first is %+v", len(steps), steps[0])
			}
			r := newReader(t)
			for _, s := range steps {
				r.follows(t, s)
			}
		})
	}
}
