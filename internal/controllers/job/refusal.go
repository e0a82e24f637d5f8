package job

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// longestRefusal is the length to which the record of a refusal is cut, in bytes. A message of the API server may list
// every quota.
const longestRefusal = 1024

// noteRefusal writes to the PodGroup of a Job why the API server refuses its pods, and removes that once it does not.
// So the scheduler, which sees no Jobs, can say why the pods are missing.
func noteRefusal(ctx context.Context, c client.Client, group *scheduling.PodGroup, refused error) error {
	message := ""
	if refused != nil {
		message = refused.Error()
		message = strings.ToValidUTF8(message[:min(len(message), longestRefusal)], "")
	}
	if group.Annotations[scheduling.PodsRefusedKey] == message {
		return nil
	}
	changed := group.DeepCopy()
	if message == "" {
		delete(changed.Annotations, scheduling.PodsRefusedKey)
	} else {
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations[scheduling.PodsRefusedKey] = message
	}
	return client.IgnoreNotFound(c.Patch(ctx, changed, client.MergeFrom(group)))
}

// replaceRefused deletes the pods that their kubelets have refused and that are due, so that others are made. It
// returns the pods as they count from now on. isPart says that there was no time for all.
func (r *Reconciler) replaceRefused(
	ctx context.Context, job *batch.Job, pods []*corev1.Pod, now time.Time,
) (counted []*corev1.Pod, refused lifecycle.Refused, isPart bool, err error) {
	if !lifecycle.MakesPods(job.Status.State.Phase) {
		return pods, refused, false, nil
	}
	name := client.ObjectKeyFromObject(job)
	counted, refused = lifecycle.SetRefusedAside(pods, func(pod *corev1.Pod) int {
		return r.memory.countRefusal(name, job.UID, pod.Name, pod.UID, now)
	}, now)
	deleted, err := r.deletePods(ctx, refused.Due)
	return replaced(counted, deleted), refused, len(deleted) < len(refused.Due), err
}
