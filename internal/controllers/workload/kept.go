package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/workload/protection"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// removeFinalizer takes the finalizer from pods that have it.
func (r *pods) removeFinalizer(ctx context.Context, pods []*corev1.Pod) (err error) {
	for _, pod := range pods {
		if !queueing.IsKept(pod) {
			continue
		}
		after := pod.DeepCopy()
		controllerutil.RemoveFinalizer(after, v1beta2.PodFinalizer)
		patched := r.client.Patch(ctx, after, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(patched) != nil {
			err = errors.Join(err, fmt.Errorf("letting pod %s go: %w", pod.Name, patched))
		}
	}
	return err
}

// isEnding reports whether a namespace is being deleted.
func (r *pods) isEnding(ctx context.Context, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// podsOfEnding queues the pods of a namespace that is being deleted.
func (s *setup) podsOfEnding(ctx context.Context, namespace client.Object) []reconcile.Request {
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	return s.list(ctx, &corev1.PodList{}, client.InNamespace(namespace.GetName()))
}

// removeExcess deletes pods that are more than their group has.
func (r *pods) removeExcess(ctx context.Context, excess []*corev1.Pod) error {
	for _, pod := range excess {
		err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the excess pod %s: %w", pod.Name, err)
		}
		if err == nil {
			r.events.Eventf(pod, nil, corev1.EventTypeNormal, reasonExcessDeleted, "Delete", "Excess pod deleted")
		}
	}
	return nil
}

// standAlone looks after a pod that is not queued. Nothing of ours keeps it. That it waits for admission, and names no
// LocalQueue, is said once: it is queued when it names one.
func (r *pods) standAlone(ctx context.Context, name types.NamespacedName, serving protection.Serving) error {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, name, pod, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	if groupNameOf(pod) != ofNone+pod.Name {
		return nil
	}
	if serving == protection.Served && queueing.IsGated(pod) && pod.DeletionTimestamp == nil && pod.Labels[v1beta2.QueueNameLabel] == "" {
		recorder.Once(r.events, pod, corev1.EventTypeWarning, reasonNotQueued, "Sync", "It has the scheduling gate %s and names no LocalQueue: it waits until its label %s names one", v1beta2.AdmissionGate, v1beta2.QueueNameLabel)
	}
	return r.removeFinalizer(ctx, []*corev1.Pod{pod})
}

// soonest is the shorter of two times to wait, of which 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
