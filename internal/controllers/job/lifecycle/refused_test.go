package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestRefusedPodsAreReplacedAfterPausesThatGrow(t *testing.T) {
	job := jobOf(task("a", 3, ""))
	for _, test := range []struct {
		inARow int
		pause  time.Duration
	}{{1, 5 * time.Second}, {2, 10 * time.Second}, {3, 20 * time.Second}, {6, 160 * time.Second}, {7, 5 * time.Minute}, {1000, 5 * time.Minute}} {
		pods := podsOf(job, 0, running, failed, failed)
		refused := pods[1]
		refused.Status.Reason, refused.Spec.NodeName = "OutOfcpu", "n1"
		inARow := func(*corev1.Pod) int { return test.inARow }
		for wait, isDue := range map[time.Duration]bool{test.pause - time.Second: false, test.pause: true} {
			counted, got := SetRefusedAside(pods, inARow, refused.CreationTimestamp.Add(wait))
			if counted[0] != pods[0] || counted[1].Status.Phase != corev1.PodPending || counted[2] != pods[2] || refused.Status.Phase != corev1.PodFailed {
				t.Errorf("the pods count as %v", counted)
			}
			if isDue != (len(got.Due) == 1 && got.Due[0] == refused) || isDue != (got.Wait == 0) {
				t.Errorf("%d refusals, after %s: %d are due, and others in %s", test.inARow, wait, len(got.Due), got.Wait)
			}
		}
	}
}

func TestWhatIsSaidOfRefusedPods(t *testing.T) {
	pods := podsOf(jobOf(task("a", 3, "")), 0, failed, failed, failed)
	for _, pod := range pods {
		pod.Status.Reason, pod.Spec.NodeName = "OutOfmemory", "n1"
	}
	_, got := SetRefusedAside(pods, func(*corev1.Pod) int { return 3 }, pods[0].CreationTimestamp.Time)
	want := Trouble{"PodRefused", "the kubelet of node n1 has no room for pod sim-a-0 (OutOfmemory, 3 times in a row), which is replaced 20s after its creation; so are 2 others"}
	if got.Trouble != want {
		t.Errorf("it says %v, want %v", got.Trouble, want)
	}
}
