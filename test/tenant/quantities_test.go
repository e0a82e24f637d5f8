package tenant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// costly is a quantity that takes hours and gigabytes to be parsed.
const costly = "1e-2000000000"

// atOnce is how long an answer may take that costs nothing. API servers give a webhook ten seconds at most.
const atOnce = 10 * time.Second

// withQuantity are objects of each kind that a tenant writes quantities in, with %s for one.
var withQuantity = map[string]string{
	"Job": "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: costly}\n" +
		"spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: %q}}}]}}}]}",
	"JobTemplate": "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: costly}\n" +
		"spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: %q}}}]}}}]}",
	"CronJob": "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\nmetadata: {name: costly}\nspec: {schedule: '@daily', jobTemplate: " +
		"{spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: %q}}}]}}}]}}}",
	"PodGroup": "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: costly}\nspec: {minMember: 1, minResources: {cpu: %q}}",
}

func TestNoQuantityIsParsedThatCostsTooMuch(t *testing.T) {
	tenant := tenantOf(t, "quantities")
	for kind, text := range withQuantity {
		for _, quantity := range []string{costly, "1e2000000000", "12345678901234567890e2000000000", strings.Repeat("1", 100_000)} {
			begin := time.Now()
			err := tenant.Create(apitest.Context(t), apitest.Object(t, "quantities", fmt.Sprintf(text, quantity)))
			if !apierrors.IsInvalid(err) || time.Since(begin) > atOnce {
				t.Errorf("%s with %.30s: answered after %s: %.300v", kind, quantity, time.Since(begin), err)
			}
		}
	}
}

func TestAnAnnotationWithAQuantityThatCostsTooMuchIsToldAndNotParsed(t *testing.T) {
	tenant := tenantOf(t, "annotations")
	pod := create(t, tenant, "annotations", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {"+
		scheduling.GroupMinResourcesAnnotationKey+": '{\"cpu\": \""+costly+"\"}'}}\n"+
		"spec: {schedulerName: volcano, containers: [{name: a, image: b}]}")
	awaitEvent(t, pod, `cpu: Invalid value: "1e-2000000000"`)
	apitest.Eventually(t, func(ctx context.Context) error {
		stored := &corev1.Pod{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(pod), stored); err != nil {
			return err
		}
		if stored.Annotations[scheduling.KubeGroupNameAnnotationKey] == "" {
			return errors.New("the pod has no PodGroup")
		}
		return nil
	})
}

func TestAnObjectStoredBeforeItsSchemaStopsNoOthers(t *testing.T) {
	tenant := tenantOf(t, "before")
	stored := apitest.Object(t, "before", fmt.Sprintf(withQuantity["JobTemplate"], costly))
	withoutBounds(t, []string{"jobtemplates.flow.volcano.sh", "podgroups.scheduling.volcano.sh", "jobs.batch.volcano.sh"}, func() {
		apitest.Eventually(t, func(ctx context.Context) error { return tenant.Create(ctx, stored) })
		t.Cleanup(func() { _ = admin.Delete(context.Background(), stored) })
		// For other kinds the API server asks a webhook, which must accept whatever an API server accepts, and what any
		// client sends that reaches it.
		for _, kind := range []string{"PodGroup", "Job"} {
			begin := time.Now()
			apitest.Eventually(t, func(ctx context.Context) error {
				err := tenant.Create(ctx, apitest.Object(t, "before", fmt.Sprintf(withQuantity[kind], costly)))
				if err == nil || !strings.Contains(err.Error(), "denied the request: the object cannot be read: spec.") {
					return fmt.Errorf("%s: answered after %s: %w", kind, time.Since(begin), err)
				}
				return nil
			})
		}
	})
	awaitEvent(t, stored, "spec.tasks[0].template.spec.containers[0].resources.requests.cpu: Invalid value: \"1e-2000000000\"")
	othersAreServed(t, tenant, "one")
	// A process that begins lists what is there.
	health, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	second := again
	second.Name = "volcano-controllers-again"
	second.ReadyURL = fmt.Sprintf("http://127.0.0.1:%d/readyz", health)
	second.Args = append(second.Args[:len(second.Args)-1:len(second.Args)-1], fmt.Sprintf("--healthz-address=127.0.0.1:%d", health))
	process, err := cluster.Run(apitest.Context(t), second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Kill() })
	othersAreServed(t, tenant, "two")
}

// othersAreServed waits until the controllers make the Job of a JobFlow, and the PodGroup of the Job.
func othersAreServed(t *testing.T, tenant client.Client, name string) {
	t.Helper()
	create(t, tenant, "before", fmt.Sprintf("apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: %s}\n"+
		"spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}]}", name))
	create(t, tenant, "before", fmt.Sprintf("apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: %[1]s}\nspec: {flows: [{name: %[1]s}]}", name))
	apitest.Eventually(t, func(ctx context.Context) error {
		template := &flow.JobTemplate{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: "before", Name: name}, template); err != nil {
			return err
		}
		if len(template.Status.JobDependsOnList) == 0 {
			return fmt.Errorf("JobTemplate %s has no Job", name)
		}
		groups := &scheduling.PodGroupList{}
		if err := admin.List(ctx, groups, client.InNamespace("before")); err != nil {
			return err
		}
		for i := range groups.Items {
			if strings.HasPrefix(groups.Items[i].Name, name+"-"+name) {
				return nil
			}
		}
		return fmt.Errorf("the Job of JobFlow %s has no PodGroup", name)
	})
}

// withoutBounds does something while definitions are as they were before they had bounds.
func withoutBounds(t *testing.T, definitions []string, do func()) {
	t.Helper()
	for _, name := range definitions {
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		if err := admin.Get(apitest.Context(t), client.ObjectKey{Name: name}, definition); err != nil {
			t.Fatal(err)
		}
		unbounded := definition.DeepCopy()
		dropBounds(unbounded.Object)
		if err := admin.Update(apitest.Context(t), unbounded); err != nil {
			t.Fatal(err)
		}
		defer func() {
			definition.SetResourceVersion("")
			definition.SetManagedFields(nil)
			patch, err := definition.MarshalJSON()
			if err == nil {
				err = admin.Patch(apitest.Context(t), unbounded, client.RawPatch("application/merge-patch+json", patch))
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	do()
}

// dropBounds removes the bounds of quantities wherever schemas nest.
func dropBounds(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		if schema["x-kubernetes-int-or-string"] == true {
			delete(schema, "pattern")
			delete(schema, "maxLength")
		}
		for _, child := range schema {
			dropBounds(child)
		}
	case []any:
		for _, child := range schema {
			dropBounds(child)
		}
	}
}
