package controllers_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newTemplate(namespace, name string, tasks ...batch.TaskSpec) *flowapi.JobTemplate {
	return &flowapi.JobTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: batch.JobSpec{Tasks: tasks}}
}

// flowOf is a flow that waits for others.
func flowOf(name string, targets ...string) flowapi.Flow {
	flow := flowapi.Flow{Name: name}
	if len(targets) > 0 {
		flow.DependsOn = &flowapi.DependsOn{Targets: targets}
	}
	return flow
}

func newFlow(namespace, name string, flows ...flowapi.Flow) *flowapi.JobFlow {
	return &flowapi.JobFlow{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: flowapi.JobFlowSpec{Flows: flows}}
}

// withTemplates makes templates of one pod.
func withTemplates(t *testing.T, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		create(t, newTemplate(namespace, name, task("main", 1)))
	}
}

// awaitFlow waits until the JobFlow is as the condition wants it.
func awaitFlow(t *testing.T, flow *flowapi.JobFlow, condition func(*flowapi.JobFlowStatus) bool) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(flow), flow)
		if err == nil && !condition(&flow.Status) {
			err = fmt.Errorf("the status is %+v", flow.Status)
		}
		return err
	})
}

func awaitFlowPhase(t *testing.T, flow *flowapi.JobFlow, phase flowapi.Phase) {
	t.Helper()
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool { return status.State.Phase == phase })
}

// jobNamesIn returns the names of the Jobs of a namespace, sorted.
func jobNamesIn(ctx context.Context, namespace string) ([]string, error) {
	list := &batch.JobList{}
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// awaitJobs waits until the namespace holds exactly the Jobs of these names.
func awaitJobs(t *testing.T, namespace string, names ...string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		got, err := jobNamesIn(ctx, namespace)
		if err == nil && !slices.Equal(got, names) {
			err = fmt.Errorf("the Jobs are %v, want %v", got, names)
		}
		return err
	})
}

// admit waits for a Job, plays the scheduler for it, and returns it with its pods, which there are so many of.
func admit(t *testing.T, namespace, name string, pods int) (*batch.Job, []*corev1.Pod) {
	t.Helper()
	job := newJob(namespace, name)
	apitest.Eventually(t, func(ctx context.Context) error { return api.Get(ctx, client.ObjectKeyFromObject(job), job) })
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	var own []*corev1.Pod
	apitest.Eventually(t, func(ctx context.Context) error {
		all, err := podsIn(ctx, namespace)
		if err != nil {
			return err
		}
		own = nil
		for _, pod := range all {
			if metav1.IsControlledBy(pod, job) {
				own = append(own, pod)
			}
		}
		if len(own) != pods {
			return fmt.Errorf("Job %s has %d pods, want %d", name, len(own), pods)
		}
		return nil
	})
	slices.SortFunc(own, func(x, y *corev1.Pod) int { return strings.Compare(x.Name, y.Name) })
	return job, own
}

// complete runs a Job of one pod to its end.
func complete(t *testing.T, namespace, name string) {
	t.Helper()
	_, pods := admit(t, namespace, name, 1)
	finish(t, corev1.PodSucceeded, pods...)
}

func TestAFlowMakesEachJobWhenThoseBeforeItAreCompleted(t *testing.T) {
	namespace := namespaceFor(t, "flow")
	withTemplates(t, namespace, "a", "b", "c", "d")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b", "a"), flowOf("c", "a"), flowOf("d", "b", "c"))
	create(t, flow)
	awaitJobs(t, namespace, "f-a")
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return status.State.Phase == flowapi.Pending && status.State.Reason == flowapi.WaitingReason && slices.Equal(status.PendingJobs, []string{"f-a"})
	})
	job := newJob(namespace, "f-a")
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{flowapi.CreatedByJobTemplateKey: namespace + ".a", flowapi.CreatedByJobFlowKey: namespace + ".f"}
	if diff := cmp.Diff(keys, job.Labels) + cmp.Diff(keys, job.Annotations); diff != "" || !metav1.IsControlledBy(job, flow) {
		t.Errorf("owned by %v, labels and annotations (-want +got):\n%s", job.OwnerReferences, diff)
	}
	_, pods := admit(t, namespace, "f-a", 1)
	finish(t, corev1.PodRunning, pods...)
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return status.State.Phase == flowapi.Running && slices.Equal(status.RunningJobs, []string{"f-a"}) &&
			strings.Contains(status.State.Message, "flow b waits for a, which is Running")
	})
	finish(t, corev1.PodSucceeded, pods...)
	awaitJobs(t, namespace, "f-a", "f-b", "f-c")
	complete(t, namespace, "f-b")
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return slices.Equal(status.CompletedJobs, []string{"f-a", "f-b"})
	})
	awaitJobs(t, namespace, "f-a", "f-b", "f-c")
	complete(t, namespace, "f-c")
	complete(t, namespace, "f-d")
	awaitFlowPhase(t, flow, flowapi.Succeed)
	if all := []string{"f-a", "f-b", "f-c", "f-d"}; !slices.Equal(flow.Status.CompletedJobs, all) || len(flow.Status.Conditions) != 4 {
		t.Errorf("the status is %+v, want %v Completed", flow.Status, all)
	}
	a := flow.Status.JobStatusList[0]
	last := a.RunningHistories[len(a.RunningHistories)-1]
	if a.Name != "f-a" || a.State != batch.Completed || a.StartTimestamp.IsZero() || a.EndTimestamp.IsZero() || last.State != batch.Completed ||
		a.RunningHistories[0].State != batch.Pending {
		t.Errorf("of f-a it tells %+v", a)
	}
	awaitEvent(t, flow, flowapi.CreatedReason, "f-d")
	awaitEvent(t, flow, string(flowapi.Succeed), "Running → Succeed")
	if requests := requestsIn(t, namespace); requests[request{"create", "jobs", 201}] != 4 || requests[request{"create", "jobs", 409}] != 0 {
		t.Errorf("the requests are %v, want four creations of Jobs", requests)
	}
}

func TestTheJobsOfAFlowThatDoesNotRetainThemGoWhenAllAreCompleted(t *testing.T) {
	namespace := namespaceFor(t, "delete")
	withTemplates(t, namespace, "a", "b")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b", "a"))
	flow.Spec.JobRetainPolicy = flowapi.Delete
	create(t, flow)
	complete(t, namespace, "f-a")
	awaitJobs(t, namespace, "f-a", "f-b")
	complete(t, namespace, "f-b")
	awaitFlowPhase(t, flow, flowapi.Succeed)
	awaitJobs(t, namespace)
	stays(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(flow), flow)
		if jobs, listErr := jobNamesIn(ctx, namespace); err == nil && (listErr != nil || len(jobs) > 0 || flow.Status.State.Phase != flowapi.Succeed ||
			!slices.Equal(flow.Status.CompletedJobs, []string{"f-a", "f-b"})) {
			err = fmt.Errorf("Jobs %v (%v), status %+v", jobs, listErr, flow.Status)
		}
		return err
	})
}

func TestAFailedJobFailsItsFlow(t *testing.T) {
	namespace := namespaceFor(t, "failed")
	withTemplates(t, namespace, "a", "b", "c")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b"), flowOf("c", "b"))
	create(t, flow)
	_, pods := admit(t, namespace, "f-a", 1)
	finish(t, corev1.PodFailed, pods...)
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return status.State.Phase == flowapi.Failed && status.State.Reason == flowapi.JobFailedReason &&
			strings.HasPrefix(status.State.Message, "Job f-a of flow a is Failed") && slices.Equal(status.FailedJobs, []string{"f-a"})
	})
	awaitEvent(t, flow, string(flowapi.Failed), "f-a")
	// What was begun goes on and is told; nothing is added to it.
	complete(t, namespace, "f-b")
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool { return slices.Equal(status.CompletedJobs, []string{"f-b"}) })
	if flow.Status.State.Phase != flowapi.Failed {
		t.Errorf("the phase is %s", flow.Status.State.Phase)
	}
	awaitJobs(t, namespace, "f-a", "f-b")
}

func TestAFlowThatCannotBeRunIsToldSoAndCorrected(t *testing.T) {
	namespace := namespaceFor(t, "invalid")
	withTemplates(t, namespace, "a", "b", "c")
	invalid := newFlow(namespace, "f", flowOf("a", "c"), flowOf("b", "a"), flowOf("c", "b", "nobody"))
	fine := newFlow(namespace, "fine", flowOf("a"))
	create(t, invalid)
	create(t, fine)
	awaitFlow(t, invalid, func(status *flowapi.JobFlowStatus) bool {
		return status.State.Phase == flowapi.Pending && status.State.Reason == flowapi.InvalidSpecReason
	})
	for _, part := range []string{`spec.flows[2].dependsOn.targets[1]: Not found: "nobody"`, `spec.flows: Invalid value: "a → c → b → a"`} {
		if !strings.Contains(invalid.Status.State.Message, part) {
			t.Errorf("the message %q lacks %q", invalid.Status.State.Message, part)
		}
		awaitEvent(t, invalid, flowapi.InvalidSpecReason, part)
	}
	awaitJobs(t, namespace, "fine-a")
	change(t, invalid, func(flow *flowapi.JobFlow) { flow.Spec.Flows = []flowapi.Flow{flowOf("a"), flowOf("b", "a")} })
	awaitJobs(t, namespace, "f-a", "fine-a")
	awaitFlow(t, invalid, func(status *flowapi.JobFlowStatus) bool { return status.State.Reason == flowapi.WaitingReason })
}

func TestAFlowWaitsForATemplateThatIsNotThere(t *testing.T) {
	namespace := namespaceFor(t, "missing")
	withTemplates(t, namespace, "a")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("typo"))
	create(t, flow)
	awaitJobs(t, namespace, "f-a")
	const sentence = "flow typo: there is no JobTemplate typo in namespace "
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return status.State.Reason == flowapi.JobTemplateNotFoundReason && status.State.Message == sentence+namespace
	})
	awaitEvent(t, flow, flowapi.JobTemplateNotFoundReason, sentence)
	withTemplates(t, namespace, "typo")
	awaitJobs(t, namespace, "f-a", "f-typo")
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool { return status.State.Message == "" })
}

func TestWhatIsMissingIsToldOnceAlsoIfSomethingElseChanges(t *testing.T) {
	namespace := namespaceFor(t, "missing-twice")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b"))
	create(t, flow)
	for _, name := range []string{"a", "b"} {
		awaitEvent(t, flow, flowapi.JobTemplateNotFoundReason, "there is no JobTemplate "+name)
	}
	withTemplates(t, namespace, "a")
	awaitJobs(t, namespace, "f-a")
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return status.State.Message == "flow b: there is no JobTemplate b in namespace "+namespace
	})
	// Events arrive in the order in which they are sent: when this one is there, so are those before it.
	withTemplates(t, namespace, "b")
	awaitJobs(t, namespace, "f-a", "f-b")
	awaitEvent(t, flow, flowapi.CreatedReason, "f-b")
	list := &corev1.EventList{}
	if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	told := 0
	for i := range list.Items {
		if event := &list.Items[i]; strings.Contains(event.Message, "there is no JobTemplate b") {
			told += int(event.Count)
		}
	}
	if told != 1 {
		t.Errorf("it was told %d times that JobTemplate b is not there, want once", told)
	}
}

func patchOf(text string) *flowapi.Patch {
	patch := &flowapi.Patch{}
	patch.JobSpec.Raw = []byte(text)
	return patch
}

func TestAPatchIsMergedIntoTheTemplate(t *testing.T) {
	namespace := namespaceFor(t, "patch")
	template := newTemplate(namespace, "a", task("main", 2))
	template.Spec.Queue, template.Spec.Policies = "research", batch.LifecyclePolicies{{Action: "RestartJob", Event: "PodFailed"}}
	create(t, template)
	withTemplates(t, namespace, "b", "c")
	a, b, c := flowOf("a"), flowOf("b"), flowOf("c")
	a.Patch = patchOf(`{"policies": null, "tasks": [{"name": "main", "replicas": 1, "template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}]}`)
	b.Patch = patchOf(`{"quue": "research"}`)
	c.Patch = patchOf(`{"minAvailable": 9}`)
	flow := newFlow(namespace, "f", a, b, c)
	create(t, flow)
	awaitJobs(t, namespace, "f-a")
	job := newJob(namespace, "f-a")
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	container := job.Spec.Tasks[0].Template.Spec.Containers[0]
	if job.Spec.Queue != "research" || job.Spec.Policies != nil || job.Spec.Tasks[0].Replicas != 1 || container.Image != "other" ||
		container.Resources.Requests.Cpu().Value() != 1 {
		t.Errorf("the Job is %+v", job.Spec)
	}
	awaitEvent(t, flow, flowapi.PatchErrorReason, `flow b: patch.jobSpec: unknown field "quue"`)
	awaitEvent(t, flow, flowapi.FailedCreateReason, "job 'minAvailable' should not be greater than total replicas in tasks: it is 9, and they are 1")
	change(t, flow, func(flow *flowapi.JobFlow) {
		flow.Spec.Flows[1].Patch, flow.Spec.Flows[2].Patch = patchOf(`{"queue": "x"}`), nil
	})
	awaitJobs(t, namespace, "f-a", "f-b", "f-c")
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool { return status.State.Message == "" })
}

func TestAJobOfAnotherOwnerUnderTheNameIsLeftAlone(t *testing.T) {
	namespace := namespaceFor(t, "foreign")
	withTemplates(t, namespace, "a", "b")
	create(t, newJob(namespace, "f-a", task("main", 1)))
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b"))
	create(t, flow)
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return status.State.Reason == flowapi.FailedCreateReason && slices.Equal(status.PendingJobs, []string{"f-b"}) &&
			status.State.Message == "flow a: there is already a Job "+namespace+"/f-a, without an owner"
	})
}

// A Job whose time to live is over is gone, and was Completed all the same.
func TestAJobThatWasCompletedAndWentIsNotMadeAgain(t *testing.T) {
	namespace := namespaceFor(t, "gone")
	template, atOnce := newTemplate(namespace, "a", task("main", 1)), int32(0)
	template.Spec.TTLSecondsAfterFinished = &atOnce
	create(t, template)
	withTemplates(t, namespace, "b")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b", "a"))
	create(t, flow)
	complete(t, namespace, "f-a")
	awaitJobs(t, namespace, "f-b")
	awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool {
		return slices.Equal(status.CompletedJobs, []string{"f-a"}) && slices.Equal(status.PendingJobs, []string{"f-b"})
	})
	complete(t, namespace, "f-b")
	awaitFlowPhase(t, flow, flowapi.Succeed)
	if requests := requestsIn(t, namespace); requests[request{"create", "jobs", 201}] != 2 {
		t.Errorf("the requests are %v, want two creations of Jobs", requests)
	}
}

func TestAFlowThatIsDeletedTakesItsJobsAlong(t *testing.T) {
	namespace := namespaceFor(t, "deleted")
	withTemplates(t, namespace, "a", "b")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b"))
	flow.Finalizers = []string{"hekla.sh/test"}
	create(t, flow)
	awaitJobs(t, namespace, "f-a", "f-b")
	if err := api.Delete(apitest.Context(t), flow, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	awaitFlowPhase(t, flow, flowapi.Terminating)
	awaitJobs(t, namespace)
	change(t, flow, func(flow *flowapi.JobFlow) {
		flow.Finalizers = slices.DeleteFunc(flow.Finalizers, func(f string) bool { return f == "hekla.sh/test" })
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(flow), flow); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there (%v)", err)
		}
		return nil
	})
}

// listen serves on a port of this machine, which plays the pods, and counts the requests for /ready.
func listen(t *testing.T, handle http.HandlerFunc) (port int) {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

// answer gives pods the address of this machine and lets them run.
func answer(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		changeStatus(t, pod, func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
		})
	}
}

func TestAProbeAsksThePodsOfTheTargetsThatRun(t *testing.T) {
	namespace := namespaceFor(t, "probe")
	create(t, newTemplate(namespace, "servers", task("server", 2), task("helper", 1)))
	withTemplates(t, namespace, "other", "clients")
	var isReady atomic.Bool
	var asked atomic.Int32
	port := listen(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if !isReady.Load() || r.URL.String() != "/ready?all=1" || r.Header.Get("X-Flow") != "f" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	clients := flowOf("clients", "servers", "other")
	clients.DependsOn.Probe = &flowapi.Probe{
		HttpGetList:    []flowapi.HttpGet{{TaskName: "server", Path: "/ready?all=1", Port: port, HTTPHeader: corev1.HTTPHeader{Name: "X-Flow", Value: "f"}}},
		TcpSocketList:  []flowapi.TcpSocket{{TaskName: "server", Port: port}},
		TaskStatusList: []flowapi.TaskStatus{{TaskName: "helper", Phase: "Running"}},
	}
	flow := newFlow(namespace, "f", flowOf("servers"), flowOf("other"), clients)
	create(t, flow)
	says := func(part string) {
		t.Helper()
		awaitFlow(t, flow, func(status *flowapi.JobFlowStatus) bool { return strings.Contains(status.State.Message, part) })
	}
	_, pods := admit(t, namespace, "f-servers", 3) // helper-0, server-0, server-1
	says(fmt.Sprintf("0 of 2 pods of task server answer GET :%d/ready?all=1", port))
	answer(t, pods[1:]...)
	says("(f-servers-server-0: the status is 503)")
	isReady.Store(true)
	says("0 of 1 pods of task helper are Running")
	if got := asked.Load(); got < 3 {
		t.Errorf("the pods were asked %d times", got)
	}
	finish(t, corev1.PodRunning, pods[0])
	// A target of whose tasks the probe says nothing must be Completed.
	says("flow clients waits for other, which is Pending")
	awaitJobs(t, namespace, "f-other", "f-servers")
	complete(t, namespace, "f-other")
	awaitJobs(t, namespace, "f-clients", "f-other", "f-servers")
	before := asked.Load()
	stays(t, func(context.Context) error {
		if now := asked.Load(); now != before {
			return fmt.Errorf("nobody waits any more, and the pods are asked %d times", now-before)
		}
		return nil
	})
}

func TestPodsThatNeverAnswerHoldUpNoOther(t *testing.T) {
	namespace := namespaceFor(t, "silent")
	withTemplates(t, namespace, "a", "b")
	// It accepts and says nothing.
	silent := make(chan struct{})
	port := listen(t, func(http.ResponseWriter, *http.Request) { <-silent })
	t.Cleanup(func() { close(silent) })
	var flows []*flowapi.JobFlow
	for i := range 12 { // more than there are workers
		b := flowOf("b", "a")
		b.DependsOn.Probe = &flowapi.Probe{HttpGetList: []flowapi.HttpGet{{Port: port}}}
		flows = append(flows, newFlow(namespace, fmt.Sprintf("f%d", i), flowOf("a"), b))
		create(t, flows[i])
		_, pods := admit(t, namespace, fmt.Sprintf("f%d-a", i), 1)
		answer(t, pods...)
	}
	awaitFlow(t, flows[0], func(status *flowapi.JobFlowStatus) bool {
		return strings.Contains(status.State.Message, "Client.Timeout")
	})
	prompt := newFlow(namespace, "prompt", flowOf("a"), flowOf("b", "a"))
	create(t, prompt)
	complete(t, namespace, "prompt-a")
	apitest.Eventually(t, func(ctx context.Context) error {
		return api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prompt-b"}, &batch.Job{})
	})
	// A target that is Completed is asked no more.
	job, pods := admit(t, namespace, "f0-a", 1)
	finish(t, corev1.PodSucceeded, pods...)
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Phase == batch.Completed })
	apitest.Eventually(t, func(ctx context.Context) error {
		return api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "f0-b"}, &batch.Job{})
	})
}

// The controllers are killed at once after the end of a Job is known, and started again.
func TestAFlowSurvivesThatTheControllersAreKilled(t *testing.T) {
	namespace := namespaceFor(t, "killed")
	withTemplates(t, namespace, "a", "b", "c", "d")
	flow := newFlow(namespace, "f", flowOf("a"), flowOf("b", "a"), flowOf("c", "a"), flowOf("d", "b", "c"))
	create(t, flow)
	for _, name := range []string{"f-a", "f-b", "f-c", "f-d"} {
		complete(t, namespace, name)
		if name == "f-b" || name == "f-d" {
			continue // the leases take their time
		}
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		var err error
		if process, err = cluster.Run(context.Background(), program); err != nil {
			t.Fatal(err)
		}
	}
	awaitFlowPhase(t, flow, flowapi.Succeed)
	if requests := requestsIn(t, namespace); requests[request{"create", "jobs", 201}] != 4 {
		t.Errorf("the requests are %v, want four creations of Jobs", requests)
	}
}

func TestATemplateTellsWhichJobsWereMadeFromIt(t *testing.T) {
	namespace := namespaceFor(t, "template")
	withTemplates(t, namespace, "a", "b")
	first, second := newFlow(namespace, "f", flowOf("a"), flowOf("b")), newFlow(namespace, "g", flowOf("a"))
	create(t, first)
	create(t, second)
	template := newTemplate(namespace, "a")
	lists := func(names ...string) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			err := api.Get(ctx, client.ObjectKeyFromObject(template), template)
			if got := template.Status.JobDependsOnList; err == nil && !slices.Equal(got, names) {
				err = fmt.Errorf("it lists %v, want %v", got, names)
			}
			return err
		})
	}
	lists("f-a", "g-a")
	if err := api.Delete(apitest.Context(t), second); err != nil {
		t.Fatal(err)
	}
	lists("f-a")
	change(t, template, func(template *flowapi.JobTemplate) { template.Spec.Tasks[0].Replicas = 5 })
	third := newFlow(namespace, "h", flowOf("a"))
	create(t, third)
	lists("f-a", "h-a")
	job := newJob(namespace, "h-a")
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(job), job); err != nil || job.Spec.Tasks[0].Replicas != 5 {
		t.Errorf("the Job is made from the template as it was: %+v (%v)", job.Spec, err)
	}
}
