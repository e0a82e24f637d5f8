package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The pause from the creation of a pod that its kubelet has refused until it is replaced, doubled by each refusal in a
// row. A kubelet may see less room than the API server shows, and would refuse the next pod as well. The longest is
// that of containers that crash.
const (
	firstRefusalPause = 5 * time.Second
	lastRefusalPause  = 5 * time.Minute
)

// RefusalsLast is after how long a refusal is not in a row with the next one any more.
const RefusalsLast = 2 * lastRefusalPause

// Refused are the pods for which their kubelets had no room. They have never run, and are replaced like pods that were
// deleted. That happens when another scheduler binds a pod to the same node at the same moment, or when the template
// names the node.
type Refused struct {
	Due     []*corev1.Pod // to be replaced now
	Wait    time.Duration // until the next one is due, 0 if there is none
	Trouble Trouble       // what users are told
}

// SetRefusedAside returns what was refused, and the pods as they count: a refused pod is pending until it is replaced,
// so that it ends no Job. inARow says how often the pods of its name were refused, one after the other, the first being
// 1.
func SetRefusedAside(pods []*corev1.Pod, inARow func(*corev1.Pod) int, now time.Time) ([]*corev1.Pod, Refused) {
	var all []*corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodFailed && strings.HasPrefix(pod.Status.Reason, "OutOf") {
			all = append(all, pod)
		}
	}
	if len(all) == 0 {
		return pods, Refused{}
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	refused, pending := Refused{}, make(map[*corev1.Pod]*corev1.Pod, len(all))
	for i, pod := range all {
		times := inARow(pod)
		pause := refusalPause(times)
		if left := pod.CreationTimestamp.Add(pause).Sub(now); left <= 0 {
			refused.Due = append(refused.Due, pod)
		} else if refused.Wait == 0 || left < refused.Wait {
			refused.Wait = left
		}
		if i == 0 {
			refused.Trouble = Trouble{Reason: ReasonPodRefused, Message: refusal(pod, times, pause, len(all)-1)}
		}
		copied := *pod
		copied.Status.Phase = corev1.PodPending
		pending[pod] = &copied
	}
	counted := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		counted[i] = cmp.Or(pending[pod], pod)
	}
	return counted, refused
}

// refusalPause is the pause after so many refusals in a row.
func refusalPause(times int) time.Duration {
	pause := firstRefusalPause
	for ; times > 1 && pause < lastRefusalPause; times-- {
		pause *= 2
	}
	return min(pause, lastRefusalPause)
}

// refusal says of a pod that it was refused, with so many others.
func refusal(pod *corev1.Pod, times int, pause time.Duration, others int) string {
	text := fmt.Sprintf("the kubelet of node %s has no room for pod %s (%s", pod.Spec.NodeName, pod.Name, pod.Status.Reason)
	if times > 1 {
		text += fmt.Sprintf(", %d times in a row", times)
	}
	text += fmt.Sprintf("), which is replaced %s after its creation", pause)
	if others > 0 {
		text += fmt.Sprintf("; so are %d others", others)
	}
	return text
}
