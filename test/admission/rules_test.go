package admission

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hekla.sh/hekla/test/apitest"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func haveBuiltInQueues(t *testing.T) {
	t.Helper()
	for _, name := range []string{"root", "default"} {
		if err := api.Create(apitest.Context(t), apitest.Object(t, "", queue(name, "{}"))); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyWhatUsersWriteOfOursWaitsForAnAnswer(t *testing.T) {
	const fail, ignore = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	want := map[string]admissionregistrationv1.FailurePolicyType{
		"mutatejob.volcano.sh": fail, "validatejob.volcano.sh": fail, "mutatequeue.volcano.sh": fail, "validatequeue.volcano.sh": fail,
		"validatecronjob.volcano.sh": fail, "validatejobflow.volcano.sh": fail,
		"mutatepodgroup.volcano.sh": ignore, "validatepodgroup.volcano.sh": ignore, "mutatepod.volcano.sh": ignore, "validatepod.volcano.sh": ignore,
		"validatehypernodes.volcano.sh":  ignore,
		"validateclusterqueues.hekla.sh": ignore, "validatecohorts.hekla.sh": ignore, "validatelocalqueues.hekla.sh": ignore,
		"validateresourceflavors.hekla.sh": ignore, "validateworkloads.hekla.sh": ignore,
		"mutatequeuedjob.hekla.sh": ignore, "mutatequeuedpod.hekla.sh": ignore,
		"validatequeuedjobs.hekla.sh": ignore, "validatequeuedpods.hekla.sh": ignore, "validatequeuedvolcanojobs.hekla.sh": ignore,
	}
	if diff := cmp.Diff(want, registered(t)); diff != "" {
		t.Errorf("registered (-want +got):\n%s", diff)
	}
}

func TestAJobIsWrittenDownAsItIsMeant(t *testing.T) {
	haveBuiltInQueues(t)
	namespace := namespaceFor(t, "defaults", nil)
	create(t, namespace, gang("sim", "plugins: {mpi: [--master=default0, --worker=default0]}\n  maxRetry: 0"))
	stored := &batch.Job{}
	name := client.ObjectKey{Namespace: namespace, Name: "sim"}
	if err := api.Get(apitest.Context(t), name, stored); err != nil {
		t.Fatal(err)
	}
	task := &stored.Spec.Tasks[0]
	if stored.Spec.Queue != "default" || stored.Spec.SchedulerName != "mine" || stored.Spec.MaxRetry != 3 || stored.Spec.MinAvailable != 3 {
		t.Errorf("the Job is stored as %+v", stored.Spec)
	}
	if task.Name != "default0" || task.MaxRetry != 3 || task.MinAvailable == nil || *task.MinAvailable != 3 {
		t.Errorf("the task is stored as %+v", task)
	}
	for _, plugin := range []string{"mpi", "svc", "ssh"} {
		if _, is := stored.Spec.Plugins[plugin]; !is {
			t.Errorf("the Job has not the plugin %s", plugin)
		}
	}
	// What a client does that only knows its own manifest: it replaces the list of tasks with one that has no names.
	patch := `{"spec": {"plugins": {"svc": null, "ssh": null}, "tasks": [{"replicas": 4, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}]}}`
	if err := api.Patch(apitest.Context(t), stored, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if stored.Spec.Tasks[0].Name != "default0" || stored.Spec.Tasks[0].Replicas != 4 || len(stored.Spec.Plugins) != 3 {
		t.Errorf("after the manifest was applied again the Job is %+v", stored.Spec)
	}
}

func TestWhatCouldNeverRunIsNotAdmitted(t *testing.T) {
	haveBuiltInQueues(t)
	namespace := namespaceFor(t, "refused", map[string]string{scheduling.QueueNameAnnotationKey: "research"})
	create(t, "", queue("company", "{capability: {cpu: 10}, deserved: {cpu: 8}}"))
	create(t, "", queue("research", "{parent: company, deserved: {cpu: 5}}"))
	closed := create(t, "", queue("shut", "{}"))
	setState(t, closed.GetName(), scheduling.QueueStateClosed)
	for _, test := range []struct{ name, text, want string }{
		{"a Job that can run", gang("a", ""), ""},
		{"a queue that is not there", gang("a", "queue: nowhere"),
			`admission webhook "validatejob.volcano.sh" denied the request: Job.batch.volcano.sh "a" is invalid: spec.queue: Not found: "nowhere"`},
		{"a closed queue", gang("a", "queue: shut"), "spec.queue: Forbidden: can only submit job to queue with state `Open`, queue `shut` status is `Closed`: it takes no jobs"},
		{"a queue with queues below it", gang("a", "queue: company"), "spec.queue: Forbidden: can only submit job to leaf queue, queue `company` has 1 child queues: queue company has queues below it, such as research"},
		{"the queue root", gang("a", "queue: root"), "spec.queue: Forbidden: can not submit job to root queue: queue root is above all others and takes no jobs itself"},
		{"a volume that nobody mounts", strings.Replace(gang("a", ""), "image: b", "image: b, volumeMounts: [{name: c, mountPath: /c}]", 1),
			`spec.tasks[0].template.spec.containers[0].volumeMounts[0].name: Not found: "c"`},
		{"a plugin that is none", gang("a", "plugins: {dance: []}"), `spec.plugins: Invalid value: "dance": unable to find job plugin: dance`},
		{"a CronJob that never starts", "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\nmetadata: {name: c}\nspec: {schedule: never, jobTemplate: {spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}]}}}",
			`admission webhook "validatecronjob.volcano.sh" denied the request: CronJob.batch.volcano.sh "c" is invalid: spec.schedule: Invalid value: "never"`},
		{"flows that wait for each other", "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f}\nspec: {flows: [{name: a, dependsOn: {targets: [a]}}]}",
			`these flows wait for each other and could never start`},
		{"a PodGroup in a queue that is not there", podGroup("{queue: nowhere}"), `spec.queue: Not found: "nowhere"`},
		{"a queue that asks for too much", queue("greedy", "{parent: company, deserved: {cpu: 4}}"),
			`spec.deserved[cpu]: Invalid value: "4": parent queue company validation failed: sum of children's deserved (cpu 9) exceeds parent's deserved limit (cpu 8): with it the queues below company have 9, and company has only 8`},
		{"a queue below nothing", queue("lost", "{parent: nowhere}"), `spec.parent: Not found: "nowhere"`},
		{"a HyperNode of nothing", "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h}\nspec: {tier: 1}",
			`admission webhook "validatehypernodes.volcano.sh" denied the request: HyperNode.topology.volcano.sh "h" is invalid: spec.members: Required value`},
		{"a budget of nothing", pod("a", `{volcano.sh/jdb-min-available: "0"}`, "schedulerName: volcano"),
			`metadata.annotations[volcano.sh/jdb-min-available]: Invalid value: "0": invalid value <"0"> for volcano.sh/jdb-min-available, it must be a positive integer: a number of pods from 1 up`},
		{"a budget of nothing, elsewhere", pod("a", `{volcano.sh/jdb-min-available: "0"}`, ""), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := namespace
			if strings.Contains(test.text, "kind: Queue") || strings.Contains(test.text, "kind: HyperNode") {
				at = ""
			}
			expect(t, api.Create(apitest.Context(t), apitest.Object(t, at, test.text), client.DryRunAll), test.want)
		})
	}
	group := create(t, namespace, podGroup("{minMember: 1}"))
	if queue := group.Object["spec"].(map[string]any)["queue"]; queue != "research" {
		t.Errorf("a PodGroup without a queue is in %v, want that of its namespace", queue)
	}
	unstructured.RemoveNestedField(group.Object, "spec", "queue") // as the MPI operator does with each update
	if err := api.Update(apitest.Context(t), group); err != nil {
		t.Fatal(err)
	}
	if queue := group.Object["spec"].(map[string]any)["queue"]; queue != "research" {
		t.Errorf("after an update without a queue it is in %v, want that of its namespace", queue)
	}
}

func podGroup(spec string) string {
	return "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: " + spec
}

func setState(t *testing.T, name string, state scheduling.QueueState) {
	t.Helper()
	queue := &scheduling.Queue{}
	queue.Name = name
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status": {"state": %q, "running": 1}}`, state))
	if err := api.Status().Patch(apitest.Context(t), queue, patch); err != nil {
		t.Fatal(err)
	}
}

func TestPodsOfAResourceGroupAreSentToItsNodes(t *testing.T) {
	mine, elsewhere := namespaceFor(t, "gold-mine", nil), namespaceFor(t, "coal-mine", nil)
	for _, test := range []struct {
		namespace, annotations, scheduler string
		selector                          map[string]string
	}{
		{mine, "{}", "volcano", map[string]string{"tier": "gold", "mine": "yes"}},
		{elsewhere, "{volcano.sh/resource-group: silver}", "default-scheduler", map[string]string{"tier": "silver", "mine": "yes"}},
		{elsewhere, "{volcano.sh/resource-group: lead}", "default-scheduler", map[string]string{"mine": "yes"}},
		{elsewhere, "{}", "default-scheduler", map[string]string{"mine": "yes"}},
	} {
		made := &corev1.Pod{}
		text := create(t, test.namespace, pod("a", test.annotations, "nodeSelector: {mine: 'yes'}"))
		if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(text), made); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.selector, made.Spec.NodeSelector); diff != "" || made.Spec.SchedulerName != test.scheduler {
			t.Errorf("%s %s: scheduler %s, nodes (-want +got):\n%s", test.namespace, test.annotations, made.Spec.SchedulerName, diff)
		}
		if hasAffinity := made.Spec.Affinity != nil; hasAffinity != strings.Contains(test.annotations, "silver") {
			t.Errorf("%s %s: affinity %v", test.namespace, test.annotations, made.Spec.Affinity)
		}
		if err := api.Delete(apitest.Context(t), made, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPodsThatAskForItWaitForTheirQueue(t *testing.T) {
	const asks = `{scheduling.volcano.sh/queue-allocation-gate: "true"}`
	const ours = "schedulerName: volcano\n  schedulingGates: "
	namespace := namespaceFor(t, "gated", nil)
	for _, test := range []struct {
		annotations, spec string
		want              []string
	}{
		{asks, "schedulerName: volcano", []string{"scheduling.volcano.sh/queue-allocation-gate"}},
		{asks, ours + "[{name: example.com/quota}]", []string{"example.com/quota", "scheduling.volcano.sh/queue-allocation-gate"}},
		{asks, ours + "[{name: scheduling.volcano.sh/queue-allocation-gate}]", []string{"scheduling.volcano.sh/queue-allocation-gate"}},
		{asks, "schedulerName: default-scheduler", nil},
		{`{scheduling.volcano.sh/queue-allocation-gate: "false"}`, "schedulerName: volcano", nil},
		{"{}", "schedulerName: volcano", nil},
	} {
		made := &corev1.Pod{}
		text := create(t, namespace, pod("a", test.annotations, test.spec))
		if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(text), made); err != nil {
			t.Fatal(err)
		}
		var gates []string
		for _, gate := range made.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		if diff := cmp.Diff(test.want, gates); diff != "" {
			t.Errorf("%s, %s: gates (-want +got):\n%s", test.annotations, test.spec, diff)
		}
		if err := api.Delete(apitest.Context(t), made, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoQueueIsDeletedThatIsNeeded(t *testing.T) {
	haveBuiltInQueues(t)
	create(t, "", queue("parent", "{}"))
	create(t, "", queue("child", "{parent: parent}"))
	for _, name := range []string{"busy", "done"} {
		create(t, "", queue(name, "{}"))
		setState(t, name, scheduling.QueueStateOpen) // as the scheduler wrote it before the last pods went
	}
	namespace := namespaceFor(t, "in-busy", nil)
	create(t, namespace, strings.Replace(podGroup("{queue: busy}"), "name: g", "name: in-busy", 1))
	create(t, namespace, strings.Replace(podGroup("{queue: done}"), "name: g", "name: in-done", 1))
	create(t, namespace, pod("holds", "{scheduling.k8s.io/group-name: in-busy}", "nodeName: somewhere"))
	create(t, namespace, pod("waits", "{scheduling.k8s.io/group-name: in-done}", "schedulerName: volcano"))
	for name, want := range map[string]string{
		"root": "`root` queue can not be deleted", "default": "`default` queue can not be deleted",
		"parent": `queue parent can not be deleted because it has 1 child queues: queue child is below it`,
		"busy":   `queue busy cannot be deleted because it has allocated Pods: 1, such as in-busy/holds`,
		"done":   "",
		"child":  "",
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, api.Delete(apitest.Context(t), apitest.Object(t, "", queue(name, "{}")), client.DryRunAll), want)
		})
	}
}

func TestTheQueueRootIsNotBounded(t *testing.T) {
	haveBuiltInQueues(t)
	for patch, want := range map[string]string{
		`{"spec": {"capability": {"cpu": "1"}}}`:            "spec.capability: root queue's resource attributes (capability, deserved, guarantee) cannot be modified",
		`{"spec": {"deserved": {"cpu": "1"}}}`:              "spec.deserved: root queue's resource attributes (capability, deserved, guarantee) cannot be modified",
		`{"spec": {"guarantee": {"resource": {"cpu": 1}}}}`: "spec.guarantee: root queue's resource attributes (capability, deserved, guarantee) cannot be modified",
		`{"spec": {"weight": 2}}`:                           "",
	} {
		root := apitest.Object(t, "", queue("root", "{}"))
		expect(t, api.Patch(apitest.Context(t), root, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll), want)
	}
}

func TestAnEditOfAnnotationsOfAQueueIsJudged(t *testing.T) {
	haveBuiltInQueues(t)
	for _, key := range properties.Keys() {
		root := apitest.Object(t, "", queue("root", "{}"))
		patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: "fnece"}}}`, key)
		expect(t, api.Patch(apitest.Context(t), root, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll),
			fmt.Sprintf("metadata.annotations[%s]: Invalid value: %q", key, "fnece"))
	}
	other := apitest.Object(t, "", queue("root", "{}"))
	patch := `{"metadata": {"annotations": {"example.com/owner": "fnece"}}}`
	expect(t, api.Patch(apitest.Context(t), other, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll), "")
}

func TestACommandThatNoControllerFollowsIsRefused(t *testing.T) {
	const job, queue = "apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: a, uid: b", "apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, uid: b"
	for _, test := range []struct{ namespace, action, target, want string }{
		{"default", "AbortJob", job, ""},
		{"default", "ResumeJob", job, ""},
		{"default", "RestartPod", job, `action: "RestartPod" is not an action that a Command can ask of a Job; those are AbortJob, RestartJob, TerminateJob, CompleteJob and ResumeJob`},
		{"default", "OpenQueue", job, `action: "OpenQueue" is not an action that a Command can ask of a Job`},
		{"default", "", job, `action: "" is not an action that a Command can ask of a Job`},
		{"default", "OpenQueue", queue + ", name: a", ""},
		{"default", "CloseQueue", queue + ", name: a", ""},
		{"default", "CloseQueue", queue + ", name: root", "target.name: queue root cannot be closed; close the queues below it"},
		{"default", "AbortJob", queue + ", name: a", `action: "AbortJob" is not an action of queues; those are OpenQueue and CloseQueue`},
		{system, "CloseQueue", queue + ", name: a", "metadata.namespace: Commands for queues are followed in namespace default only"},
		{"default", "AbortJob", "apiVersion: batch/v1, kind: Job, name: a, uid: b", "target: must be a Job of batch.volcano.sh/v1alpha1 or a Queue"},
	} {
		text := fmt.Sprintf("apiVersion: bus.volcano.sh/v1alpha1\nkind: Command\nmetadata: {name: a}\naction: %q\ntarget: {%s}", test.action, test.target)
		expect(t, api.Create(apitest.Context(t), apitest.Object(t, test.namespace, text), client.DryRunAll), test.want)
	}
	text := "apiVersion: bus.volcano.sh/v1alpha1\nkind: Command\nmetadata: {name: a}\naction: AbortJob"
	expect(t, api.Create(apitest.Context(t), apitest.Object(t, "default", text), client.DryRunAll), "target: must be a Job")
}

func TestEveryExampleIsAdmitted(t *testing.T) {
	haveBuiltInQueues(t)
	objects, err := localcluster.ReadManifests(manifestsOnly{os.DirFS(filepath.Join("..", "..", "example"))})
	if err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			if err := api.Create(apitest.Context(t), object.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
		}
	}
	for pass := range 2 { // queues go first: the Jobs of a file may use those of another
		for _, object := range objects {
			isQueue := object.GetKind() == "Queue"
			if isQueue != (pass == 0) || !strings.HasSuffix(object.GroupVersionKind().Group, ".volcano.sh") || object.GetName() == "default" {
				continue
			}
			if object.GetNamespace() == "" && !isQueue {
				object.SetNamespace("default")
			}
			object.SetManagedFields(nil)
			options := []client.CreateOption{}
			if !isQueue {
				options = append(options, client.DryRunAll)
			}
			err := api.Create(apitest.Context(t), object, options...)
			if client.IgnoreAlreadyExists(err) != nil {
				t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
			}
			admitted++
			if isQueue {
				t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
			}
		}
	}
	if admitted < 10 {
		t.Fatalf("only %d objects; this test looks in the wrong place", admitted)
	}
}

// Of the stuck jobs, those say so that the webhooks refuse, and no others.
func TestTheExamplesSayWhichJobsAreRefused(t *testing.T) {
	haveBuiltInQueues(t)
	folder := filepath.Join("..", "..", "example", "why")
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := localcluster.ReadManifests(fstest.MapFS{"example.yaml": {Data: text}})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { // queues go first
			return strings.Compare(b.GetKind(), a.GetKind())
		})
		var problem error
		for _, object := range objects {
			object.SetManagedFields(nil)
			switch {
			case object.GetKind() == "Queue":
				if err := api.Create(apitest.Context(t), object); client.IgnoreAlreadyExists(err) != nil {
					t.Fatalf("%s: %v", file, err)
				}
				t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
				state := scheduling.QueueStateOpen
				if filepath.Base(file) == "02-closed-queue.yaml" {
					state = scheduling.QueueStateClosed
				}
				setState(t, object.GetName(), state)
			case object.GroupVersionKind().Group == "batch.volcano.sh":
				object.SetNamespace("default")
				problem = errors.Join(problem, api.Create(apitest.Context(t), object, client.DryRunAll))
			}
		}
		if problem != nil {
			refused++
		}
		if says := strings.Contains(string(text), "webhooks refuse"); says != (problem != nil) {
			t.Errorf("%s says that the webhooks refuse its job: %t; they say %v", file, says, problem)
		}
	}
	if refused != 2 {
		t.Errorf("%d jobs are refused, want two", refused)
	}
}

// manifestsOnly is the examples without the files of YuniKorn and Kueue that are no manifests, and without the Job of a
// missing queue, which is to be refused.
type manifestsOnly struct{ fs.FS }

func (m manifestsOnly) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(m.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return name == "migrate-from-yunikorn" && e.Name() == "queues.yaml" || name == "migrate-from-kueue" && e.Name() == "kueue-configuration.yaml" ||
			name == "why" && e.Name() == "01-missing-queue.yaml"
	}), err
}
