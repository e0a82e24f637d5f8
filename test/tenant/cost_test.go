package tenant

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhatAJobRunsStaysWhatItIs asks the policy: the definition has no rules for it, which would cost at each write of
// a status.
func TestWhatAJobRunsStaysWhatItIs(t *testing.T) {
	tenant := tenantOf(t, "changes")
	job := create(t, tenant, "changes", gang("steady", "plugins: {svc: []}"))
	for what, test := range map[string]struct {
		change func(task map[string]any)
		want   string
	}{
		"the image": {func(task map[string]any) {
			containers, _, _ := unstructured.NestedSlice(task, "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = "other"
			_ = unstructured.SetNestedSlice(task, containers, "template", "spec", "containers")
		}, "template, policies, topologyPolicy, dependsOn and partitionPolicy of a task cannot be changed after creation"},
		"the name": {func(task map[string]any) { task["name"] = "other" },
			"tasks cannot be added, removed, renamed or reordered after creation"},
		"policies": {func(task map[string]any) {
			task["policies"] = []any{map[string]any{"event": "PodFailed", "action": "RestartTask"}}
		}, "cannot be changed after creation"},
		"the size": {func(task map[string]any) { task["replicas"], task["minAvailable"] = int64(3), int64(1) }, ""},
	} {
		apitest.Eventually(t, func(ctx context.Context) error {
			stored := job.DeepCopy()
			if err := admin.Get(ctx, client.ObjectKeyFromObject(job), stored); err != nil {
				return err
			}
			tasks, _, _ := unstructured.NestedSlice(stored.Object, "spec", "tasks")
			test.change(tasks[0].(map[string]any))
			_ = unstructured.SetNestedSlice(stored.Object, tasks, "spec", "tasks")
			err := tenant.Update(ctx, stored, client.DryRunAll)
			switch {
			case err != nil && strings.Contains(err.Error(), "the object has been modified"):
				return err // the controller has written its status since
			case err != nil && test.want != "" && !strings.Contains(err.Error(), "'volcano-job-changes'"):
				t.Errorf("%s: somebody else refuses it: %v", what, err)
			}
			expect(t, what, err, test.want)
			return nil
		})
	}
}

// TestWebhookAndDefinitionAgreeOnTasksAndPolicies asks the policy volcano-job-names of each kind that has the spec of a
// Job.
func TestWebhookAndDefinitionAgreeOnTasksAndPolicies(t *testing.T) {
	tenant := tenantOf(t, "unique")
	const task = "replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}"
	const twice = "[{event: PodFailed, action: RestartJob}, {event: PodFailed, action: AbortJob}]"
	for spec, want := range map[string]string{
		"tasks: [{name: a, " + task + "}, {name: b, " + task + "}, {name: a, " + task + "}]": "spec.tasks: duplicated task name a",
		"policies: " + twice + ", tasks: [{" + task + "}]":                                   "only one policy may answer an event",
		"tasks: [{policies: " + twice + ", " + task + "}]":                                   "only one policy may answer an event",
		"policies: [{event: PodFailed, action: RestartJob}, {event: PodEvicted, action: RestartJob}], " +
			"tasks: [{" + task + "}, {policies: [{event: PodFailed, action: RestartTask}, {exitCode: 3, action: RestartJob}], " + task + "}]": "",
		"policies: [{action: RestartJob}], tasks: [{" + task + "}]":                                                   "action RestartJob: either event and exitCode should be specified",
		"policies: [{events: [], action: RestartJob}], tasks: [{" + task + "}]":                                       "either event and exitCode should be specified",
		"policies: [{event: PodFailed, exitCode: 3, action: RestartJob}], tasks: [{" + task + "}]":                    "must not specify event and exitCode simultaneously",
		"policies: [{events: [PodFailed], exitCode: 3, action: RestartJob}], tasks: [{" + task + "}]":                 "must not specify event and exitCode simultaneously",
		"policies: [{exitCode: 0, action: RestartJob}], tasks: [{" + task + "}]":                                      "0 is not a valid error code",
		"tasks: [{" + task + "}, {policies: [{exitCode: 3, action: RestartTask}, {action: AbortJob}], " + task + "}]": "action AbortJob: either event and exitCode",
	} {
		for kind, text := range map[string]string{
			"Job":         "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {%s}",
			"JobTemplate": "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: a}\nspec: {%s}",
			"CronJob":     "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily', jobTemplate: {spec: {%s}}}",
		} {
			err := tenant.Create(apitest.Context(t), apitest.Object(t, "unique", fmt.Sprintf(text, spec)), client.DryRunAll)
			if err != nil && !strings.Contains(err.Error(), "'volcano-job-names'") {
				t.Errorf("%s: somebody else refuses it: %v", kind, err)
			}
			expect(t, kind+" with "+spec, err, want)
		}
	}
}

// TestTheLargestJobFitsIntoTheBudgetOfThePolicies creates a Job of as many tasks and policies as the definition allows
// and changed: a policy that costs more than the API server gives it refuses everything.
func TestTheLargestJobFitsIntoTheBudgetOfThePolicies(t *testing.T) {
	tenant := tenantOf(t, "largest")
	large := copyOfJob(t, "batch.volcano.sh", 256, 64)
	large.SetNamespace("largest")
	tasks := large.Object["spec"].(map[string]any)["tasks"].([]any)
	for _, task := range tasks {
		task.(map[string]any)["replicas"] = int64(0) // nothing is to run
	}
	if err := tenant.Create(apitest.Context(t), large); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), large) })
	err := tenant.Patch(apitest.Context(t), large, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxRetry":5}}`)), client.DryRunAll)
	expect(t, "a change of its spec", err, "")
	tasks = large.Object["spec"].(map[string]any)["tasks"].([]any) // as the API server stored them
	policies := tasks[255].(map[string]any)["policies"].([]any)
	delete(policies[63].(map[string]any), "exitCode")
	large.SetResourceVersion("")
	large.SetName("")
	err = tenant.Create(apitest.Context(t), large, client.DryRunAll)
	expect(t, "one whose last policy answers nothing", err, "either event and exitCode should be specified")
}

// BenchmarkWritesOfAJob measures the processor time that an API server takes for a write of a Job: with the rules of
// its definition, and without any, which is how Volcano defines its Jobs. Both are copies in groups of their own, where
// no webhook is asked.
//
//	go test ./test/tenant -run '^$' -bench WritesOfAJob -benchtime 20x
func BenchmarkWritesOfAJob(b *testing.B) {
	ctx := b.Context()
	for _, size := range []struct{ tasks, policies int }{{10, 2}, {100, 2}, {256, 2}, {100, 64}} {
		for _, definition := range []string{"rules", "norules"} {
			defineCopy(b, definition)
			job := copyOfJob(b, definition+".test", size.tasks, size.policies)
			b.Run(fmt.Sprintf("create/%d-tasks-of-%d-policies/%s", size.tasks, size.policies, definition), func(b *testing.B) {
				costs(b, func(int) error { return admin.Create(ctx, job.DeepCopy(), client.DryRunAll) })
			})
			stored := job.DeepCopy()
			stored.SetName(fmt.Sprintf("bench-%d-%d-%d", size.tasks, size.policies, time.Now().UnixNano()))
			if err := admin.Create(ctx, stored); err != nil {
				b.Fatal(err)
			}
			for what, patch := range map[string]func(n int) error{
				"label": func(n int) error {
					return admin.Patch(ctx, stored, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n)))
				},
				"status": func(n int) error {
					return admin.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"running":%d}}`, n)))
				},
			} {
				b.Run(fmt.Sprintf("%s/%d-tasks-of-%d-policies/%s", what, size.tasks, size.policies, definition), func(b *testing.B) { costs(b, patch) })
			}
			if err := admin.Delete(ctx, stored); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// costs measures what requests cost the API server.
func costs(b *testing.B, request func(n int) error) {
	before := processorTime(b)
	for n := range b.N {
		if err := request(n); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((processorTime(b)-before)*1000/float64(b.N), "cpu-ms/op")
}

// processorTime is how many seconds of a processor the API server has taken so far.
func processorTime(b *testing.B) float64 {
	b.Helper()
	clients, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		b.Fatal(err)
	}
	text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	const name = "\nprocess_cpu_seconds_total "
	_, rest, _ := bytes.Cut(text, []byte(name))
	value, _, _ := bytes.Cut(rest, []byte("\n"))
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		b.Fatal(err)
	}
	return seconds
}

const definitionOfJobs = "jobs.batch.volcano.sh"

// defineCopy makes the definition of Jobs once more, in the group rules.test or norules.test.
func defineCopy(b *testing.B, name string) {
	b.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := admin.Get(b.Context(), client.ObjectKey{Name: definitionOfJobs}, definition); err != nil {
		b.Fatal(err)
	}
	spec := definition.Object["spec"].(map[string]any)
	spec["group"] = name + ".test"
	delete(spec["names"].(map[string]any), "shortNames")
	if name == "norules" {
		dropRules(spec)
	}
	definition.Object = map[string]any{"apiVersion": definition.GetAPIVersion(), "kind": definition.GetKind(),
		"metadata": map[string]any{"name": "jobs." + name + ".test"}, "spec": spec}
	if err := admin.Create(b.Context(), definition); client.IgnoreAlreadyExists(err) != nil {
		b.Fatal(err)
	}
	apitest.Eventually(b, func(ctx context.Context) error { // until the copy of the definition serves
		return admin.Create(ctx, copyOfJob(b, name+".test", 1, 0), client.DryRunAll)
	})
}

func dropRules(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		delete(schema, "x-kubernetes-validations")
		for _, child := range schema {
			dropRules(child)
		}
	case []any:
		for _, child := range schema {
			dropRules(child)
		}
	}
}

// copyOfJob is a Job of so many tasks, each with so many policies.
func copyOfJob(b testing.TB, group string, tasks, policies int) *unstructured.Unstructured {
	b.Helper()
	var ofTask []any
	for n := range policies {
		ofTask = append(ofTask, map[string]any{"exitCode": int64(n + 1), "action": "RestartTask"})
	}
	list := make([]any, tasks)
	for i := range list {
		resources := map[string]any{"cpu": "100m", "memory": "1Gi"}
		list[i] = map[string]any{"name": fmt.Sprintf("task-%d", i), "replicas": int64(1), "policies": ofTask,
			"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": "busybox", "command": []any{"sh", "-c", "sleep 100"},
					"env":          []any{map[string]any{"name": "A", "value": "b"}, map[string]any{"name": "B", "value": "c"}},
					"resources":    map[string]any{"requests": resources, "limits": resources},
					"volumeMounts": []any{map[string]any{"name": "v", "mountPath": "/v"}}}},
				"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}}}}}
	}
	return (&unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1alpha1", "kind": "Job",
		"metadata": map[string]any{"namespace": "default", "generateName": "bench-"}, "spec": map[string]any{"tasks": list}}}).DeepCopy()
}
