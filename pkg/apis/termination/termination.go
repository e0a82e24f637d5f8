package termination

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long a pod may take to end beyond what it was given: the kubelet, controllers and the watch take some
// seconds.
const patience = 5 * time.Second

// Overdue says why a pod that is being deleted still exists, "" if it is not being deleted or may still end in time.
// The node is the pod's, "" if it has none. left is how long it may still take until something is said, 0 if that is
// not a matter of time.
func Overdue(pod *metav1.ObjectMeta, node string, now time.Time) (why string, left time.Duration) {
	if pod.DeletionTimestamp == nil {
		return "", 0
	}
	end, grace := pod.DeletionTimestamp.Time, time.Duration(0) // the API server adds the grace period
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	due := end.Add(patience)
	if len(pod.Finalizers) > 0 {
		due = due.Add(-grace)
	} else if grace == 0 && pod.DeletionGracePeriodSeconds != nil {
		return "", 0 // the kubelet has deleted it, or force was used: it is gone as soon as the watch says so
	}
	switch {
	case now.Before(due):
		return "", due.Sub(now)
	case len(pod.Finalizers) > 0:
		return fmt.Sprintf("pod %s/%s is being deleted and has the finalizer %s", pod.Namespace, pod.Name, strings.Join(pod.Finalizers, ", ")), 0
	case node != "":
		return fmt.Sprintf("pod %s/%s should have ended by %s, and node %s has not removed it", pod.Namespace, pod.Name, end.UTC().Format(time.RFC3339), node), 0
	}
	return "", 0
}
