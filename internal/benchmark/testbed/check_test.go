package testbed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// boundLoad returns a load of two gangs of two, all running on node-1, and nodes with this much room.
func boundLoad(cpus int64) (*Load, []corev1.Pod, []corev1.Node) {
	l := &Load{Name: "l", SchedulerName: "s", Gangs: 2, Members: 2}
	var pods []corev1.Pod
	for i := range l.Pods() {
		pod := l.pod(i)
		pod.Spec.NodeName, pod.Status.Phase = "node-1", corev1.PodRunning
		pods = append(pods, *pod)
	}
	return l, pods, []corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(cpus, resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse("64Gi"),
			corev1.ResourcePods:   resource.MustParse("4"),
		}},
	}}
}

func TestJudgeNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		cpus     int64
		change   func([]corev1.Pod) []corev1.Pod
		bindings int
		want     []string
	}{
		"nothing": {cpus: 4, bindings: 4},
		"a full node has too few CPUs": {cpus: 3, bindings: 4, want: []string{
			"node node-1 is over-committed: its pods request 4 of cpu, and it has 3",
		}},
		"a pod of somebody else fills the node": {cpus: 8, bindings: 4, want: []string{
			"node node-1 is over-committed: its pods request 5 of pods, and it has 4",
		}, change: func(pods []corev1.Pod) []corev1.Pod {
			other := pods[0].DeepCopy()
			other.Labels = nil
			return append(pods, *other)
		}},
		"a pod of somebody else has ended": {cpus: 4, bindings: 4, change: func(pods []corev1.Pod) []corev1.Pod {
			other := pods[0].DeepCopy()
			other.Labels, other.Status.Phase = nil, corev1.PodSucceeded
			return append(pods, *other)
		}},
		"half a gang": {cpus: 4, bindings: 3, want: []string{
			"3 of 4 pods are bound", "3 of 4 pods run", "the gang l-gang-0 is not whole: 1 of 2 pods are bound",
		}, change: func(pods []corev1.Pod) []corev1.Pod {
			pods[1].Spec.NodeName, pods[1].Status.Phase = "", corev1.PodPending
			return pods
		}},
		"a whole gang that is left out": {cpus: 4, bindings: 2, want: []string{
			"2 of 4 pods are bound", "2 of 4 pods run",
		}, change: func(pods []corev1.Pod) []corev1.Pod {
			for i := range 2 {
				pods[i].Spec.NodeName, pods[i].Status.Phase = "", corev1.PodPending
			}
			return pods
		}},
		"one binding too many": {cpus: 4, bindings: 5, want: []string{
			"5 bindings were carried out for 4 bound pods",
		}},
		"a pod that is gone": {cpus: 4, bindings: 4, want: []string{
			"there are 3 pods, and not 4", "3 of 4 pods are bound", "3 of 4 pods run",
			"4 bindings were carried out for 3 bound pods", "the gang l-gang-0 is not whole: 1 of 2 pods are bound",
		}, change: func(pods []corev1.Pod) []corev1.Pod { return pods[1:] }},
		"a node that is not there": {cpus: 4, bindings: 4, want: []string{
			"pods are bound to node-2, which is no node",
		}, change: func(pods []corev1.Pod) []corev1.Pod {
			pods[0].Spec.NodeName = "node-2"
			return pods
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l, pods, nodes := boundLoad(c.cpus)
			if c.change != nil {
				pods = c.change(pods)
			}
			if difference := cmp.Diff(c.want, l.judge(pods, nodes, c.bindings, true)); difference != "" {
				t.Errorf("(-want +got):\n%s", difference)
			}
		})
	}
}

func TestPodsNeedNotRunWithoutKubelets(t *testing.T) {
	l, pods, nodes := boundLoad(4)
	for i := range pods {
		pods[i].Status.Phase = corev1.PodPending
	}
	if problems := l.judge(pods, nodes, 4, false); len(problems) > 0 {
		t.Errorf("got %q, want nothing", problems)
	}
}

func TestPodsThatAreCreatedWithTheirNodesHaveThemInTurn(t *testing.T) {
	l := &Load{Name: "a", Gangs: 1, Members: 3, Nodes: []string{"n1", "n2"}}
	for number, want := range []string{"n1", "n2", "n1"} {
		if got := l.pod(number).Spec.NodeName; got != want {
			t.Errorf("pod %d is on node %q, want %q", number, got, want)
		}
	}
	l.Nodes = nil
	if got := l.pod(0).Spec.NodeName; got != "" {
		t.Errorf("a pod that waits for a scheduler is on node %q", got)
	}
}
