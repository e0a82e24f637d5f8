package localcluster

import (
	"strings"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// The custom object stands before its definition, and that before its namespace.
const manifests = `# A comment alone is an empty document.
---
apiVersion: test.hekla.sh/v1
kind: Widget
metadata: {name: first, namespace: manifests}
spec: {size: 3}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: manifests}
data: {key: shipped}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.hekla.sh}
spec:
  group: test.hekla.sh
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: manifests}
`

func TestManifestsAreAppliedInTheOrderTheyNeed(t *testing.T) {
	ctx := testContext(t)
	objects, err := ReadManifests(fstest.MapFS{"a/all.yaml": {Data: []byte(manifests)}, "a/README.md": {Data: []byte("no: manifest")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, shared)
	t.Cleanup(func() { _ = client.CoreV1().Namespaces().Delete(testContext(t), "manifests", metav1.DeleteOptions{}) })
	widgets := dynamic.NewForConfigOrDie(shared.Config()).Resource(schema.GroupVersionResource{Group: "test.hekla.sh", Version: "v1", Resource: "widgets"})
	if _, err := widgets.Namespace("manifests").Get(ctx, "first", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	// What a user has edited survives a second time.
	settings, err := client.CoreV1().ConfigMaps("manifests").Get(ctx, "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	settings.Data["key"] = "edited"
	if _, err := client.CoreV1().ConfigMaps("manifests").Update(ctx, settings, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := shared.Apply(ctx, objects); err != nil {
		t.Fatal(err)
	}
	settings, err = client.CoreV1().ConfigMaps("manifests").Get(ctx, "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if settings.Data["key"] != "edited" {
		t.Errorf("the ConfigMap has key %q, want edited", settings.Data["key"])
	}
}

func TestAnObjectTheServerRefusesIsNamed(t *testing.T) {
	objects, err := ReadManifests(fstest.MapFS{"bad.yaml": {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: refused}\nspec: {ports: [{port: 0}]}\n")}})
	if err != nil {
		t.Fatal(err)
	}
	err = shared.Apply(testContext(t), objects)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Service refused") {
		t.Errorf("got %v, want an error that names the Service", err)
	}
}

func TestADocumentThatIsNoObjectIsRefusedWithItsPlace(t *testing.T) {
	for name, document := range map[string]string{
		"no kind":    "apiVersion: v1\nmetadata: {name: x}\n",
		"no name":    "apiVersion: v1\nkind: Pod\n",
		"not a map":  "- 1\n- 2\n",
		"not a YAML": "a: [\n",
	} {
		t.Run(name, func(t *testing.T) {
			good := "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\n---\n"
			_, err := ReadManifests(fstest.MapFS{"dir/file.yaml": {Data: []byte(good + document)}})
			if err == nil || !strings.Contains(err.Error(), "dir/file.yaml, document 2") {
				t.Errorf("got %v, want an error at dir/file.yaml, document 2", err)
			}
		})
	}
}

// TestWhatAPolicyCannotJudgeYetIsAppliedAgain uses the errors that an API server of Kubernetes 1.36 gives them.
func TestWhatAPolicyCannotJudgeYetIsAppliedAgain(t *testing.T) {
	refusal := func(message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid,
			Message: "jobs.batch.volcano.sh \"j\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: " + message}}
	}
	if !isNotYetJudged(refusal("failed to configure binding: paramKind kind `&ParamKind{...}` not yet synced to use for admission")) {
		t.Error("an object that the policy cannot judge yet is not applied again")
	}
	if isNotYetJudged(refusal("queue q is closed")) || isNotYetJudged(nil) {
		t.Error("an object is applied again that was judged")
	}
}
