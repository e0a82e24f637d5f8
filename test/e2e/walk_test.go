package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/test/pages"
)

// reader is a reader of pages who has the shared cluster.
func reader(t *testing.T) pages.Reader {
	t.Helper()
	return pages.Reader{Dir: pages.Checkout(t, programs), Kubeconfig: cluster.KubeconfigPath(), Programs: filepath.Dir(cluster.Kubectl())}
}

// What docs/preemption.md shows, word for word, but for bringing up the cluster: the tests have theirs.
func TestTheWalkThroughOfPreemptionShowsWhatThePageSays(t *testing.T) {
	steps := pages.StepsOf(t, "docs/preemption.md", "## See it")
	if len(steps) < 10 || !strings.Contains(steps[0].Commands, "bin/hekla up --nodes 2") {
		t.Fatalf("the page begins with %+v, of %d steps", steps[0], len(steps))
	}
	haveNodes(t, 2)
	tidyUp(t)
	// The Events of others would be quoted too.
	if err := core.EventsV1().Events(metav1.NamespaceDefault).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	r := reader(t)
	for _, s := range steps[1:] {
		r.Follow(t, s)
	}
	nothingWasForbidden(t)
}
