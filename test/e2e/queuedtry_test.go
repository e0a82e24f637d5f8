package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"
)

// command returns what a command of hekla says.
func command(t *testing.T, arguments ...string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), filepath.Join(programs, "hekla"), append(arguments, "--kubeconfig="+cluster.KubeconfigPath())...).CombinedOutput()
	if err != nil {
		t.Errorf("hekla %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return string(said)
}

func TestWhatIsQueuedIsTriedAndReplayed(t *testing.T) {
	const name = "04-several-cluster-queues.yaml"
	haveNodes(t, 2)
	haveWebhooks(t)
	haveQuotas(t)
	path := filepath.Join(root, "example/quotas", name)
	kubectl(t, "apply", "-f", path)
	apitest.Eventually(t, func(ctx context.Context) error { return endsIn(ctx, quotaExamples[name].want, nil) })
	time.Sleep(time.Second) // an API server stores whole seconds, and what is created in the same one may come in either order

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	at := func(what string) string {
		for _, d := range documents {
			if strings.Contains(d, what) {
				return d
			}
		}
		t.Fatalf("no %s in %s", what, name)
		return ""
	}
	file := filepath.Join(t.TempDir(), "tried.yaml")
	try := func(manifest string, wants ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		said := command(t, "try", "-f", file)
		for _, want := range append(wants, "Next: ") {
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
	}
	tried := strings.Replace(at("name: too-much"), "name: too-much", "name: tried", 1)
	try(tried, "Job default/tried would wait: WaitingForQuota", "1 more needed", "2 of 2")
	try(strings.Replace(tried, "queue-name: team-a", "queue-name: team-b", 1), "Job default/tried would be admitted now", "cpu of flavor any")
	queue := strings.Replace(at("borrowingLimit: 2"), "borrowingLimit: 2", "borrowingLimit: 3", 1)
	try(queue, "Workload default/job-too-much-", "admitted by ClusterQueue team-a with any instead of waits WaitingForQuota")

	diag := command(t, "diag")
	t.Log(diag)
	for _, want := range []string{"ClusterQueues: 2, in which 1 Workloads wait and 2 hold quota", "WaitingForQuota", "6/4 cpu of any, 2 borrowed"} {
		if !strings.Contains(diag, want) {
			t.Errorf("no %q in\n%s", want, diag)
		}
	}

	snapshot := filepath.Join(t.TempDir(), "snapshot.json.gz")
	command(t, "snapshot", "-f", snapshot)
	if said, err := exec.CommandContext(t.Context(), filepath.Join(programs, "hekla"), "replay", snapshot).CombinedOutput(); err != nil ||
		!strings.HasPrefix(string(said), "0 decisions in ") || !strings.Contains(string(said), "1 of 3 Workloads wait at the end") {
		t.Errorf("the replay of what is at rest: %v\n%s", err, said)
	}
}
