package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// isManaged reports whether a job is kept in step with a Workload: it names a LocalQueue, or it holds quota of one that
// it has named. A Job that does not is suspended where Jobs wait until they name one, and its Workload goes. A Job that
// another object has made which a queue takes, or could take, is left to that.
func (r *jobs) isManaged(ctx context.Context, job queueing.Job) (bool, error) {
	object := job.Object()
	top, err := r.owners.Top(ctx, object, r.state.policy().External)
	if err != nil {
		return false, err
	}
	if top != nil {
		return false, errors.Join(r.leaveToOwner(ctx, job), r.tellNotServed(ctx, object, queueing.ArePodsQueued(job), top))
	}
	if object.GetLabels()[v1beta2.QueueNameLabel] != "" {
		return true, nil
	}
	w, err := r.workloadOf(ctx, job)
	if err != nil {
		return false, err
	}
	if w != nil {
		_, _, isFinished := job.Finished()
		isHeld, isEvicted := conditions.Is(w, v1beta2.QuotaReserved), conditions.Is(w, v1beta2.Evicted)
		switch {
		case isFinished, w.DeletionTimestamp != nil, conditions.Is(w, v1beta2.Finished), isHeld && (isEvicted || !job.IsSuspended()):
			return true, nil // what runs, or stops, is charged to its end
		case w.Name == queueing.WorkloadName(r.kind.GroupVersionKind, object.GetName(), object.GetUID()):
			return false, r.part(ctx, job, w, "the job names no LocalQueue any more")
		}
	}
	return false, r.holdUnnamed(ctx, job)
}

// holdUnnamed suspends a Job that names no LocalQueue, where such Jobs wait.
func (r *jobs) holdUnnamed(ctx context.Context, job queueing.Job) error {
	if _, _, isFinished := job.Finished(); !r.kind.HoldsUnnamed || isFinished || job.IsSuspended() || !r.state.policy().HoldsUnnamed {
		return nil
	}
	if is, err := r.manages(ctx, job.Object().GetNamespace()); err != nil || !is {
		return err
	}
	return r.suspend(ctx, job, "it names no LocalQueue, and manageJobsWithoutQueueName makes it wait until it does")
}

// manages reports whether Jobs of a namespace that name no LocalQueue are managed.
func (r *writer) manages(ctx context.Context, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	policy := r.state.policy()
	return policy.Manages(namespace.Labels), nil
}

// leaveToOwner deletes the Workload that was made of a Job which is not queued by itself. The Job stays as it is: what
// has made it starts and stops it.
func (r *jobs) leaveToOwner(ctx context.Context, job queueing.Job) error {
	object, w := job.Object(), &v1beta2.Workload{}
	name := queueing.WorkloadName(r.kind.GroupVersionKind, object.GetName(), object.GetUID())
	err := r.client.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, w)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading Workload %s: %w", name, err)
	case w.DeletionTimestamp != nil:
		return removeFinalizer(ctx, r.client, w)
	}
	return r.part(ctx, job, w, "the job is not queued by itself, since another object has made it")
}

// keptTold is how many owners are remembered of which was said that they are not served, and toldFor how long.
const (
	keptTold = 4096
	toldFor  = 24 * time.Hour
)

// tellNotServed says of an object, once also over restarts, that no Workload is made of its kind, where its users may
// think that one is. There it or what it has made names a LocalQueue, or what names none is managed in its namespace.
// Where the pods are queued, or its own controller makes Workloads, nothing is to be said.
func (r *writer) tellNotServed(ctx context.Context, made client.Object, arePodsQueued bool, top *metav1.OwnerReference) error {
	kind, namespace := queueing.KindOf(top), made.GetNamespace()
	if _, isTold := r.told.Get(top.UID); isTold || queueing.IsServed(kind) || slices.Contains(r.state.policy().External, kind) || arePodsQueued {
		return nil
	}
	why, err := r.whyManaged(ctx, made, top)
	if err != nil || why == "" {
		return err
	}
	r.told.Add(top.UID, true, toldFor)
	object := &corev1.ObjectReference{APIVersion: top.APIVersion, Kind: top.Kind, Namespace: namespace, Name: top.Name, UID: top.UID}
	recorder.Once(r.events, object, corev1.EventTypeWarning, reasonNotSupported, "Sync", "Hekla makes no Workload of the kind %s, so its pods run unmanaged although %s. "+
		"Put the label %s and those of a group on its pod templates, or see integrations.externalFrameworks", top.Kind, why, v1beta2.QueueNameLabel)
	return nil
}

// whyManaged says why users may think that an object is queued, "" if they may not.
func (r *writer) whyManaged(ctx context.Context, made client.Object, top *metav1.OwnerReference) (string, error) {
	queue := made.GetLabels()[v1beta2.QueueNameLabel]
	if queue == "" {
		labels, err := r.owners.Labels(ctx, made.GetNamespace(), top)
		if err != nil {
			return "", err
		}
		queue = labels[v1beta2.QueueNameLabel]
	}
	if queue != "" {
		return "it is of LocalQueue " + queue, nil
	}
	if is, err := r.manages(ctx, made.GetNamespace()); err != nil || !is {
		return "", err
	}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: made.GetNamespace(), Name: v1beta2.DefaultLocalQueueName}, &v1beta2.LocalQueue{})
	switch {
	case apierrors.IsNotFound(err) && !r.state.policy().HoldsUnnamed:
		return "", nil
	case apierrors.IsNotFound(err):
		return "Jobs of its namespace wait until they name a LocalQueue", nil
	case err != nil:
		return "", fmt.Errorf("reading LocalQueue %s: %w", v1beta2.DefaultLocalQueueName, err)
	}
	return "its namespace has a LocalQueue " + v1beta2.DefaultLocalQueueName, nil
}
