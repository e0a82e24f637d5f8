package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// replacedWithin is how long the pods of a group are kept that were all deleted by others, so that a client which
// deletes before it creates replaces them in the same Workload. It is the time in which a pod ends by default. Pods
// that were evicted are kept until they are replaced.
const replacedWithin = corev1.DefaultTerminationGracePeriodSeconds * time.Second

// group is the pods that one Workload is for, each list with the oldest first.
type group struct {
	namespace, name string
	isAlone         bool
	all             []*corev1.Pod // that are not being deleted, and those of a group that had succeeded before
	leaving         []*corev1.Pod // that are being deleted, and run
	lost            []*corev1.Pod // that are being deleted, and do not run: only finalizers keep them
	strays          []*corev1.Pod // of jobs that are queued themselves, and so not of the group
	total           int32         // how many there are to be
	isUnreadable    bool          // what its pods say cannot be read
	isEnding        bool          // its namespace is being deleted: that waits for pods, and only then deletes what else there is
}

// add sorts a pod in.
func (g *group) add(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp == nil, !g.isAlone && hasSucceeded(pod):
		g.all = append(g.all, pod)
	case isLost(pod):
		g.lost = append(g.lost, pod)
	default:
		g.leaving = append(g.leaving, pod)
	}
}

// members are all pods of the group.
func (g *group) members() []*corev1.Pod { return slices.Concat(g.all, g.leaving, g.lost) }

// first is a pod of the group, nil if there is none.
func (g *group) first() *corev1.Pod {
	for _, pod := range g.members() {
		return pod
	}
	return nil
}

// countOf makes a group of which all pods are gone, but not their controllers, as large as its Workload says.
func (g *group) countOf(w *v1beta2.Workload) {
	if g.first() != nil {
		return
	}
	g.total = 0
	for i := range w.Spec.PodSets {
		g.total += w.Spec.PodSets[i].Count
	}
}

// workloadName is the name of the Workload of a group. One pod alone is there.
func (g *group) workloadName() string {
	if g.isAlone {
		return queueing.WorkloadName(corev1.SchemeGroupVersion.WithKind("Pod"), g.name, g.first().UID)
	}
	return g.name
}

// count is how many pods of the group that are there are in a phase.
func (g *group) count(is func(*corev1.Pod) bool) int32 {
	count := int32(0)
	for _, pod := range g.all {
		if is(pod) {
			count++
		}
	}
	return count
}

// hasSucceeded reports whether a pod has done its work. One that is stopped, and ends well then, has not.
func hasSucceeded(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodSucceeded || pod.DeletionTimestamp == nil {
		return pod.Status.Phase == corev1.PodSucceeded
	}
	asked := askedToEnd(pod)
	return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated != nil && !s.State.Terminated.FinishedAt.Time.Before(asked)
	})
}

// askedToEnd is when a pod that is being deleted was deleted.
func askedToEnd(pod *corev1.Pod) time.Time {
	grace := int64(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = *pod.DeletionGracePeriodSeconds
	}
	return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

func hasFailed(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed }
func hasEnded(pod *corev1.Pod) bool  { return pod.Status.Phase == corev1.PodSucceeded || hasFailed(pod) }
func isRunning(pod *corev1.Pod) bool { return !hasEnded(pod) && !queueing.IsGated(pod) }

// isForced reports whether a pod is being deleted that has a node and may run on it still, and would be gone but for
// its finalizers: a user does not wait for its end.
func isForced(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" && !hasEnded(pod) && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

// isLost reports whether only finalizers keep a pod that is being deleted.
func isLost(pod *corev1.Pod) bool { return hasEnded(pod) || pod.Spec.NodeName == "" || isForced(pod) }

// isReady reports whether all containers of a pod are ready, or it has succeeded.
func isReady(pod *corev1.Pod) bool {
	if hasSucceeded(pod) {
		return true
	}
	return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) > 0 &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready })
}

// finished reports whether the pods have ended and none is to come. Pods of a group that have failed are replaced,
// unless one of them says that it is not.
func (g *group) finished(w *v1beta2.Workload) (message string, succeeded, is bool) {
	done, failed := g.succeeded(w), g.count(hasFailed)
	message = fmt.Sprintf("Pods succeeded: %d/%d.", done, g.total)
	if g.isAlone {
		return message, done > 0, done+failed > 0
	}
	for _, pod := range g.lost {
		if g.mayBeReplaced(pod) {
			failed++
		}
	}
	isLast := slices.ContainsFunc(g.members(), func(p *corev1.Pod) bool { return p.Annotations[v1beta2.RetriableInGroupAnnotation] == "false" })
	return message, done >= g.total, done >= g.total || isLast && failed > 0 && done+failed >= g.total && len(g.leaving) == 0
}

// succeeded is how many pods of the group have succeeded, with those that were deleted since.
func (g *group) succeeded(w *v1beta2.Workload) int32 {
	known := int32(0)
	for _, p := range w.Status.ReclaimablePods {
		known += p.Count
	}
	return max(known, g.count(hasSucceeded))
}

// reclaim writes how many places of the Workload the pods of the group do not need any more.
func (g *group) reclaim(w *v1beta2.Workload) {
	demands := make([]queueing.Demand, len(w.Spec.PodSets))
	for i := range w.Spec.PodSets {
		name := w.Spec.PodSets[i].Name
		isOf := func(is func(*corev1.Pod) bool) int32 {
			return g.count(func(p *corev1.Pod) bool { return p.Labels[v1beta2.PodSetLabel] == name && is(p) })
		}
		demands[i] = queueing.Demand{Name: name, Count: w.Spec.PodSets[i].Count, Ended: isOf(hasSucceeded),
			Has: isOf(func(p *corev1.Pod) bool { return !hasSucceeded(p) && !hasFailed(p) })}
	}
	queueing.Reclaim(w, demands, false)
}

// isFast reports whether a group is admitted before all of its pods exist.
func (g *group) isFast() bool {
	first := g.first()
	return first != nil && first.Annotations[v1beta2.PodGroupFastAdmissionAnnotation] == "true"
}

// counted are the pods that a Workload of the group is made of, see [queueing.MembersOf].
func (g *group) counted() []*corev1.Pod {
	succeeded := slices.DeleteFunc(slices.Clone(g.all), func(p *corev1.Pod) bool { return !hasSucceeded(p) })
	return queueing.MembersOf(g.gated(), succeeded, g.total)
}

// gated are the pods that wait to be admitted.
func (g *group) gated() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(g.all), func(p *corev1.Pod) bool { return !queueing.IsGated(p) || hasEnded(p) })
}

// beyond are the pods that wait and are more than the group has. The newest are.
func (g *group) beyond() []*corev1.Pod {
	gated := g.gated()
	return gated[min(len(gated), max(int(g.total-g.count(hasSucceeded)), 0)):]
}

// await says whether pods of the group have to be replaced: fewer are there than the group has that may run, or have
// succeeded. A group with fast admission that waits needs but one. The words are Kueue's.
func (g *group) await(w *v1beta2.Workload, now time.Time) {
	here := g.count(func(p *corev1.Pod) bool { return !hasFailed(p) }) + g.succeeded(w) - g.count(hasSucceeded)
	isEvicted, needed := conditions.Is(w, v1beta2.Evicted), g.total
	if g.isFast() && !conditions.Is(w, v1beta2.QuotaReserved) {
		needed = 1
	}
	switch {
	case g.isAlone || g.isFast() && g.count(hasFailed) == 0 && len(g.lost) == 0 && !isEvicted:
	case here >= needed:
		if conditions.Is(w, v1beta2.WaitingForReplacementPods) {
			conditions.Set(w, v1beta2.WaitingForReplacementPods, false, v1beta2.PodsReady, "No pods need replacement", now)
		}
	case isEvicted:
		evicted := conditions.Of(w, v1beta2.Evicted)
		conditions.Set(w, v1beta2.WaitingForReplacementPods, true, evicted.Reason, evicted.Message, now)
	case !conditions.Is(w, v1beta2.WaitingForReplacementPods):
		conditions.Set(w, v1beta2.WaitingForReplacementPods, true, v1beta2.ReasonPodsFailed, "Some Failed pods need replacement", now)
	}
}

// mayBeReplaced reports whether a pod of a group that has ended is kept until another takes its place. One that never
// started leaves no place. One that was deleted by force is not waited for. A controller replaces its pods by itself,
// often under the same name.
func (g *group) mayBeReplaced(pod *corev1.Pod) bool {
	return !queueing.IsGated(pod) && !isForced(pod) && metav1.GetControllerOfNoCopy(pod) == nil
}

// uncounted are the pods of a group that need not be counted any more, so that nothing of ours keeps them, and when to
// look again. w is the Workload of the group, nil if it has none.
func (g *group) uncounted(w *v1beta2.Workload, now time.Time) (pods []*corev1.Pod, again time.Duration) {
	switch {
	case w == nil:
		return slices.Concat(g.leaving, g.lost, slices.DeleteFunc(slices.Clone(g.all), func(p *corev1.Pod) bool { return !hasEnded(p) })), 0
	case g.isEnding, w.DeletionTimestamp != nil, conditions.Is(w, v1beta2.Finished):
		return g.members(), 0
	case g.isAlone, g.isUnreadable:
		return slices.Concat(g.leaving, g.lost), 0
	}
	var kept []*corev1.Pod
	active := int32(0)
	for _, pod := range slices.Concat(g.all, g.lost) {
		switch {
		case pod.DeletionTimestamp != nil && !hasSucceeded(pod) && !g.mayBeReplaced(pod):
			pods = append(pods, pod)
		case pod.DeletionTimestamp != nil && !hasSucceeded(pod), hasFailed(pod):
			kept = append(kept, pod)
		default:
			active++
		}
	}
	if active == 0 && len(g.leaving) == 0 && len(g.lost) == len(kept)+len(pods) && !conditions.Is(w, v1beta2.Evicted) {
		last := time.Time{}
		for _, pod := range g.lost {
			if at := pod.DeletionTimestamp.Time; at.After(last) {
				last = at
			}
		}
		if again = last.Add(replacedWithin).Sub(now); again <= 0 {
			return g.members(), 0
		}
	}
	slices.SortStableFunc(kept, func(a, b *corev1.Pod) int {
		return cmp.Or(endOf(a, now).Compare(endOf(b, now)), cmp.Compare(a.Name, b.Name))
	})
	replaced := int32(len(kept)) + active + int32(len(g.leaving)) - g.total
	return append(pods, kept[:min(max(replaced, 0), int32(len(kept)))]...), again
}

// areLast reports whether none of the other pods of the group is an owner of its Workload. The garbage collector
// deletes the Workload with the last owner.
func (g *group) areLast(pods []*corev1.Pod, owners []metav1.OwnerReference) bool {
	others := slices.DeleteFunc(g.members(), func(p *corev1.Pod) bool { return slices.Contains(pods, p) })
	return len(others) > 0 && !slices.ContainsFunc(queueing.OwnersOf(g.isAlone, others), func(r metav1.OwnerReference) bool {
		return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == r.UID })
	})
}

// endOf is about when a pod ended that has failed or was deleted.
func endOf(pod *corev1.Pod, now time.Time) time.Time {
	if pod.DeletionTimestamp != nil {
		return pod.DeletionTimestamp.Time
	}
	end := time.Time{}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Terminated != nil && s.State.Terminated.FinishedAt.After(end) {
			end = s.State.Terminated.FinishedAt.Time
		}
	}
	if end.IsZero() {
		return now
	}
	return end
}
