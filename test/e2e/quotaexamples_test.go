package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"
)

// withFairSharing is the default configuration, and fair sharing.
const withFairSharing = withQuotas + `
    arguments: {fairSharing: true}`

// withCredits is the default configuration, and a credit for each CPU.
const withCredits = withQuotas + `
    arguments: {resources: {transformations: [{input: cpu, strategy: Retain, outputs: {cpu_credits: 1}}]}}`

// waitsFor says of a Workload that it is not admitted, and of its condition QuotaReserved that it has this text.
func waitsFor(text string) string { return "waits: " + text }

// What each example ends in, by the documentation of Kueue: the flavor of cpu and the number of pods for each job or
// group that is admitted, and what others wait for.
var quotaExamples = map[string]struct {
	config string
	after  string // the example whose queue it uses, with what that ends in
	want   map[string]string
	counts map[string]int // how many Workloads of a LocalQueue are admitted, where it is open which
}{
	"01-one-queue.yaml": {want: map[string]string{"job-sample-job": "default-flavor 3"}},
	"02-cohort.yaml":    {want: map[string]string{}},
	"03-pods.yaml":      {want: map[string]string{"sample-group": "default-flavor 2"}},
	"04-several-cluster-queues.yaml": {want: map[string]string{"job-own": "any 4", "job-borrowed": "any 2",
		"job-too-much": waitsFor("insufficient unused quota for cpu in flavor any, 1 more needed")}},
	"05-cohort-tree.yaml":       {want: map[string]string{"job-build": "any 8", "job-fold": waitsFor("insufficient unused quota for cpu in flavor any, 1 more needed")}},
	"06-fungibility.yaml":       {want: map[string]string{"job-steady-job": "reserved 3", "job-thrifty-job": "on-demand 3"}},
	"07-fair-sharing.yaml":      {config: withFairSharing, counts: map[string]int{"heavy": 4, "light": 2}},
	"08-priorities.yaml":        {want: map[string]string{"job-urgent": "any 2", "job-patient": waitsFor("insufficient unused quota for cpu in flavor any, 2 more needed")}},
	"09-partial-admission.yaml": {after: "01-one-queue.yaml", want: map[string]string{"job-sample-job": "default-flavor 3", "job-sample-job-in-part": "default-flavor 6"}},
	"10-credits.yaml": {config: withCredits, want: map[string]string{"job-first": "reserved 3", "job-second": "spot 1",
		"job-third": waitsFor("insufficient unused quota for cpu_credits in flavor credits, 2 more needed")}},
}

func TestTheExamplesOfQuotasEndAsKueueDescribes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "example/quotas/*.yaml"))
	if err != nil || len(files) != len(quotaExamples) {
		t.Fatalf("%d examples are there, %d are tested: %v", len(files), len(quotaExamples), err)
	}
	haveNodes(t, 2)
	haveWebhooks(t)
	for _, name := range slices.Sorted(maps.Keys(quotaExamples)) {
		t.Run(name, func(t *testing.T) {
			example := quotaExamples[name]
			haveQuotas(t)
			if example.config != "" {
				configure(t, example.config)
			}
			if name == "03-pods.yaml" { // it says to which queue it belongs
				applyWithoutJobs(t, "01-one-queue.yaml")
			}
			if before := quotaExamples[example.after]; example.after != "" {
				applyInOrder(t, example.after)
				apitest.Eventually(t, func(ctx context.Context) error { return endsIn(ctx, before.want, before.counts) })
			}
			applyInOrder(t, name)
			apitest.Eventually(t, func(ctx context.Context) error { return endsIn(ctx, example.want, example.counts) })
		})
	}
	nothingWasForbidden(t)
}

// haveWebhooks runs the webhook server as the installer does, but on the loopback interface, until the test ends.
func haveWebhooks(t *testing.T) {
	t.Helper()
	kubeconfig, _, err := cluster.ServiceAccountKubeconfig(t.Context(), installed.Namespace, "volcano-admission")
	if err != nil {
		t.Fatal(err)
	}
	health, err := installed.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	port, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	process, err := cluster.Run(t.Context(), localcluster.Program{
		Name: "volcano-admission", Path: apitest.Path(programs, "controllers"), ReadyURL: "http://" + health + "/readyz",
		Args: []string{"admission", "--kubeconfig=" + kubeconfig, "--enable-healthz", "--healthz-address=" + health, "--listen-address=127.0.0.1",
			fmt.Sprintf("--port=%d", port), fmt.Sprintf("--webhook-url=https://127.0.0.1:%d", port)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
		for _, kind := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
			if _, err := system.Kubectl(context.Background(), "patch", kind, "volcano-admission", "--type=merge", "-p", `{"webhooks": []}`); err != nil {
				t.Error(err)
			}
		}
	})
}

// applyInOrder applies an example, and lets each of its Jobs have its Workload before the next one is applied. Jobs of
// the same second are in the order of their Workloads, which on a busy machine need not be that of the file.
func applyInOrder(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "example/quotas", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		applyText(t, document)
		var job batchv1.Job
		if err := yaml.Unmarshal([]byte(document), &job); err != nil || job.Kind != "Job" {
			continue // no Job: kubectl has taken it as it is
		}
		apitest.Eventually(t, func(ctx context.Context) error {
			all, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			if err == nil && !slices.ContainsFunc(all.Items, func(w v1beta2.Workload) bool { return nameOf(&w) == "job-"+job.Name }) {
				err = fmt.Errorf("Job %s has no Workload", job.Name)
			}
			return err
		})
	}
}

// applyWithoutJobs applies what an example has besides its Jobs.
func applyWithoutJobs(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "example/quotas", name))
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, document := range strings.Split(string(text), "\n---\n") {
		if !strings.Contains(document, "kind: Job") {
			kept = append(kept, document)
		}
	}
	applyText(t, strings.Join(kept, "\n---\n"))
}

// nameOf is the name of a Workload without the hash at the end of one of a Job.
func nameOf(w *v1beta2.Workload) string {
	if strings.HasPrefix(w.Name, "job-") {
		return w.Name[:strings.LastIndex(w.Name, "-")]
	}
	return w.Name
}

// endsIn compares the Workloads that there are with what is wanted.
func endsIn(ctx context.Context, want map[string]string, counts map[string]int) error {
	all, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	queues, err := batch.KueueV1beta2().ClusterQueues().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range queues.Items {
		if q := &queues.Items[i]; !meta.IsStatusConditionTrue(q.Status.Conditions, v1beta2.ActiveCondition) {
			return fmt.Errorf("ClusterQueue %s is not active: %+v", q.Name, q.Status.Conditions)
		}
	}
	admitted, said := map[string]int{}, map[string]string{}
	for i := range all.Items {
		w := &all.Items[i]
		name := nameOf(w)
		reserved := meta.FindStatusCondition(w.Status.Conditions, v1beta2.QuotaReserved)
		switch {
		case meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Admitted) && w.Status.Admission != nil:
			admitted[w.Spec.QueueName]++
			set := w.Status.Admission.PodSetAssignments[0]
			said[name] = fmt.Sprintf("%s %d", set.Flavors["cpu"], *set.Count)
		case reserved != nil:
			said[name] = waitsFor(reserved.Message)
		}
	}
	if counts != nil && !maps.Equal(counts, admitted) {
		return fmt.Errorf("admitted are %v, want %v", admitted, counts)
	}
	for name, text := range want {
		if got := said[name]; got != text && !(strings.HasPrefix(text, waitsFor("")) && strings.HasPrefix(got, waitsFor("")) && strings.HasSuffix(got, text[len(waitsFor("")):])) {
			return fmt.Errorf("%s: %q, want %q", name, got, text)
		}
	}
	if counts == nil && len(said) != len(want) {
		return fmt.Errorf("there are %v, want %v", said, want)
	}
	return nil
}
