package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
)

// apply applies manifests from a text.
func apply(t *testing.T, text string) (string, error) {
	t.Helper()
	command := exec.Command(cluster.Kubectl(), "apply", "--validate=strict", "-f", "-")
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.KubeconfigPath())
	command.Stdin = strings.NewReader(text)
	output, err := command.CombinedOutput()
	return string(output), err
}

func TestManifestsOfKueueUsersApplyInEitherVersion(t *testing.T) {
	const older = `
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: spelled}
spec:
  cohort: together
  namespaceSelector: {}
  admissionChecks: [budget]
  flavorFungibility: {whenCanBorrow: Borrow}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 9, borrowingLimit: 1}]}]`
	for range 2 { // applying again changes nothing
		if output, err := apply(t, older); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	stored, err := clientset(t).KueueV1beta2().ClusterQueues().Get(t.Context(), "spelled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stored.Generation != 1 || stored.Spec.Cohort != "together" || stored.Spec.CohortName != "" {
		t.Errorf("it is stored in generation %d as %+v", stored.Generation, stored.Spec)
	}
	if q := settings.OfClusterQueue(stored); q.Cohort != "together" || len(q.Checks) != 1 || q.WhenCanBorrow != "MayStopSearch" || q.Problem != "" {
		t.Errorf("it reads as %+v", q)
	}
	both := strings.Replace(older, "cohort: together", "cohort: together\n  cohortName: another", 1)
	if output, err := apply(t, both); err == nil || !strings.Contains(output, "cohort and cohortName are two spellings of one field and must not differ") {
		t.Errorf("two cohorts: %v, %s", err, output)
	}
	if output, err := apply(t, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nmetadata: {name: a}"); err == nil || !strings.Contains(output, "no matches for kind") {
		t.Errorf("a kind that is not served: %v, %s", err, output)
	}
	examples, err := filepath.Glob("../../example/quotas/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("%v: %d examples", err, len(examples))
	}
	for _, example := range examples { // each is for a cluster of its own
		mustKubectl(t, "apply", "--validate=strict", "--dry-run=server", "-f", example)
	}
}

func TestKubectlShowsQuotasAndWorkloads(t *testing.T) {
	if output, err := apply(t, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: shown, namespace: default}
spec: {queueName: user-queue, podSets: [{template: {spec: {containers: [{name: a, image: b}]}}}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: older}
spec: {cohort: together}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: newer}
spec: {cohortName: together}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: shown, namespace: default}
spec: {clusterQueue: newer}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: shown}
value: 7`); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	header := func(arguments ...string) string {
		first, _, _ := strings.Cut(mustKubectl(t, append([]string{"get"}, arguments...)...), "\n")
		return strings.Join(strings.Fields(first), " ")
	}
	for _, test := range []struct{ kind, name, want string }{
		{"cq", "newer", "NAME COHORT PENDING WORKLOADS"},
		{"lq", "shown", "NAME CLUSTERQUEUE PENDING WORKLOADS ADMITTED WORKLOADS"},
		{"kwl", "shown", "NAME QUEUE RESERVED IN ADMITTED FINISHED AGE"},
		{"wpc", "shown", "NAME VALUE"},
	} {
		if diff := cmp.Diff(test.want, header(test.kind, test.name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.kind, diff)
		}
	}
	if got := header("cq", "newer", "-o", "wide"); got != "NAME COHORT STRATEGY PENDING WORKLOADS ADMITTED WORKLOADS" {
		t.Errorf("wide: %s", got)
	}
	for _, name := range []string{"older", "newer"} {
		if row := strings.Fields(mustKubectl(t, "get", "cq", name, "--no-headers")); len(row) < 2 || row[1] != "together" {
			t.Errorf("the row of %s is %q", name, row)
		}
	}
	for _, short := range []string{"co", "rf", "flavor", "flavors", "ac", "workloads.kueue.x-k8s.io", "kueueworkload", "kueueworkloads"} {
		mustKubectl(t, "get", short)
	}
	// The name of a kind comes before a short name of another: these show the Queues of Volcano.
	if output, err := apply(t, "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: shown}}"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, name := range []string{"queue", "queues"} {
		if got := strings.TrimSpace(mustKubectl(t, "get", name, "shown", "-o", "name")); got != "queue.scheduling.volcano.sh/shown" {
			t.Errorf("kubectl get %s shown names %s", name, got)
		}
	}
}
