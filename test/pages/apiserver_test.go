package pages

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/localcluster/binaries"
	"hekla.sh/hekla/test/apitest"
)

var (
	// programs is the folder of our executables.
	programs string
	// kubernetes has those of Kubernetes.
	kubernetes *binaries.Binaries
)

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if kubernetes, err = binaries.Ensure(ctx, os.Stderr); err != nil {
		return 1, err
	}
	if programs, err = os.MkdirTemp("", "hekla-pages-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	if err := apitest.Build(ctx, programs, "hekla", "scheduler", "controllers"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// newReader returns a reader without a cluster, whose home has the programs of Kubernetes, so that `hekla up` builds
// none. What the reader starts ends with the test.
func newReader(t *testing.T) Reader {
	t.Helper()
	home := t.TempDir()
	cache := filepath.Join(home, ".cache", "hekla")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(kubernetes.Dir), filepath.Join(cache, "bin")); err != nil {
		t.Fatal(err)
	}
	r := Reader{Dir: Checkout(t, programs), Programs: kubernetes.Dir, Kubeconfig: filepath.Join(cache, "clusters", "default", "kubeconfig"),
		Environment: []string{"HOME=" + home, "XDG_CACHE_HOME="}}
	t.Cleanup(func() {
		if output, err := r.Type(context.Background(), "bin/hekla down"); err != nil {
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
			steps := StepsOf(t, walk.page, walk.title)
			if len(steps) < walk.least || !strings.HasPrefix(steps[0].Commands, "bin/hekla up ") || steps[len(steps)-1].Commands != "bin/hekla down\n" {
				t.Fatalf("the page has %d steps, of which the first is %+v", len(steps), steps[0])
			}
			r := newReader(t)
			for _, s := range steps {
				r.Follow(t, s)
			}
		})
	}
}
