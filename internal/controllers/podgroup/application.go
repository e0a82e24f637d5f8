package podgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// ReasonApplicationQueue is the reason of an Event on a pod that names another queue than its application has.
const ReasonApplicationQueue = "ApplicationQueue"

// queuesByPath is the index of Queues by their path in YuniKorn.
const queuesByPath = "path"

func addPathIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &scheduling.Queue{}, queuesByPath, func(object client.Object) []string {
		if path := object.GetAnnotations()[scheduling.QueuePathKey]; path != "" {
			return []string{path}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing Queues by %s: %w", queuesByPath, err)
	}
	return nil
}

// first returns the pod by which the PodGroup of an application is made: the first one created that is alive. It is nil when none is
// alive.
func first(pods []*corev1.Pod) *corev1.Pod {
	var earliest *corev1.Pod
	for _, pod := range pods {
		if isAlive(pod) && (earliest == nil || later(pod, earliest) < 0) {
			earliest = pod
		}
	}
	return earliest
}

// ensureApplication makes the PodGroup of an application by its first pod. Later pods change nothing of it. Those that name another
// queue are told so.
func (r *Reconciler) ensureApplication(ctx context.Context, model *corev1.Pod, joining []*corev1.Pod, current *scheduling.PodGroup) error {
	queue := ""
	if current == nil {
		owner, ownerProblem, err := r.owner(ctx, model)
		if err != nil {
			return err
		}
		around, err := r.surroundings(ctx, model, owner)
		if err != nil {
			return err
		}
		wanted, problems := groupbuilder.ApplicationGroup(model, around)
		r.tell(model, ownerProblem, problems...)
		if current, err = r.create(ctx, wanted); err != nil {
			return err
		}
		queue = wanted.Spec.Queue
	}
	if current != nil {
		if !isOurs(current) {
			return belongsToOthers(current)
		}
		queue = current.Spec.Queue
	}
	for _, pod := range joining {
		named := pod.Annotations[scheduling.QueueNameAnnotationKey]
		if named == "" {
			var err error
			if named, _, err = r.labelQueue(ctx, pod); err != nil {
				return err
			}
		}
		if named != "" && named != queue {
			r.events.Eventf(pod, nil, corev1.EventTypeWarning, ReasonApplicationQueue, "Group",
				"names queue %s; it goes to queue %s, where the application %s is since its first pod",
				named, queue, yunikorn.ApplicationID(pod.Labels, pod.Annotations))
		}
	}
	return nil
}

// labelQueue returns the Queue that YuniKorn's labels of a pod name, and a sentence if they name none that there can be.
func (r *Reconciler) labelQueue(ctx context.Context, pod *corev1.Pod) (queue, problem string, err error) {
	path := ""
	if r.readsYuniKorn {
		path = yunikorn.QueuePath(pod.Labels, pod.Annotations)
	}
	if path == "" {
		return "", "", nil
	}
	var problems []error
	byPath := func(path string) string {
		list := &scheduling.QueueList{}
		problems = append(problems, r.client.List(ctx, list, client.MatchingFields{queuesByPath: path}, client.UnsafeDisableDeepCopy))
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		if len(names) == 0 {
			return ""
		}
		return slices.Min(names)
	}
	exists := func(name string) bool {
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, &scheduling.Queue{})
		if !apierrors.IsNotFound(err) {
			problems = append(problems, err)
		}
		return err == nil
	}
	queue, problem = groupbuilder.FindQueue(path, byPath, exists)
	if err := errors.Join(problems...); err != nil {
		return "", "", fmt.Errorf("finding the queue %q: %w", path, err)
	}
	return queue, problem, nil
}
