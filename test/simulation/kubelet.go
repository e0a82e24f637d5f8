package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations say how a pod fares once it runs.
const (
	runFor   = "simulation.hekla.sh/run-for"   // a duration; without it the pod runs for ever
	exitCode = "simulation.hekla.sh/exit-code" // of its containers; 0 without it
	isSlow   = "simulation.hekla.sh/is-slow"   // with a value it takes all of its grace period to end
)

// kubelets are those of all nodes. What each does with a pod next follows from the pod and the time.
type kubelets struct {
	driver *driver
	// due says when there is something to do with a pod.
	due  map[string]time.Time
	slow map[string]time.Time // nodes whose kubelet does nothing until then
}

// seen takes in a change of a pod.
func (k *kubelets) seen(before, now *object) {
	if now == nil {
		if before.pod != nil {
			delete(k.due, before.id())
		}
		return
	}
	if now.pod == nil {
		return
	}
	id, pod := now.id(), now.pod
	delete(k.due, id)
	switch {
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
	case k.isLost(pod):
		k.due[id] = time.Now().Add(lostAfter)
	case pod.DeletionTimestamp != nil:
		// Containers stop when they are asked to, within the time that they are given, or are killed when it is over.
		grace := time.Duration(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		}
		if pod.Annotations[isSlow] == "" {
			grace = min(grace, k.spread(pod, 3*time.Second))
		}
		k.due[id] = time.Now().Add(grace)
	case pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "":
		k.due[id] = time.Now().Add(k.spread(pod, 2*time.Second))
	case pod.Status.Phase == corev1.PodRunning:
		if length, err := time.ParseDuration(pod.Annotations[runFor]); err == nil {
			started := time.Now()
			if pod.Status.StartTime != nil {
				started = pod.Status.StartTime.Time
			}
			k.due[id] = started.Add(length)
		}
	}
}

// lostAfter is how long the controller of Kubernetes that collects pods waits.
const lostAfter = 40 * time.Second

// isLost reports whether a pod has no kubelet: it is to go before it got a node, or its node is not there.
func (k *kubelets) isLost(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" || k.driver.observer.get(nodes, "", pod.Spec.NodeName) == nil
}

// spread is a duration that depends on the pod, so that kubelets do not work in step.
func (k *kubelets) spread(pod *corev1.Pod, most time.Duration) time.Duration {
	h := 0
	for _, c := range pod.Name {
		h = (h*31 + int(c)) % 1009
	}
	return most * time.Duration(h) / 1009
}

func (k *kubelets) nextDue() (first time.Time, ok bool) {
	for id, due := range k.due {
		if until, isSlow := k.slow[k.node(id)]; isSlow && until.After(due) {
			due = until
		}
		if !ok || due.Before(first) {
			first, ok = due, true
		}
	}
	return first, ok
}

func (k *kubelets) node(id string) string {
	if o := k.driver.observer.objects[id]; o != nil {
		return o.pod.Spec.NodeName
	}
	return ""
}

func (k *kubelets) options() []option {
	now := time.Now()
	var ids []string
	for id, due := range k.due {
		if !due.After(now) && !k.slow[k.node(id)].After(now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	all := make([]option, 0, len(ids))
	for _, id := range ids {
		all = append(all, option{4, "kubelet " + id, func() { k.act(id) }})
	}
	return all
}

// act does what is to be done with a pod.
func (k *kubelets) act(id string) {
	d := k.driver
	o := d.observer.objects[id]
	delete(k.due, id)
	if o == nil {
		return
	}
	pod := o.pod.DeepCopy()
	path := o.path()
	switch {
	case pod.DeletionTimestamp != nil || k.isLost(pod):
		if isRunning(pod) && (len(pod.Finalizers) > 0 || k.isLost(pod)) {
			k.finish(pod, 143)
			d.ask("kubelet", "PUT", path+"/status", jsonType, pod)
		}
		if !d.delete("kubelet", path, map[string]any{"gracePeriodSeconds": 0, "preconditions": map[string]any{"uid": string(pod.UID)}}) {
			k.due[id] = time.Now().Add(time.Second)
		}
		return
	case pod.Status.Phase == corev1.PodRunning:
		code, _ := strconv.Atoi(pod.Annotations[exitCode])
		k.finish(pod, int32(code))
	default:
		k.run(pod)
	}
	if code := d.ask("kubelet", "PUT", path+"/status", jsonType, pod).Code; code >= 400 && code != 404 {
		k.due[id] = time.Now().Add(time.Second)
	}
}

func isRunning(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// run writes that all containers run.
func (k *kubelets) run(pod *corev1.Pod) {
	now := metav1.Now()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.PodIP, pod.Status.HostIP = "10.0.0.1", "192.168.0.1"
	pod.Status.PodIPs, pod.Status.HostIPs = []corev1.PodIP{{IP: "10.0.0.1"}}, []corev1.HostIP{{IP: "192.168.0.1"}}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		isStarted := true
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: &isStarted, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		setCondition(pod, kind, corev1.ConditionTrue)
	}
}

// finish writes that all containers have ended.
func (k *kubelets) finish(pod *corev1.Pod, code int32) {
	now := metav1.Now()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	pod.Status.Phase = corev1.PodSucceeded
	reason := "Completed"
	if code != 0 {
		pod.Status.Phase, reason = corev1.PodFailed, "Error"
	}
	started := now
	if pod.Status.StartTime != nil {
		started = *pod.Status.StartTime
	} else {
		pod.Status.StartTime = &now
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		isStarted := false
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Started: &isStarted, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: now, ContainerID: fmt.Sprintf("simulated://%s", pod.UID)}},
		})
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(pod, kind, corev1.ConditionFalse)
	}
}

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.Now()
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()})
}
