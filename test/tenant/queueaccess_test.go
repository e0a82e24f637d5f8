package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"hekla.sh/hekla/test/apitest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const restricted = ", labels: {scheduling.volcano.sh/queue-access: restricted}, annotations: {scheduling.volcano.sh/queue-namespaces: '%s'}"

// everyWayToAQueue are the objects by which a namespace asks for a queue.
func everyWayToAQueue(name string) map[string]string {
	const task = "tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}]"
	return map[string]string{
		"a Job":         gang("way", "queue: "+name),
		"a CronJob":     "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\nmetadata: {name: way}\nspec: {schedule: '@daily', jobTemplate: {spec: {queue: " + name + ", " + task + "}}}",
		"a JobTemplate": "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: way}\nspec: {queue: " + name + ", " + task + "}",
		"a JobFlow":     "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: way}\nspec: {flows: [{name: a}, {name: b, patch: {jobSpec: {queue: " + name + "}}}]}",
		"a PodGroup":    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: way}\nspec: {minMember: 1, queue: " + name + "}",
		"a pod":         "apiVersion: v1\nkind: Pod\nmetadata: {name: way, annotations: {scheduling.volcano.sh/queue-name: " + name + "}}\nspec: {schedulerName: volcano, containers: [{name: a, image: b}]}",
	}
}

func TestAQueueIsUsedByTheNamespacesOfItsListOnly(t *testing.T) {
	openQueue(t, "theirs", fmt.Sprintf(restricted, "team-in, team-else"))
	openQueue(t, "nobodys", ", labels: {scheduling.volcano.sh/queue-access: restricted}")
	openQueue(t, "everybodys", "")
	in, out := tenantOf(t, "team-in"), tenantOf(t, "team-out")
	const refused = "is for some namespaces only, and team-out is not one of them"
	apitest.Eventually(t, func(ctx context.Context) error { // API servers learn of a queue a moment later
		for _, name := range []string{"theirs", "nobodys"} {
			if err := out.Create(ctx, apitest.Object(t, "team-out", everyWayToAQueue(name)["a PodGroup"]), client.DryRunAll); err == nil {
				return fmt.Errorf("queue %s is open", name)
			}
		}
		return nil
	})
	for what, text := range everyWayToAQueue("theirs") {
		expect(t, what+" of the list", in.Create(apitest.Context(t), apitest.Object(t, "team-in", text), client.DryRunAll), "")
		expect(t, what+" of another", out.Create(apitest.Context(t), apitest.Object(t, "team-out", text), client.DryRunAll), "queue theirs "+refused)
		expect(t, what+" of who runs the cluster", admin.Create(apitest.Context(t), apitest.Object(t, "team-out", text), client.DryRunAll), refused)
	}
	for what, text := range everyWayToAQueue("nobodys") {
		expect(t, what+" for nobody's queue", in.Create(apitest.Context(t), apitest.Object(t, "team-in", text), client.DryRunAll), "queue nobodys is for some namespaces only")
	}
	for what, text := range everyWayToAQueue("everybodys") {
		expect(t, what+" for everybody's queue", out.Create(apitest.Context(t), apitest.Object(t, "team-out", text), client.DryRunAll), "")
	}

	// What is there may not move there either, but is edited freely as long as it stays.
	for what, text := range everyWayToAQueue("everybodys") {
		if what == "a pod" || what == "a Job" { // whose queue cannot change
			continue
		}
		made := create(t, out, "team-out", text)
		moved, err := json.Marshal(map[string]any{"spec": apitest.Object(t, "team-out", everyWayToAQueue("theirs")[what]).Object["spec"]})
		if err != nil {
			t.Fatal(err)
		}
		expect(t, what+" that moves", out.Patch(apitest.Context(t), made, client.RawPatch(types.MergePatchType, moved)), "queue theirs "+refused)
	}
	group := create(t, in, "team-in", everyWayToAQueue("theirs")["a PodGroup"])
	patchQueue(t, "theirs", `{"metadata": {"annotations": {"scheduling.volcano.sh/queue-namespaces": "team-else"}}}`)
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := in.Create(ctx, apitest.Object(t, "team-in", everyWayToAQueue("theirs")["a Job"]), client.DryRunAll); err == nil {
			return errors.New("the list still has team-in")
		}
		return nil
	})
	expect(t, "a PodGroup that stays", in.Patch(apitest.Context(t), group, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"minMember": 2}}`))), "")
}

func patchQueue(t *testing.T, name, patch string) {
	t.Helper()
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := admin.Patch(apitest.Context(t), queue, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// The controllers write PodGroups with their own rights. What the tenant says must not become theirs.
func TestNoControllerPutsATenantIntoAQueueThatIsNotTheirs(t *testing.T) {
	openQueue(t, "vault", fmt.Sprintf(restricted, "team-vault"))
	tenant := tenantOf(t, "team-owner")
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := tenant.Create(ctx, apitest.Object(t, "team-owner", everyWayToAQueue("vault")["a PodGroup"]), client.DryRunAll); err == nil {
			return errors.New("queue vault is open")
		}
		return nil
	})
	// A pod takes its queue from its owner, too.
	create(t, tenant, "team-owner", `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: owner, annotations: {scheduling.volcano.sh/queue-name: vault}}
spec:
  replicas: 1
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {schedulerName: volcano, containers: [{name: a, image: b}]}
`)
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := admin.List(ctx, pods, client.InNamespace("team-owner")); err != nil || len(pods.Items) == 0 {
			return errors.Join(err, errors.New("there is no pod yet"))
		}
		return nil
	})
	awaitEvent(t, &pods.Items[0], "queue vault is for some namespaces only, and team-owner is not one of them")
	groups := &scheduling.PodGroupList{}
	if err := admin.List(apitest.Context(t), groups, client.InNamespace("team-owner")); err != nil || len(groups.Items) > 0 {
		t.Errorf("%v: %d PodGroups, the first is %+v", err, len(groups.Items), groups.Items)
	}
}

func TestAListThatNothingReadsIsRefused(t *testing.T) {
	for metadata, want := range map[string]string{
		", labels: {scheduling.volcano.sh/queue-access: Restricted}": `"Restricted" is not known`,
		", annotations: {scheduling.volcano.sh/queue-namespaces: a}": "counts only with the label scheduling.volcano.sh/queue-access: restricted",
		fmt.Sprintf(restricted, "a b"):                               "must be names of namespaces, separated by commas",
		fmt.Sprintf(restricted, "a, b-2 ,c"):                         "",
		", labels: {scheduling.volcano.sh/queue-access: restricted}": "",
	} {
		expect(t, metadata, admin.Create(apitest.Context(t), apitest.Object(t, "", queue("listed", metadata, "{}")), client.DryRunAll), want)
	}
}

// TestOnlyItsJobChangesWhatAPodGroupSays tries it by the tenant, who may not for a moment, and by the controllers.
func TestOnlyItsJobChangesWhatAPodGroupSays(t *testing.T) {
	tenant := tenantOf(t, "team-mover")
	create(t, admin, "", queue("elsewhere", "", "{}"))
	job := create(t, tenant, "team-mover", gang("train", ""))
	group := apitest.Object(t, "team-mover", "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: train-"+string(job.GetUID())+"}")
	apitest.Eventually(t, func(ctx context.Context) error { return tenant.Get(ctx, client.ObjectKeyFromObject(group), group) })
	const refusal = "Job train decides what its PodGroup says; change the Job"
	for patch, want := range map[string]string{
		`{"spec": {"queue": "elsewhere"}}`:                              refusal,
		`{"spec": {"priorityClassName": "system-cluster-critical"}}`:    refusal,
		`{"spec": {"minMember": 1}}`:                                    refusal,
		`{"spec": {"minResources": null}}`:                              refusal,
		`{"metadata": {"ownerReferences": null}}`:                       refusal,
		`{"metadata": {"labels": {"seen": "yes"}}}`:                     "",
		`{"metadata": {"annotations": {"volcano.sh/preemptable": ""}}}`: "",
	} {
		err := tenant.Patch(apitest.Context(t), group.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)), client.DryRunAll)
		expect(t, patch, err, want)
	}
	other := create(t, tenant, "team-mover", everyWayToAQueue("default")["a PodGroup"])
	err := tenant.Patch(apitest.Context(t), other, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"queue": "elsewhere"}}`)))
	expect(t, "a PodGroup of no Job", err, "")
	// The controllers write it when the Job changes.
	err = tenant.Patch(apitest.Context(t), job, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"priorityClassName": "system-cluster-critical"}}`)))
	expect(t, "the Job", err, "")
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}
		if class, _, _ := unstructured.NestedString(group.Object, "spec", "priorityClassName"); class != "system-cluster-critical" {
			return fmt.Errorf("the class is %q", class)
		}
		return nil
	})
}
