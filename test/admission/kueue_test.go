package admission

import (
	"context"
	"fmt"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestJobsAndPodsThatNameALocalQueueWait(t *testing.T) {
	namespace := namespaceFor(t, "queued", nil)
	job := func(meta string) *unstructured.Unstructured {
		return apitest.Object(t, namespace, "apiVersion: batch/v1\nkind: Job\nmetadata: {"+meta+"}\n"+
			"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}")
	}
	labelled := job("name: labelled, labels: {kueue.x-k8s.io/queue-name: q}")
	ctx := apitest.Context(t)
	if err := api.Create(ctx, labelled); err != nil {
		t.Fatal(err)
	}
	spec := labelled.Object["spec"].(map[string]any)
	template := spec["template"].(map[string]any)["spec"].(map[string]any)
	if spec["suspend"] != true || template["schedulerName"] != "mine" {
		t.Errorf("the Job is stored as %+v", spec)
	}
	free := job("name: free")
	if err := api.Create(ctx, free); err != nil {
		t.Fatal(err)
	}
	if _, is := free.GetLabels()["kueue.x-k8s.io/queue-name"]; is || free.Object["spec"].(map[string]any)["suspend"] == true {
		t.Errorf("a Job without a queue has the labels %v", free.GetLabels())
	}
	create(t, namespace, "apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: default}\nspec: {clusterQueue: a}")
	// The server learns of the LocalQueue by a watch.
	apitest.Eventually(t, func(ctx context.Context) error {
		later := job("generateName: later-")
		if err := api.Create(ctx, later); err != nil {
			return err
		}
		if later.GetLabels()["kueue.x-k8s.io/queue-name"] != "default" || later.Object["spec"].(map[string]any)["suspend"] != true {
			return fmt.Errorf("a Job without a queue is stored as %+v", later.Object)
		}
		return nil
	})

	pod := apitest.Object(t, namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {kueue.x-k8s.io/queue-name: q}}\nspec: {containers: [{name: a, image: b}]}")
	if err := api.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	if gates, _ := pod.Object["spec"].(map[string]any)["schedulingGates"].([]any); len(gates) != 1 {
		t.Errorf("the pod is stored as %+v", pod.Object["spec"])
	}
}

func TestWhatAJobSetMakesIsQueuedAsPodsOnly(t *testing.T) {
	namespace, ctx := namespaceFor(t, "jobset", nil), apitest.Context(t)
	create(t, namespace, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: default}\nspec: {clusterQueue: a}")
	job := func(meta string) *unstructured.Unstructured {
		o := apitest.Object(t, namespace, "apiVersion: batch/v1\nkind: Job\nmetadata: {"+meta+"}\n"+
			"spec: {suspend: false, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}")
		if err := api.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	const label, ofSet = ", labels: {kueue.x-k8s.io/queue-name: q}", ", ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: set, uid: '1', controller: true}]"
	for name, test := range map[string]struct {
		job    string
		queued bool
	}{
		"labelled":   {"name: labelled" + label, true},
		"set":        {"name: set" + ofSet, false},
		"set-marked": {"name: set-marked" + label + ofSet, false},
	} {
		o := job(test.job)
		if is := o.Object["spec"].(map[string]any)["suspend"] == true; is != test.queued {
			t.Errorf("%s: the Job is suspended: %v", name, is)
		}
		pod := apitest.Object(t, namespace, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s-0%s, ownerReferences: "+
			"[{apiVersion: batch/v1, kind: Job, name: %s, uid: '%s', controller: true}]}\nspec: {containers: [{name: a, image: b}]}", name, label, name, o.GetUID()))
		if err := api.Create(ctx, pod); err != nil {
			t.Fatal(err)
		}
		if gates, _ := pod.Object["spec"].(map[string]any)["schedulingGates"].([]any); (len(gates) == 1) == test.queued {
			t.Errorf("%s: the pod is stored as %+v", name, pod.Object["spec"])
		}
	}
}

func TestObjectsOfKueueThatCannotBeMeantAreNotStored(t *testing.T) {
	namespace := namespaceFor(t, "kueue", nil)
	queue := func(version, spec string) string {
		return "apiVersion: kueue.x-k8s.io/" + version + "\nkind: ClusterQueue\nmetadata: {name: a}\nspec: " + spec
	}
	const group = "resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: %s}]}]}]"
	for _, test := range []struct{ name, text, want string }{
		{"a quota", queue("v1beta2", "{"+fmt.Sprintf(group, "1")+"}"), ""},
		{"a quota below nothing", queue("v1beta2", "{"+fmt.Sprintf(group, "-1")+"}"),
			`admission webhook "validateclusterqueues.hekla.sh" denied the request: ClusterQueue.kueue.x-k8s.io "a" is invalid: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: "-1"`},
		{"one in the older version", queue("v1beta1", "{"+fmt.Sprintf(group, "-1")+"}"), "must be greater than or equal to 0"},
		{"a field that is not served", queue("v1beta2", "{admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}}"), ""},
		{"a cohort below itself", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a}\nspec: {parentName: a}", "a cohort cannot be its own parent"},
		{"a Workload of nothing", "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {name: a, namespace: " + namespace + "}", "spec.podSets: Required value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, api.Create(apitest.Context(t), apitest.Object(t, "", test.text), client.DryRunAll), test.want)
		})
	}
}
