package cache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/resources"
)

var always = corev1.ContainerRestartPolicyAlways

func container(name, requests string) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(requests)}}
}

func sidecar(name, requests string) corev1.Container {
	c := container(name, requests)
	c.RestartPolicy = &always
	return c
}

func runs(containers ...corev1.Container) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers = containers }
}

func inits(containers ...corev1.Container) podOption {
	return func(p *corev1.Pod) { p.Spec.InitContainers = containers }
}

func overhead(text string) podOption { return func(p *corev1.Pod) { p.Spec.Overhead = list(text) } }

func asksAsPod(text string) podOption {
	return func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list(text)} }
}

// holds says what the kubelet reports that a container has, and what it was promised.
func holds(name, actual, allocated string) podOption {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name,
			Resources: &corev1.ResourceRequirements{Requests: list(actual)}, AllocatedResources: list(allocated)})
	}
}

// holdsAsPod is the same for pod-level resources.
func holdsAsPod(actual, allocated string) podOption {
	return func(p *corev1.Pod) {
		p.Status.Resources = &corev1.ResourceRequirements{Requests: list(actual)}
		p.Status.AllocatedResources = list(allocated)
	}
}

func resizeInfeasible(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending,
		Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
}

func TestAPodTakesWhatKubeSchedulerCountsForIt(t *testing.T) {
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
		// What it counts for balance, in thousandths of a core and in MiB.
		cpu, memory int64
	}{
		"the sum of its containers": {pod("p", runs(container("a", "cpu=1 memory=1Gi"), container("b", "cpu=500m"))),
			"cpu=1500m memory=1Gi pods=1", 1500, 1224},
		"nothing but a place, if it asks for nothing": {pod("p", runs(container("a", ""))),
			"pods=1", 100, 200},
		"the largest init container, if that is more": {pod("p", runs(container("a", "cpu=1")), inits(container("i", "cpu=3"), container("j", "cpu=2"))),
			"cpu=3 pods=1", 3000, 200},
		"sidecars and containers together": {pod("p", runs(container("a", "cpu=1")), inits(sidecar("s", "cpu=250m"), sidecar("r", "cpu=250m"))),
			"cpu=1500m pods=1", 1500, 600},
		"an init container with the sidecars before it": {pod("p", runs(container("a", "cpu=1")), inits(sidecar("s", "cpu=1"), container("i", "cpu=2"), sidecar("r", "cpu=100m"))),
			"cpu=3 pods=1", 3000, 600},
		"the overhead of its runtime class": {pod("p", runs(container("a", "cpu=1")), overhead("cpu=250m memory=120Mi")),
			"cpu=1250m memory=120Mi pods=1", 1250, 320},
		"pod-level requests instead of those of containers": {pod("p", runs(container("a", "cpu=3 memory=1Gi nvidia.com/gpu=1")), asksAsPod("cpu=2")),
			"cpu=2 memory=1Gi nvidia.com/gpu=1 pods=1", 2000, 1024},
		"pod-level requests and overhead": {pod("p", runs(container("a", "")), asksAsPod("cpu=2 memory=2Gi"), overhead("cpu=500m")),
			"cpu=2500m memory=2Gi pods=1", 2500, 2048},
		"no default for memory that another container names": {
			pod("p", runs(container("a", "memory=1Gi"), container("b", "")), asksAsPod("cpu=2")),
			"cpu=2 memory=1Gi pods=1", 2000, 1024},
		"what it grows to, before the kubelet has done it": {pod("p", runs(container("a", "cpu=3")), holds("a", "cpu=1", "cpu=1")),
			"cpu=3 pods=1", 3000, 200},
		"what it still holds, while it shrinks": {pod("p", runs(container("a", "cpu=1")), holds("a", "cpu=3", "cpu=1")),
			"cpu=3 pods=1", 3000, 200},
		"what it holds, if the node cannot give more": {pod("p", runs(container("a", "cpu=9")), holds("a", "cpu=1", "cpu=2"), resizeInfeasible),
			"cpu=2 pods=1", 2000, 200},
		"what it still holds as a pod, while it shrinks": {pod("p", runs(container("a", "")), asksAsPod("cpu=1"), holdsAsPod("cpu=4", "cpu=1")),
			"cpu=4 pods=1", 4000, 200},
		"devices and large pages": {pod("p", runs(container("a", "nvidia.com/gpu=2 hugepages-2Mi=64Mi ephemeral-storage=1Gi"))),
			"nvidia.com/gpu=2 hugepages-2Mi=64Mi ephemeral-storage=1Gi pods=1", 100, 200},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{test.pod})
			task := c.Task(key("p"))
			amounts(t, c, "the request", task.Request(), test.want)
			if want := [2]int64{test.cpu, test.memory << 20}; task.Class.NonZero != want {
				t.Errorf("balance is %v, want %v", task.Class.NonZero, want)
			}
			agreesWithKubeScheduler(t, c, test.pod)
		})
	}
}

// agreesWithKubeScheduler asks kube-scheduler itself what it counts for a pod.
func agreesWithKubeScheduler(t interface {
	Helper()
	Fatalf(string, ...any)
}, c *Cache, pod *corev1.Pod) {
	t.Helper()
	info, err := kubescheduler.NewPodInfo(pod)
	if err != nil {
		t.Fatalf("kube-scheduler does not take the pod: %v", err)
	}
	theirs := info.CalculateResource()
	want := map[string]int64{"cpu": theirs.Resource.GetMilliCPU(), "memory": theirs.Resource.GetMemory(),
		"ephemeral-storage": theirs.Resource.GetEphemeralStorage(), "pods": 1, "balance cpu": theirs.Non0CPU,
		"balance memory": theirs.Non0Mem}
	for name, value := range theirs.Resource.GetScalarResources() {
		want[string(name)] = value
	}
	task := c.Task(podKey(pod))
	have := map[string]int64{"ephemeral-storage": 0, "balance cpu": task.Class.NonZero[0], "balance memory": task.Class.NonZero[1]}
	for dim, value := range task.Request() {
		have[string(c.Resources.Name(resources.Dim(dim)))] = value
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatalf("kube-scheduler counts otherwise (-theirs +ours):\n%s", diff)
	}
}

func podKey(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func TestAnyPodTakesWhatKubeSchedulerCountsForIt(t *testing.T) {
	amounts := rapid.SampledFrom([]string{"", "", "cpu=0", "cpu=1", "cpu=300m memory=64Mi", "memory=1Gi", "memory=0 nvidia.com/gpu=1",
		"cpu=2500u", "hugepages-2Mi=4Mi memory=1", "cpu=4 memory=3Gi ephemeral-storage=1Gi"})
	draw := func(t *rapid.T, what string) string { return amounts.Draw(t, what) }
	rapid.Check(t, func(t *rapid.T) {
		p := pod("p")
		p.Spec.Containers = nil
		for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
			name := fmt.Sprintf("c%d", i)
			p.Spec.Containers = append(p.Spec.Containers, container(name, draw(t, name)))
			if rapid.Bool().Draw(t, "has status") {
				holds(name, draw(t, "actual"), draw(t, "allocated"))(p)
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "init containers") {
			c := container(fmt.Sprintf("i%d", i), draw(t, "init"))
			if rapid.Bool().Draw(t, "sidecar") {
				c.RestartPolicy = &always
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		}
		if rapid.Bool().Draw(t, "has overhead") {
			overhead(draw(t, "overhead"))(p)
		}
		if rapid.Bool().Draw(t, "has pod-level requests") {
			asksAsPod(draw(t, "pod-level"))(p)
			if rapid.Bool().Draw(t, "has pod-level status") {
				holdsAsPod(draw(t, "actual"), draw(t, "allocated"))(p)
			}
		}
		if rapid.Bool().Draw(t, "infeasible") {
			resizeInfeasible(p)
		}
		agreesWithKubeScheduler(t, newCluster(Set{p}), p)
	})
}

func TestAPodThatAsksForNothingIsBestEffort(t *testing.T) {
	c := newCluster(Set{pod("none", asks(""))}, Set{pod("zero", asks("cpu=0 memory=0"))}, Set{pod("some", asks("memory=1"))},
		Set{pod("device", asks("nvidia.com/gpu=1"))})
	for name, want := range map[string]bool{"none": true, "zero": true, "some": false, "device": false} {
		if have := c.Task(key(name)).BestEffort(); have != want {
			t.Errorf("pod %s is best effort: %t, want %t", name, have, want)
		}
	}
}
