package admission

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
)

// What `hekla import yunikorn` prints of a queues.yaml with every key, as a test of cmd/hekla checks.
const imported = "../../cmd/hekla/testdata/yunikorn/printed"

func kubectl(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(apitest.Context(t), cluster.Kubectl(), append(arguments, "-f", imported)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.KubeconfigPath())
	output, err := command.CombinedOutput()
	return string(output), err
}

// importedObjects returns the objects, and removes them after the test.
func importedObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := localcluster.ReadManifests(os.DirFS(imported))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, object := range slices.Backward(objects) {
			_ = api.Delete(context.Background(), object) // the root stays
		}
	})
	return objects
}

func TestQueuesImportedFromYuniKornAreStoredAsTheyAre(t *testing.T) {
	haveBuiltInQueues(t)
	create(t, "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap, namespace: volcano-system}\ndata: {other: kept}")
	objects := importedObjects(t)

	// A trial refuses what is below a Queue that is not stored, and nothing else.
	output, err := kubectl(t, "apply", "--dry-run=server")
	refused := 0
	for _, object := range objects {
		if parent, _, _ := unstructured.NestedString(object.Object, "spec", "parent"); parent != "" && parent != "root" {
			refused++
			if want := "failed to get parent queue of queue " + object.GetName(); !strings.Contains(output, want) {
				t.Errorf("the trial does not say %q", want)
			}
		}
	}
	if refused != 4 || strings.Count(output, "Error from server") != refused || err == nil {
		t.Errorf("%d Queues are below others; %v\n%s", refused, err, output)
	}
	for _, arguments := range [][]string{{"apply"}, {"apply", "--dry-run=server"}, {"diff"}} {
		if output, err := kubectl(t, arguments...); err != nil {
			t.Errorf("kubectl %v: %v\n%s", arguments, err, output)
		}
	}
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: system, Name: "volcano-scheduler-configmap"}
	if err := api.Get(apitest.Context(t), key, config); err != nil || config.Data["other"] != "kept" ||
		!strings.Contains(config.Data["volcano-scheduler.conf"], "guaranteed-shares") {
		t.Errorf("the configuration is %v, %v", config.Data, err)
	}
}
