package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// otherScheduler is the name of the kube-scheduler in these tests. As default-scheduler it would also place the pods of
// the installer.
const otherScheduler = "other-scheduler"

const otherConfiguration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {leaderElect: false}
profiles:
- schedulerName: ` + otherScheduler + "\n"

// haveKubeScheduler runs a kube-scheduler together with Hekla until the test ends.
func haveKubeScheduler(t *testing.T) {
	t.Helper()
	path := filepath.Join(programs, "kube-scheduler")
	if _, err := os.Stat(path); err != nil {
		if err := apitest.BuildPackage(t.Context(), path, "k8s.io/kubernetes/cmd/kube-scheduler"); err != nil {
			t.Fatal(err)
		}
	}
	configuration := filepath.Join(t.TempDir(), "kube-scheduler.yaml")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, otherConfiguration, cluster.KubeconfigPath()), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := cluster.Run(t.Context(), localcluster.Program{Name: "kube-scheduler", Path: path,
		Args: []string{"--config=" + configuration, "--secure-port=0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// theirs is a pod of the kube-scheduler.
func theirs(name, class, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name,
		Annotations: map[string]string{schedulingv1beta1.PreemptableKey: "true"}}, // that is for pods of Hekla only
		Spec: corev1.PodSpec{SchedulerName: otherScheduler, PriorityClassName: class, TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
}

// awaitTheirs waits until so many pods of the kube-scheduler run.
func awaitTheirs(t *testing.T, want int) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := allPods(ctx)
		got := 0
		for i := range pods {
			if pods[i].Spec.SchedulerName == otherScheduler && pods[i].Status.Phase == corev1.PodRunning {
				got++
			}
		}
		if err == nil && got != want {
			err = fmt.Errorf("%d pods of the kube-scheduler run, want %d", got, want)
		}
		return err
	})
}

// isCalm fails the test if any pod is deleted in the next three seconds.
func isCalm(t *testing.T, gone func() int) {
	t.Helper()
	before := gone()
	time.Sleep(3 * time.Second)
	if after := gone(); after != before {
		t.Errorf("at rest %d more pods were deleted", after-before)
	}
}

func TestWhatKubeSchedulerMakesRoomForGetsTheRoom(t *testing.T) {
	for name, minimum := range map[string]int32{"from a Job with surplus": 1, "from a gang at its minimum": 16} {
		t.Run(name, func(t *testing.T) {
			haveNodes(t, 2)
			tidyUp(t)
			haveKubeScheduler(t)
			createClass(t, "urgent", 1000)
			job := batchJob("low", 16, "1")
			job.Spec.MinAvailable = minimum
			create(t, job)
			awaitStaying(t, "low", 16)
			gone := departures(t)
			createPod(t, theirs("high", "urgent", "4"))
			awaitTheirs(t, 1)
			isCalm(t, gone)
			if count := gone(); count != 4 {
				t.Errorf("%d pods were evicted for one that needs the room of 4", count)
			}
			kubectl(t, "delete", "pod", "high")
			awaitStaying(t, "low", 16) // the gang is whole again
			noNodeIsOverCommitted(t)
		})
	}
}

// The kube-scheduler knows of no plans, and takes what victims leave. Hekla is killed meanwhile.
func TestAPlanWhoseRoomOthersTakeEndsInCalm(t *testing.T) {
	makeRoom(t)
	releaseAtTheEnd(t)
	haveKubeScheduler(t)
	createQueue(t, "low", 1)
	createQueue(t, "high", 10)
	create(t, in("low", elastic(marked(batchJob("victim", 16, "1")))))
	awaitStaying(t, "victim", 16)
	holdAll(t, "victim")
	create(t, in("high", batchJob("preemptor", 2, "4")))
	_, victims := awaitPlan(t, "preemptor", 2, 8)
	gone := departures(t)
	names := []string{"thief-0", "thief-1", "thief-2"}
	for _, name := range names {
		createPod(t, theirs(name, "", "3"))
	}
	restartScheduler(t)
	if err := release(t.Context(), victims); err != nil {
		t.Fatal(err)
	}
	// Victims of later plans are of the first sixteen pods, which are held, or of those that replaced some.
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := allPods(ctx)
		if err != nil {
			return err
		}
		if err := release(ctx, leaving(pods)); err != nil {
			return err
		}
		running := 0
		for i := range pods {
			if slices.Contains(names, pods[i].Name) && pods[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if started := staying(pods, "preemptor"); running < len(names) && started < 2 {
			return fmt.Errorf("%d of their pods run, and %d of the preemptor", running, started)
		}
		return nil
	})
	noNodeIsOverCommitted(t)
	for _, name := range names {
		kubectl(t, "delete", "pod", name)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := allPods(ctx)
		if err == nil {
			err = release(ctx, leaving(pods))
		}
		if got := staying(pods, "preemptor"); err == nil && got != 2 {
			err = fmt.Errorf("%d pods of the preemptor run", got)
		}
		return err
	})
	awaitStaying(t, "victim", 8)
	isCalm(t, gone)
	noNodeIsOverCommitted(t)
	nothingWasForbidden(t)
}

// kubelets refuse the pods for which their nodes, of eight CPUs, have no room, as the kubelet does and kwok does not.
// The function counts them.
func kubelets(t *testing.T) (refused func() int) {
	t.Helper()
	stream, err := core.CoreV1().Pods(metav1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	count := 0
	admitted := map[string]map[types.UID]int64{}
	var reader sync.WaitGroup
	reader.Go(func() {
		for event := range stream.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Spec.NodeName == "" {
				continue
			}
			on := admitted[pod.Spec.NodeName]
			if on == nil {
				on = map[types.UID]int64{}
				admitted[pod.Spec.NodeName] = on
			}
			if event.Type == watch.Deleted || pod.Status.Phase == corev1.PodFailed {
				delete(on, pod.UID)
				continue
			}
			on[pod.UID] = pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			var sum int64
			for _, cpu := range on {
				sum += cpu
			}
			if sum <= 8000 {
				continue
			}
			delete(on, pod.UID)
			mutex.Lock()
			count++
			mutex.Unlock()
			if err := refuse(pod); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() { stream.Stop(); reader.Wait() })
	return func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return count
	}
}

// refuse writes of a pod what a kubelet writes that has no room for it.
func refuse(pod *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"phase":"Failed","reason":"OutOfcpu","message":"Node didn't have enough resource: cpu"}}`, pod.UID)
	_, err := core.CoreV1().Pods(pod.Namespace).Patch(context.Background(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// A kube-scheduler and Hekla fill the same nodes, and no kubelet runs more than it has room for.
func TestSchedulersFillTheSameNodesAndGangsEndWhole(t *testing.T) {
	const gangs, size, singles = 6, 6, 30
	haveNodes(t, 10)
	tidyUp(t)
	haveKubeScheduler(t)
	refused := kubelets(t)
	var users sync.WaitGroup
	users.Go(func() {
		for i := range gangs {
			create(t, batchJob(fmt.Sprint("gang-", i), size, "1"))
		}
	})
	users.Go(func() {
		for i := range singles {
			createPod(t, theirs(fmt.Sprint("single-", i), "", "1"))
		}
	})
	users.Wait()
	for i := range gangs {
		awaitStaying(t, fmt.Sprint("gang-", i), size)
	}
	noNodeIsOverCommitted(t)
	// One more of a gang is refused, as if a binding of the kube-scheduler had come first.
	pods, err := podsOf(t.Context(), "gang-0")
	if err != nil {
		t.Fatal(err)
	}
	gone, before := departures(t), refused()
	if err := refuse(&pods[0]); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(context.Context) error {
		if gone() == 0 {
			return fmt.Errorf("the refused pod %s stays", pods[0].Name)
		}
		return nil
	})
	awaitStaying(t, "gang-0", size)
	t.Logf("kubelets have refused %d pods in a race", before)
	noNodeIsOverCommitted(t)
	nothingWasForbidden(t)
}
