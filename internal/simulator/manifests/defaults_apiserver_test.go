package manifests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/test/apitest"
)

var shared = apitest.Shared{Definitions: "../../../installer/crds", Serve: []string{"resource.k8s.io/v1beta2"}}

func TestMain(m *testing.M) { shared.Main(m) }

// TestObjectsAreReadAsTheAPIServerWouldStoreThem creates hand-written objects of every kind of Kubernetes that a
// simulation knows, and compares what the API server made of each with what was read.
func TestObjectsAreReadAsTheAPIServerWouldStoreThem(t *testing.T) {
	config := shared.Cluster(t).Config()
	text, err := os.ReadFile("testdata/defaults.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read, err := manifests.ReadObjects(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: manifests.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	api = client.NewNamespacedClient(api, metav1.NamespaceDefault)
	if err := api.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != len(read) {
		t.Fatalf("%d objects are read of %d documents", len(read), len(documents))
	}
	for i, document := range documents {
		written := apitest.Object(t, "", document)
		t.Run(written.GetKind()+" "+written.GetName(), func(t *testing.T) {
			apitest.Eventually(t, func(ctx context.Context) error { // until it has seen the classes and ranges by which it goes
				sent := written.DeepCopy()
				if err := api.Create(ctx, sent); err != nil {
					return err
				}
				stored, err := manifests.NewScheme().New(sent.GroupVersionKind())
				if err == nil {
					err = runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, stored)
				}
				if err != nil {
					t.Fatal(err)
				}
				diff := cmp.Diff(comparable(stored), comparable(read[i]), cmpopts.EquateEmpty())
				if diff == "" {
					return nil
				}
				return errors.Join(fmt.Errorf("the API server stores another object (-stored +read):\n%s", diff), api.Delete(ctx, sent, client.GracePeriodSeconds(0)))
			})
		})
	}
}

// comparable returns a copy of an object without what only an API server has, and what nobody goes by here.
func comparable(of runtime.Object) runtime.Object {
	o := of.DeepCopyObject()
	accessor, _ := meta.Accessor(o)
	labels, annotations := accessor.GetLabels(), accessor.GetAnnotations()
	delete(annotations, "kubernetes.io/limit-ranger") // says in words what a LimitRange has changed
	switch o := o.(type) {
	case *corev1.Pod:
		o.Spec.ServiceAccountName, o.Spec.DeprecatedServiceAccount = "", ""
		o.Status.QOSClass = ""
	case *batchv1.Job: // the name of the controller's selector is the UID
		o.Spec.Selector, o.Spec.Template.Labels, labels = nil, nil, nil
	case *policyv1.PodDisruptionBudget:
		o.Status = policyv1.PodDisruptionBudgetStatus{}
	case *corev1.Namespace:
		o.Spec.Finalizers = nil
	case *corev1.PersistentVolume: // its controller does not run here
		o.Status.Phase, o.Status.LastPhaseTransitionTime = "", nil
	}
	*o.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = metav1.ObjectMeta{Name: accessor.GetName(), Labels: labels, Annotations: annotations}
	return o
}
