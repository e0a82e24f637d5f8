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

// first returns the pod by which the PodGroup of an application is made: the first one created that is alive. It is nil
// when none is alive.
func first(pods []*corev1.Pod) *corev1.Pod {
	var earliest *corev1.Pod
	for _, pod := range pods {
		if isAlive(pod) && (earliest == nil || groupbuilder.CompareMembers(pod, earliest) < 0) {
			earliest = pod
		}
	}
	return earliest
}

// ensureApplication makes the PodGroup of an application by its first pod. Later pods change nothing of it; the next
// pod after all have ended begins the application again. It returns the roles that pods have in it. Pods that name
// another queue, or a task group that it does not have, are told so.
func (r *Reconciler) ensureApplication(ctx context.Context, model *corev1.Pod, pods, joining []*corev1.Pod, current *scheduling.PodGroup) (func(*corev1.Pod) string, error) {
	if current != nil && !isOurs(current) {
		return nil, belongsToOthers(current)
	}
	if current == nil || !hasJoined(pods) {
		var err error
		if current, err = r.beginApplication(ctx, model, current); err != nil {
			return nil, err
		}
	}
	for _, pod := range joining {
		if err := r.tellQueue(ctx, pod, current.Spec.Queue); err != nil {
			return nil, err
		}
		_, problem := groupbuilder.TaskGroupRole(pod, current)
		r.tell(pod, "", problem)
	}
	return func(pod *corev1.Pod) string {
		role, _ := groupbuilder.TaskGroupRole(pod, current)
		return role
	}, nil
}

// hasJoined reports whether any pod that is alive is in its PodGroup.
func hasJoined(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return isAlive(pod) && pod.Annotations[scheduling.KubeGroupNameAnnotationKey] != ""
	})
}

// beginApplication makes the PodGroup of an application by its first pod, or brings that of an earlier run up to date.
func (r *Reconciler) beginApplication(ctx context.Context, model *corev1.Pod, current *scheduling.PodGroup) (*scheduling.PodGroup, error) {
	owner, err := r.owner(ctx, model)
	if err != nil {
		return nil, err
	}
	of := gang{}
	if owner.object != nil && r.inheritFromOwners {
		of.annotations = owner.object.Annotations
	}
	around, err := r.surroundings(ctx, model, owner, &of)
	if err != nil {
		return nil, err
	}
	wanted, problems := groupbuilder.ApplicationGroup(model, around)
	r.tell(model, owner.problem, problems...)
	if current == nil {
		if current, err = r.create(ctx, wanted); err != nil || current == nil {
			return wanted, err
		}
		if !isOurs(current) {
			return nil, belongsToOthers(current)
		}
	}
	return wanted, r.update(ctx, current, wanted)
}

// tellQueue tells a pod that names another queue than that of its application.
func (r *Reconciler) tellQueue(ctx context.Context, pod *corev1.Pod, queue string) error {
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
	return nil
}

// labelQueue returns the Queue that YuniKorn's labels of a pod name, and a sentence if they name none that there can
// be.
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
