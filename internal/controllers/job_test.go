package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}},
	}
}

func task(name string, replicas int32) batch.TaskSpec {
	return batch.TaskSpec{Name: name, Replicas: replicas, Template: corev1.PodTemplateSpec{Spec: podSpec()}}
}

func newJob(namespace, name string, tasks ...batch.TaskSpec) *batch.Job {
	return &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: batch.JobSpec{Tasks: tasks}}
}

func podGroupOf(job *batch.Job) *scheduling.PodGroup {
	return &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-" + string(job.UID)}}
}

// setPhase plays the scheduler.
func setPhase(t *testing.T, group *scheduling.PodGroup, phase scheduling.PodGroupPhase, conditions ...scheduling.PodGroupCondition) {
	t.Helper()
	changeStatus(t, group, func(group *scheduling.PodGroup) {
		group.Status.Phase, group.Status.Conditions = phase, conditions
	})
}

// podsIn returns the pods of a namespace by name.
func podsIn(ctx context.Context, namespace string) (map[string]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, nil
}

// awaitPods waits until the namespace holds exactly the pods of these names.
func awaitPods(t *testing.T, namespace string, names ...string) map[string]*corev1.Pod {
	t.Helper()
	slices.Sort(names)
	var pods map[string]*corev1.Pod
	apitest.Eventually(t, func(ctx context.Context) (err error) {
		pods, err = podsIn(ctx, namespace)
		if got := slices.Sorted(maps.Keys(pods)); err == nil && !slices.Equal(got, names) {
			err = fmt.Errorf("the pods are %v, want %v", got, names)
		}
		return err
	})
	return pods
}

// finish plays the kubelets: it moves the pods into a phase.
func finish(t *testing.T, phase corev1.PodPhase, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		changeStatus(t, pod, func(pod *corev1.Pod) { pod.Status.Phase = phase })
	}
}

// awaitJob waits until the Job is as the condition wants it.
func awaitJob(t *testing.T, job *batch.Job, condition func(*batch.JobStatus) bool) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(job), job)
		if err == nil && !condition(&job.Status) {
			err = fmt.Errorf("the status is %+v", job.Status)
		}
		return err
	})
}

// awaitEvent waits for an Event on the object, as kubectl lists them and sorts them by their times.
func awaitEvent(t *testing.T, object client.Object, reason, part string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		list := &corev1.EventList{}
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		var seen []string
		for _, event := range list.Items {
			if event.InvolvedObject.UID != object.GetUID() {
				continue
			}
			if event.FirstTimestamp.IsZero() || event.LastTimestamp.IsZero() || event.Count == 0 {
				t.Errorf("Event %s has no times: %+v", event.Reason, event)
			}
			if event.Reason == reason && strings.Contains(event.Message, part) {
				return nil
			}
			seen = append(seen, event.Reason+": "+event.Message)
		}
		return fmt.Errorf("no event %s with %q; there are %q", reason, part, seen)
	})
}

// stays checks for a while that a condition holds.
func stays(t *testing.T, condition func(context.Context) error) {
	t.Helper()
	const whileMillis = 500
	for deadline := time.Now().Add(whileMillis * time.Millisecond); time.Now().Before(deadline); time.Sleep(poll) {
		if err := condition(apitest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAGangGoesFromSubmissionToCompletion(t *testing.T) {
	namespace := namespaceFor(t, "gang")
	job := newJob(namespace, "sim", task("ps", 1), task("worker", 2))
	job.Annotations = map[string]string{scheduling.PreemptableKey: "true"}
	create(t, job)

	group := podGroupOf(job)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Pending && status.MinAvailable == 3 && status.State.Reason == "PodGroupPending"
	})
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(group), group); err != nil {
		t.Fatal(err)
	}
	if group.Spec.MinMember != 3 || group.Spec.Queue != "default" || group.Spec.MinResources.Cpu().Value() != 3 ||
		!maps.Equal(group.Spec.MinTaskMember, map[string]int32{"ps": 1, "worker": 2}) {
		t.Errorf("the PodGroup is %+v", group.Spec)
	}

	const why = "queue default: 3 cpu asked for, 2 free"
	setPhase(t, group, scheduling.PodGroupPending, scheduling.PodGroupCondition{
		Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: "NotEnoughResources", Message: why,
		LastTransitionTime: metav1.Now(),
	})
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Reason == "NotEnoughResources" && status.State.Message == why
	})
	stays(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if len(pods) > 0 {
			err = fmt.Errorf("pods were made before the PodGroup was let in: %v", slices.Collect(maps.Keys(pods)))
		}
		return err
	})

	setPhase(t, group, scheduling.PodGroupInqueue)
	pods := awaitPods(t, namespace, "sim-ps-0", "sim-worker-0", "sim-worker-1")
	worker := pods["sim-worker-1"]
	if worker.Annotations["scheduling.k8s.io/group-name"] != group.Name || worker.Labels["volcano.sh/task-spec"] != "worker" ||
		worker.Annotations[scheduling.PreemptableKey] != "true" || worker.Spec.SchedulerName != "volcano" {
		t.Errorf("the pod is %+v", worker.ObjectMeta)
	}
	finish(t, corev1.PodRunning, slices.Collect(maps.Values(pods))...)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Running && status.Running == 3 && status.State.Message == ""
	})
	finish(t, corev1.PodSucceeded, slices.Collect(maps.Values(pods))...)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Completed && status.Succeeded == 3 && status.RunningDuration != nil &&
			status.TaskStatusCount["worker"].Phase[corev1.PodSucceeded] == 2
	})
	awaitEvent(t, job, "Completed", "3 succeeded")
	awaitPods(t, namespace, "sim-ps-0", "sim-worker-0", "sim-worker-1")
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(group), group); err != nil {
		t.Errorf("the PodGroup of a finished Job is kept, yet: %v", err)
	}

	if err := api.Delete(apitest.Context(t), job); err != nil {
		t.Fatal(err)
	}
	awaitPods(t, namespace) // the garbage collector follows the owner references
}

func TestAGangThatFailsSaysHowFarItCame(t *testing.T) {
	namespace := namespaceFor(t, "failing")
	job := newJob(namespace, "sim", task("a", 2))
	create(t, job)
	group := podGroupOf(job)
	setPhase(t, group, scheduling.PodGroupInqueue)
	pods := awaitPods(t, namespace, "sim-a-0", "sim-a-1")
	finish(t, corev1.PodSucceeded, pods["sim-a-0"])
	finish(t, corev1.PodFailed, pods["sim-a-1"])
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Failed && status.State.Reason == "TaskBelowMinAvailable" &&
			status.State.Message == "task a: 1 of 2 pods succeeded, its minAvailable is 2"
	})
}

func TestReachingMinSuccessEndsTheOthers(t *testing.T) {
	namespace := namespaceFor(t, "minsuccess")
	job := newJob(namespace, "search", task("a", 3))
	one := int32(1)
	job.Spec.MinSuccess = &one
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	pods := awaitPods(t, namespace, "search-a-0", "search-a-1", "search-a-2")
	finish(t, corev1.PodRunning, slices.Collect(maps.Values(pods))...)
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Phase == batch.Running })
	finish(t, corev1.PodSucceeded, pods["search-a-1"])
	awaitPods(t, namespace, "search-a-1")
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Completed && status.Succeeded == 1 && status.Running == 0 && status.Terminating == 0
	})
}

func TestEditingReplicasScalesTheJob(t *testing.T) {
	namespace := namespaceFor(t, "scaling")
	job := newJob(namespace, "sim", task("a", 2))
	create(t, job)
	group := podGroupOf(job)
	setPhase(t, group, scheduling.PodGroupInqueue)
	before := awaitPods(t, namespace, "sim-a-0", "sim-a-1")
	change(t, job, func(job *batch.Job) { job.Spec.Tasks[0].Replicas = 4 })
	awaitPods(t, namespace, "sim-a-0", "sim-a-1", "sim-a-2", "sim-a-3")
	awaitGroup := func(minMember int32) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			err := api.Get(ctx, client.ObjectKeyFromObject(group), group)
			if err == nil && group.Spec.MinMember != minMember {
				err = fmt.Errorf("minMember is %d, want %d", group.Spec.MinMember, minMember)
			}
			return err
		})
	}
	awaitGroup(4)
	change(t, job, func(job *batch.Job) { job.Spec.Tasks[0].Replicas = 1 })
	after := awaitPods(t, namespace, "sim-a-0")
	awaitGroup(1)
	if before["sim-a-0"].UID != after["sim-a-0"].UID {
		t.Error("the pod that stays was replaced")
	}
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Pending == 1 && status.MinAvailable == 1 })
}

func TestADeletedPodIsMadeAgain(t *testing.T) {
	namespace := namespaceFor(t, "replacing")
	job := newJob(namespace, "sim", task("a", 2))
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	pods := awaitPods(t, namespace, "sim-a-0", "sim-a-1")
	finish(t, corev1.PodRunning, slices.Collect(maps.Values(pods))...)
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Phase == batch.Running })
	lost := pods["sim-a-1"].UID
	if err := api.Delete(apitest.Context(t), pods["sim-a-1"]); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if pod := pods["sim-a-1"]; err == nil && (pod == nil || pod.UID == lost) {
			err = fmt.Errorf("sim-a-1 has not come back")
		}
		return err
	})
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Pending && status.Running == 1 && status.Pending == 1
	})
}

func TestARestartInTheMiddleCreatesNothingTwice(t *testing.T) {
	const replicas = 200
	namespace := namespaceFor(t, "restart")
	job := newJob(namespace, "sim", task("a", replicas))
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err == nil && len(pods) < replicas/4 {
			err = fmt.Errorf("%d pods so far", len(pods))
		}
		return err
	})
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	early, err := podsIn(apitest.Context(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("killed with %d of %d pods made", len(early), replicas)
	if process, err = cluster.Run(apitest.Context(t), program); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Pending == replicas })
	stays(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err == nil && len(pods) != replicas {
			err = fmt.Errorf("%d pods, want %d", len(pods), replicas)
		}
		for name, pod := range early {
			if again := pods[name]; err == nil && (again == nil || again.UID != pod.UID) {
				err = fmt.Errorf("%s was made twice", name)
			}
		}
		return err
	})
	// Of requests that were on their way when the process died the log cannot tell how they ended.
	if made := requestsIn(t, namespace)[request{"create", "pods", 201}]; made > replicas {
		t.Errorf("%d pods were created in all, want %d", made, replicas)
	}
}

func TestAGangCostsNoMoreRequestsThanItHasPodsAndNews(t *testing.T) {
	const replicas = 50
	namespace := namespaceFor(t, "thrift")
	job := newJob(namespace, "sim", task("a", replicas))
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Pending == replicas })
	// Whatever else it does, it does to the events of what it has done.
	time.Sleep(time.Second)
	want := map[request]int{
		{"create", "podgroups", 201}:  1,
		{"create", "pods", 201}:       replicas,
		{"patch", "jobs/status", 200}: 1,
	}
	if diff := cmp.Diff(want, requestsIn(t, namespace), cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestFieldsThatAreNotHonouredAreNamed(t *testing.T) {
	namespace := namespaceFor(t, "unhonoured")
	job := newJob(namespace, "sim", task("a", 1), task("b", 1))
	job.Spec.Tasks[1].TopologyPolicy = batch.NumaPolicyRestricted
	create(t, job)
	awaitEvent(t, job, "FieldNotHonoured", "spec.tasks[1].topologyPolicy")
}

func TestAnImpossibleJobIsToldSoAndHoldsUpNoOther(t *testing.T) {
	namespace := namespaceFor(t, "impossible")
	bad := newJob(namespace, strings.Repeat("x", 70), task("a", 1))
	bad.Spec.Queue = namespace
	create(t, bad)
	good := newJob(namespace, "good", task("a", 1))
	create(t, good)
	awaitJob(t, bad, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Pending && status.State.Reason == "InvalidSpec" &&
			strings.Contains(status.State.Message, "metadata.name: Invalid value: \"xxx")
	})
	awaitEvent(t, bad, "InvalidSpec", "metadata.name")
	waits := fmt.Sprintf(`hekla_queue_jobs_without_podgroup{queue=%q,reason="InvalidSpec"}`, bad.Spec.Queue)
	awaitNumber := func(wants bool) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			got, err := numbers(ctx, "queue", bad.Spec.Queue)
			if err == nil && (got[waits] != "") != wants {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
	}
	awaitNumber(true)
	setPhase(t, podGroupOf(good), scheduling.PodGroupInqueue)
	awaitPods(t, namespace, "good-a-0")
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(podGroupOf(bad)), &scheduling.PodGroup{}); err == nil {
		t.Error("the impossible Job has a PodGroup")
	}
	if err := api.Delete(apitest.Context(t), bad); err != nil {
		t.Fatal(err)
	}
	awaitNumber(false)
}

func TestARefusedPodIsToldOnTheJobAndTriedAgain(t *testing.T) {
	namespace := namespaceFor(t, "quota")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "two"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
	}
	create(t, quota)
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if err == nil && quota.Status.Hard == nil {
			err = fmt.Errorf("the quota is not in force")
		}
		return err
	})
	job := newJob(namespace, "sim", task("a", 4))
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.Pending == 2 && status.State.Reason == "FailedCreate" && strings.Contains(status.State.Message, "exceeded quota: two")
	})
	awaitEvent(t, job, "FailedCreate", "exceeded quota: two")
	change(t, quota, func(quota *corev1.ResourceQuota) {
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	})
	awaitPods(t, namespace, "sim-a-0", "sim-a-1", "sim-a-2", "sim-a-3")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Pending == 4 && status.State.Reason == "" })
}

func TestAPodOfAnotherOwnerUnderTheNameIsLeftAlone(t *testing.T) {
	namespace := namespaceFor(t, "taken")
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sim-a-0"}, Spec: podSpec()}
	create(t, foreign)
	job := newJob(namespace, "sim", task("a", 1))
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.Pending == 0 && status.State.Reason == "FailedCreate" &&
			strings.Contains(status.State.Message, "pod "+namespace+"/sim-a-0 exists and has no owner")
	})
	if err := api.Delete(apitest.Context(t), foreign); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Pending == 1 && status.State.Reason == "" })
}

func TestAJobUnderTheNameOfADeletedOneStartsAfresh(t *testing.T) {
	namespace := namespaceFor(t, "again")
	first := newJob(namespace, "sim", task("a", 2))
	create(t, first)
	setPhase(t, podGroupOf(first), scheduling.PodGroupInqueue)
	old := awaitPods(t, namespace, "sim-a-0", "sim-a-1")
	if err := api.Delete(apitest.Context(t), first); err != nil {
		t.Fatal(err)
	}
	second := newJob(namespace, "sim", task("a", 2))
	create(t, second)
	setPhase(t, podGroupOf(second), scheduling.PodGroupInqueue)
	awaitJob(t, second, func(status *batch.JobStatus) bool { return status.Pending == 2 && status.State.Reason == "" })
	for name, pod := range awaitPods(t, namespace, "sim-a-0", "sim-a-1") {
		if pod.UID == old[name].UID || !metav1.IsControlledBy(pod, second) {
			t.Errorf("%s belongs to the first Job", name)
		}
	}
}
