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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// start creates the Job, lets its PodGroup in, and starts its pods, which are to have these names.
func start(t *testing.T, job *batch.Job, names ...string) map[string]*corev1.Pod {
	t.Helper()
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	pods := awaitPods(t, job.Namespace, names...)
	finish(t, corev1.PodRunning, slices.Collect(maps.Values(pods))...)
	awaitPhase(t, job, batch.Running)
	return pods
}

func awaitPhase(t *testing.T, job *batch.Job, phase batch.JobPhase) {
	t.Helper()
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Phase == phase })
}

// command plays vcctl.
func command(t *testing.T, job *batch.Job, action bus.Action) *bus.Command {
	t.Helper()
	issued := &bus.Command{
		ObjectMeta:   metav1.ObjectMeta{Namespace: job.Namespace, GenerateName: job.Name + "-"},
		Action:       string(action),
		TargetObject: metav1.NewControllerRef(job, batch.GroupVersion.WithKind("Job")),
	}
	create(t, issued)
	return issued
}

// awaitReplaced waits until the pods of these names, and no others, are different ones from before.
func awaitReplaced(t *testing.T, namespace string, before map[string]*corev1.Pod, replaced ...string) map[string]*corev1.Pod {
	t.Helper()
	var pods map[string]*corev1.Pod
	apitest.Eventually(t, func(ctx context.Context) (err error) {
		if pods, err = podsIn(ctx, namespace); err != nil {
			return err
		}
		for name, old := range before {
			pod := pods[name]
			if pod == nil || pod.DeletionTimestamp != nil {
				return fmt.Errorf("%s has not come back", name)
			}
			if (pod.UID != old.UID) != slices.Contains(replaced, name) {
				return fmt.Errorf("pod %s was replaced: %t", name, pod.UID != old.UID)
			}
		}
		return nil
	})
	return pods
}

func fail(t *testing.T, pod *corev1.Pod, exitCode int32) {
	t.Helper()
	changeStatus(t, pod, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:  "main",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.Now()}},
		}}
	})
}

func TestASuspendedJobGivesBackItsRoomAndIsResumed(t *testing.T) {
	namespace := namespaceFor(t, "suspend")
	job := newJob(namespace, "sim", task("a", 2))
	before := start(t, job, "sim-a-0", "sim-a-1")
	finish(t, corev1.PodSucceeded, before["sim-a-0"])

	issued := command(t, job, bus.AbortJobAction)
	awaitPhase(t, job, batch.Aborted)
	awaitGone(t, issued)
	awaitPods(t, namespace, "sim-a-0")
	awaitGone(t, podGroupOf(job))
	awaitEvent(t, job, "ExecuteAction", "Start to execute action AbortJob; Command "+issued.Name)
	awaitEvent(t, job, "Aborting", "Command "+issued.Name+": AbortJob")

	awaitGone(t, command(t, job, bus.RestartJobAction))
	awaitEvent(t, job, "CommandIgnored", "RestartJob means nothing to a Job that is Aborted")

	awaitGone(t, command(t, job, bus.ResumeJobAction))
	awaitPhase(t, job, batch.Pending)
	awaitPods(t, namespace) // all is to be done again, but not before the queue lets it
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	awaitReplaced(t, namespace, before, "sim-a-0", "sim-a-1")
	if job.Status.RetryCount != 0 {
		t.Errorf("resuming was charged %d retries", job.Status.RetryCount)
	}
	awaitGone(t, command(t, job, bus.TerminateJobAction))
	awaitPhase(t, job, batch.Terminated)
	awaitPods(t, namespace)
}

func TestCommandsThatCannotBeFollowedAreDropped(t *testing.T) {
	namespace := namespaceFor(t, "void")
	job := newJob(namespace, "sim", task("a", 1))
	create(t, job)
	awaitGone(t, command(t, job, "DanceJob"))
	awaitEvent(t, job, "CommandIgnored", `"DanceJob" is not an action of Jobs`)
	awaitGone(t, command(t, job, bus.RestartTaskAction))
	awaitEvent(t, job, "CommandIgnored", "a Command cannot say which task or pod it means")
	earlier := job.DeepCopy()
	earlier.UID = "another"
	other := command(t, earlier, bus.AbortJobAction)
	// Its owner does not exist, but it is the target that counts.
	awaitGone(t, other)
	gone := newJob(namespace, "gone", task("a", 1))
	awaitGone(t, command(t, gone, bus.AbortJobAction))
	awaitPhase(t, job, batch.Pending)
}

func TestAFailedPodRestartsTheJobUntilItsRetriesAreUsedUp(t *testing.T) {
	namespace := namespaceFor(t, "retry")
	job := newJob(namespace, "sim", task("a", 2))
	job.Spec.MaxRetry = 2
	job.Spec.Policies = batch.LifecyclePolicies{{Event: bus.PodFailedEvent, Action: bus.RestartJobAction}}
	first := start(t, job, "sim-a-0", "sim-a-1")
	fail(t, first["sim-a-1"], 1)
	second := awaitReplaced(t, namespace, first, "sim-a-0", "sim-a-1")
	awaitEvent(t, job, "ExecuteAction", "Start to execute action RestartJob; pod sim-a-1 failed with exit code 1")
	awaitEvent(t, job, "Restarting", "pod sim-a-1 failed with exit code 1: RestartJob")
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.RetryCount == 1 && status.Version == 1 && status.State.Phase == batch.Pending
	})
	finish(t, corev1.PodRunning, second["sim-a-1"])
	fail(t, second["sim-a-0"], 1)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Failed && status.State.Reason == "MaxRetryReached" && status.RetryCount == 2 &&
			status.State.Message == "restarted 2 times, maxRetry is 2"
	})
	// What failed last stays for its logs.
	awaitPods(t, namespace, "sim-a-0")
}

// Another scheduler bound a pod to the same node at the same moment.
func TestAPodThatItsKubeletRefusedIsReplaced(t *testing.T) {
	job := newJob(namespaceFor(t, "refused"), "gang", task("worker", 2))
	pods := start(t, job, "gang-worker-0", "gang-worker-1")
	refuse := func(pod *corev1.Pod) {
		changeStatus(t, pod, func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "OutOfcpu" })
	}
	refuse(pods["gang-worker-1"])
	pods = awaitReplaced(t, job.Namespace, pods, "gang-worker-1")
	// It may be refused again, and the Job goes on.
	refuse(pods["gang-worker-1"])
	awaitEvent(t, job, "PodRefused", "has no room for pod gang-worker-1 (OutOfcpu, 2 times in a row), which is replaced 10s after its creation")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Reason == "PodRefused" && status.Failed == 0 })
	pods = awaitReplaced(t, job.Namespace, pods, "gang-worker-1")
	finish(t, corev1.PodRunning, pods["gang-worker-1"])
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Running && status.Running == 2 && status.Failed == 0 && status.RetryCount == 0
	})
}

func TestOnlyThePodThatFailedIsRestarted(t *testing.T) {
	namespace := namespaceFor(t, "restartpod")
	job := newJob(namespace, "sim", task("a", 2), task("b", 2))
	job.Spec.Policies = batch.LifecyclePolicies{{Event: bus.AnyEvent, Action: bus.AbortJobAction}}
	three := int32(3)
	job.Spec.Tasks[0].Policies = batch.LifecyclePolicies{
		{ExitCode: &three, Action: bus.RestartPodAction},
		{Event: bus.PodFailedEvent, Action: bus.RestartTaskAction},
	}
	pods := start(t, job, "sim-a-0", "sim-a-1", "sim-b-0", "sim-b-1")
	fail(t, pods["sim-a-1"], 3)
	pods = awaitReplaced(t, namespace, pods, "sim-a-1")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.RetryCount == 1 && status.Version == 0 })
	finish(t, corev1.PodRunning, pods["sim-a-1"])
	awaitPhase(t, job, batch.Running)
	fail(t, pods["sim-a-0"], 4)
	pods = awaitReplaced(t, namespace, pods, "sim-a-0", "sim-a-1")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.RetryCount == 2 })
	finish(t, corev1.PodRunning, pods["sim-a-0"], pods["sim-a-1"])
	awaitPhase(t, job, batch.Running)
	fail(t, pods["sim-b-0"], 3)
	awaitPhase(t, job, batch.Aborted)
}

func TestAnEvictedPodIsAnsweredAlsoAfterARestart(t *testing.T) {
	namespace := namespaceFor(t, "evicted")
	job := newJob(namespace, "sim", task("a", 2))
	job.Spec.Policies = batch.LifecyclePolicies{{Events: []bus.Event{bus.PodEvictedEvent}, Action: bus.RestartJobAction}}
	first := start(t, job, "sim-a-0", "sim-a-1")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Running == 2 })
	if err := api.Delete(apitest.Context(t), first["sim-a-1"]); err != nil {
		t.Fatal(err)
	}
	second := awaitReplaced(t, namespace, first, "sim-a-0", "sim-a-1")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.RetryCount == 1 && status.Pending == 2 })

	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(apitest.Context(t), second["sim-a-0"]); err != nil {
		t.Fatal(err)
	}
	var err error
	if process, err = cluster.Run(apitest.Context(t), program); err != nil {
		t.Fatal(err)
	}
	awaitReplaced(t, namespace, second, "sim-a-0", "sim-a-1")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.RetryCount == 2 })
}

func TestAJobThatWaitsTooLongIsAborted(t *testing.T) {
	namespace := namespaceFor(t, "toolong")
	job := newJob(namespace, "sim", task("a", 1))
	job.Spec.Policies = batch.LifecyclePolicies{{
		Event: bus.PodPendingEvent, Action: bus.AbortJobAction, Timeout: &metav1.Duration{Duration: 2 * time.Second},
	}}
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	pod := awaitPods(t, namespace, "sim-a-0")["sim-a-0"]
	awaitPhase(t, job, batch.Aborted)
	awaitEvent(t, job, "Aborting", "pod sim-a-0 is pending, for more than 2s: AbortJob")
	if waited := time.Since(pod.CreationTimestamp.Time); waited < 2*time.Second {
		t.Errorf("it was aborted after %s", waited)
	}
}

func TestTheMasterCompletesTheJob(t *testing.T) {
	namespace := namespaceFor(t, "master")
	job := newJob(namespace, "mpi", task("master", 1), task("worker", 2))
	job.Spec.Tasks[0].Policies = batch.LifecyclePolicies{{Event: bus.TaskCompletedEvent, Action: bus.CompleteJobAction}}
	pods := start(t, job, "mpi-master-0", "mpi-worker-0", "mpi-worker-1")
	finish(t, corev1.PodSucceeded, pods["mpi-master-0"])
	awaitPhase(t, job, batch.Completed)
	awaitPods(t, namespace, "mpi-master-0")
	if job.Status.RunningDuration == nil {
		t.Error("the time it ran for is not told")
	}
}

func TestAnUpdateIsAnsweredOnce(t *testing.T) {
	namespace := namespaceFor(t, "updated")
	job := newJob(namespace, "sim", task("a", 1))
	job.Spec.Policies = batch.LifecyclePolicies{{Event: bus.JobUpdatedEvent, Action: bus.RestartJobAction}}
	before := start(t, job, "sim-a-0")
	change(t, job, func(job *batch.Job) { job.Spec.Tasks[0].Replicas = 2 })
	awaitReplaced(t, namespace, before, "sim-a-0")
	awaitPods(t, namespace, "sim-a-0", "sim-a-1")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.Pending == 2 && status.RetryCount == 1 })
}

func TestATaskWaitsForTheTasksItDependsOn(t *testing.T) {
	namespace := namespaceFor(t, "dependent")
	job := newJob(namespace, "mpi", task("master", 1), task("worker", 2))
	job.Spec.Tasks[0].DependsOn = &batch.DependsOn{Name: []string{"worker"}}
	create(t, job)
	group := podGroupOf(job)
	setPhase(t, group, scheduling.PodGroupInqueue)
	pods := awaitPods(t, namespace, "mpi-worker-0", "mpi-worker-1")
	if group.Spec.MinMember != 2 || group.Spec.MinTaskMember["master"] != 0 || group.Spec.MinResources.Cpu().Value() != 3 {
		t.Errorf("the gang is %+v: it waits for a pod that waits for it", group.Spec)
	}
	finish(t, corev1.PodRunning, pods["mpi-worker-0"])
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Reason == "WaitsForTask" &&
			status.State.Message == "task master waits for task worker, of which 1 of 2 pods are ready"
	})
	finish(t, corev1.PodRunning, pods["mpi-worker-1"])
	pods = awaitPods(t, namespace, "mpi-master-0", "mpi-worker-0", "mpi-worker-1")
	finish(t, corev1.PodRunning, pods["mpi-master-0"])
	awaitPhase(t, job, batch.Running)
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(group), group)
		if err == nil && group.Spec.MinMember != 3 {
			err = fmt.Errorf("minMember is %d", group.Spec.MinMember)
		}
		return err
	})
}

func TestAJobGetsItsVolumes(t *testing.T) {
	namespace := namespaceFor(t, "volumes")
	job := newJob(namespace, "sim", task("a", 1))
	job.Spec.Volumes = []batch.VolumeSpec{
		{MountPath: "/data", VolumeClaimName: "shared"},
		{MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
	}
	create(t, job)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Reason == "PVCError" && strings.Contains(status.State.Message, `spec.volumes[0].volumeClaimName: persistentvolumeclaims "shared" not found`)
	})
	shared := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shared"}, Spec: *job.Spec.Volumes[1].VolumeClaim}
	create(t, shared)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	pod := awaitPods(t, namespace, "sim-a-0")["sim-a-0"]
	claims := map[string]string{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		for _, volume := range pod.Spec.Volumes {
			if volume.Name == mount.Name && volume.PersistentVolumeClaim != nil {
				claims[mount.MountPath] = volume.PersistentVolumeClaim.ClaimName
			}
		}
	}
	made := &corev1.PersistentVolumeClaim{}
	if err := api.Get(apitest.Context(t), types.NamespacedName{Namespace: namespace, Name: claims["/scratch"]}, made); err != nil {
		t.Fatalf("of the claims %v: %v", claims, err)
	}
	if claims["/data"] != "shared" || !metav1.IsControlledBy(made, job) {
		t.Errorf("the claims are %v, the owners of the one that was made %v", claims, made.OwnerReferences)
	}
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.ControlledResources["volume-pvc-"+made.Name] == made.Name && status.State.Reason == ""
	})
}

func TestAJobThatRunsLongerThanExpectedSaysSo(t *testing.T) {
	namespace := namespaceFor(t, "estimate")
	job := newJob(namespace, "sim", task("a", 1))
	job.Spec.RunningEstimate = &metav1.Duration{Duration: time.Second}
	start(t, job, "sim-a-0")
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Running && status.State.Reason == "RunningEstimateExceeded"
	})
	awaitEvent(t, job, "RunningEstimateExceeded", "longer than its runningEstimate, 1s")
}

func TestThePartitionOfAFailedPodIsRestarted(t *testing.T) {
	namespace := namespaceFor(t, "partition")
	job := newJob(namespace, "sim", task("a", 4))
	job.Spec.Tasks[0].PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2}
	job.Spec.Tasks[0].Policies = batch.LifecyclePolicies{{Event: bus.PodFailedEvent, Action: bus.RestartPartitionAction}}
	pods := start(t, job, "sim-a-0", "sim-a-1", "sim-a-2", "sim-a-3")
	for name, partition := range map[string]string{"sim-a-0": "0", "sim-a-1": "0", "sim-a-2": "1", "sim-a-3": "1"} {
		if got := pods[name].Labels["volcano.sh/partition-id"]; got != partition {
			t.Errorf("%s is in partition %q, want %s", name, got, partition)
		}
	}
	fail(t, pods["sim-a-3"], 1)
	awaitReplaced(t, namespace, pods, "sim-a-2", "sim-a-3")
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.Running == 2 && status.Pending == 2 && status.RetryCount == 1
	})
}

func TestAnEvictionIsForgivenIfThePodIsBackInTime(t *testing.T) {
	namespace := namespaceFor(t, "forgiven")
	job := newJob(namespace, "sim", task("a", 2))
	job.Spec.Policies = batch.LifecyclePolicies{{
		Event: bus.PodEvictedEvent, Action: bus.AbortJobAction, Timeout: &metav1.Duration{Duration: 3 * time.Second},
	}}
	pods := start(t, job, "sim-a-0", "sim-a-1")
	evict := func() {
		t.Helper()
		if err := api.Delete(apitest.Context(t), pods["sim-a-1"]); err != nil {
			t.Fatal(err)
		}
		pods = awaitReplaced(t, namespace, pods, "sim-a-1")
	}
	evict()
	finish(t, corev1.PodRunning, pods["sim-a-1"])
	awaitPhase(t, job, batch.Running)
	time.Sleep(4 * time.Second)
	awaitPhase(t, job, batch.Running)
	evict()
	awaitPhase(t, job, batch.Aborted)
	awaitEvent(t, job, "Aborting", "pod sim-a-1 was evicted or deleted, for more than 3s: AbortJob")
}

func TestAJobGoesWhenItsTimeToLiveIsOver(t *testing.T) {
	namespace := namespaceFor(t, "mortal")
	seconds := int32(4)
	job, kept := newJob(namespace, "sim", task("a", 1)), newJob(namespace, "kept", task("a", 1))
	job.Spec.TTLSecondsAfterFinished = &seconds
	create(t, kept)
	finish(t, corev1.PodSucceeded, start(t, job, "sim-a-0")["sim-a-0"])
	awaitPhase(t, job, batch.Completed)
	ended := job.Status.State.LastTransitionTime
	awaitGone(t, job)
	if lived := time.Since(ended.Time); lived < 4*time.Second {
		t.Errorf("it was deleted %s after its end, before its time", lived)
	}
	awaitPods(t, namespace)
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(kept), kept); err != nil {
		t.Error(err)
	}
}

func TestAJobThatEndedIsDeletedWhenItsTimeToLiveIsSetLater(t *testing.T) {
	namespace := namespaceFor(t, "mortal-later")
	job := newJob(namespace, "sim", task("a", 1))
	finish(t, corev1.PodSucceeded, start(t, job, "sim-a-0")["sim-a-0"])
	awaitPhase(t, job, batch.Completed)
	seconds := int32(0)
	change(t, job, func(job *batch.Job) { job.Spec.TTLSecondsAfterFinished = &seconds })
	awaitGone(t, job)
}
