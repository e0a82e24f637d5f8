package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// maxParallelRequests limits the requests in flight for one Job. More do not make an API server faster, and would let
// one large Job use up the priority level that all controllers share.
const maxParallelRequests = 64

// maxAtATime is how many pods of a Job are created, and how many deleted, in one reconcile. Then the Job is reconciled
// again, so that Commands are carried out while a large Job is created, and other Jobs have their turn. The memory of a
// reconcile does not grow with the size of the Job.
const maxAtATime = 500

// longestTurn is after how long a reconcile sends no more such requests. With a slow API server, other Jobs would wait
// too long for their turn.
const longestTurn = time.Second

// maxUnseen is how many created pods of a Job the watch may not have delivered yet. If the watch is that far behind,
// more pods would only make it worse.
const maxUnseen = 4 * maxAtATime

// createPods creates the missing pods. It returns what counts of them, and of pods from an earlier reconcile that the
// watch has not delivered yet. isPart says that there was no time for all. The error is the first refusal.
func (r *Reconciler) createPods(
	ctx context.Context, job *batch.Job, missing []lifecycle.Slot, unseen sets.Set[string],
) (pods []*corev1.Pod, isPart bool, err error) {
	name, plugins, names := client.ObjectKeyFromObject(job), pluginsOf(job), lifecycle.SlotsOf(job)
	var awaited []*corev1.Pod
	for _, pod := range slices.Sorted(maps.Keys(unseen)) {
		if slot, isWanted := names.Find(pod); isWanted {
			awaited = append(awaited, counted(job, slot))
		}
	}
	create := make([]*corev1.Pod, len(missing))
	slots := make(map[*corev1.Pod]lifecycle.Slot, len(missing))
	for i, slot := range missing {
		create[i] = counted(job, slot)
		slots[create[i]] = slot
	}
	began := time.Now()
	created, err := slowStart(create, func(made *corev1.Pod) error {
		if time.Since(began) > longestTurn {
			return errNotTried
		}
		// Built only now, so that memory holds no more pods than requests are in flight.
		slot := slots[made]
		task := &job.Spec.Tasks[slot.Task]
		pod := builder.Pod(job, task, slot.Index)
		plugins.EditPod(pod, task, slot.Index)
		r.memory.create(name, job.UID, pod.Name, time.Now())
		if err := r.createPod(ctx, job, pod); err != nil {
			r.memory.refused(name, job.UID, pod.Name)
			return err
		}
		r.memory.created(name, job.UID, pod.Name, pod.UID)
		if isFirstTry(job) {
			// Both times come from the API server, in whole seconds of one clock.
			r.metrics.PodCreated(pod.CreationTimestamp.Sub(job.CreationTimestamp.Time))
		}
		made.Annotations, made.DeletionTimestamp, made.Status.Phase = pod.Annotations, pod.DeletionTimestamp, pod.Status.Phase
		return nil
	})
	return append(awaited, created...), err == nil && len(created) < len(missing), err
}

// counted has the fields of a pod that count.
func counted(job *batch.Job, slot lifecycle.Slot) *corev1.Pod {
	task := job.Spec.Tasks[slot.Task].Name
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace,
			Name:      builder.PodName(job.Name, task, slot.Index),
			Annotations: map[string]string{
				batch.TaskSpecKey:   task,
				batch.TaskIndexKey:  strconv.Itoa(slot.Index),
				batch.JobVersionKey: strconv.Itoa(int(job.Status.Version)),
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// isFirstTry reports whether a Job has not run yet and was never restarted.
func isFirstTry(job *batch.Job) bool {
	return job.Status.Version == 0 && job.Status.RetryCount == 0 &&
		(job.Status.State.Phase == "" || job.Status.State.Phase == batch.Pending)
}

// createPod creates one pod. If a pod with its name exists, it must be the Job's.
func (r *Reconciler) createPod(ctx context.Context, job *batch.Job, pod *corev1.Pod) error {
	err := r.client.Create(ctx, pod)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return err
	}
	if metav1.IsControlledBy(pod, job) {
		return nil
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return fmt.Errorf("pod %s/%s exists and belongs to %s %s with UID %s",
			pod.Namespace, pod.Name, owner.Kind, owner.Name, owner.UID)
	}
	return fmt.Errorf("pod %s/%s exists and has no owner", pod.Namespace, pod.Name)
}

// deletePods deletes the pods, maxAtATime at most and as many as there is time for, and returns copies of them that are
// marked as terminating. A pod that is deleted already, or was replaced under its name, counts as deleted.
func (r *Reconciler) deletePods(ctx context.Context, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	pods = pods[:min(len(pods), maxAtATime)]
	now := metav1.Now()
	copies := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		marked := *pod
		marked.DeletionTimestamp = &now
		copies[i] = &marked
	}
	return slowStart(copies, func(pod *corev1.Pod) error {
		if time.Since(now.Time) > longestTurn {
			return errNotTried
		}
		err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}

// slowStart calls do for every pod, in waves of 1, 4, 16, … of which at most maxParallelRequests are under way at a
// time. It starts no more after the first error. The other pods of a Job would mostly be refused for the same reason,
// and a full quota should cost one request and not a thousand. It returns the pods that went well, in order, and the
// first error.
func slowStart(pods []*corev1.Pod, do func(*corev1.Pod) error) (done []*corev1.Pod, first error) {
	for size := 1; len(pods) > 0 && first == nil; size *= 4 {
		wave := pods[:min(size, len(pods))]
		pods = pods[len(wave):]
		for i, err := range inParallel(wave, do) {
			switch {
			case err == nil:
				done = append(done, wave[i])
			case first == nil && !errors.Is(err, errNotTried):
				first = fmt.Errorf("pod %s: %w", wave[i].Name, err)
			}
		}
	}
	return done, first
}

// errNotTried is the result of a pod that was left out because another one was refused.
var errNotTried = errors.New("not tried")

// inParallel calls do for every pod until one fails, and returns the results in the order of the pods.
func inParallel(pods []*corev1.Pod, do func(*corev1.Pod) error) []error {
	errs := make([]error, len(pods))
	var next atomic.Int64
	var refused atomic.Bool
	var group sync.WaitGroup
	for range min(len(pods), maxParallelRequests) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(pods); i = int(next.Add(1)) - 1 {
				if errs[i] = errNotTried; refused.Load() {
					continue
				}
				if errs[i] = do(pods[i]); errs[i] != nil {
					refused.Store(true)
				}
			}
		})
	}
	group.Wait()
	return errs
}

// replaced returns the pods with those of the same UID in marked taking their places.
func replaced(pods, marked []*corev1.Pod) []*corev1.Pod {
	if len(marked) == 0 {
		return pods
	}
	by := make(map[types.UID]*corev1.Pod, len(marked))
	for _, pod := range marked {
		by[pod.UID] = pod
	}
	result := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		result[i] = pod
		if substitute := by[pod.UID]; substitute != nil {
			result[i] = substitute
		}
	}
	return result
}
