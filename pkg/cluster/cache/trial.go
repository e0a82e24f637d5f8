package cache

import (
	"errors"
	"fmt"
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Try runs a function that may change the model by logged operations, and leaves the model as it was. Changes are
// undone. Causes that were noted wake no job. Jobs and queues do not count as changed. Nodes have their former
// generations, so caches that were not asked meanwhile stay valid. Answers that were worked out meanwhile are void. It
// is for questions between cycles.
func (k *Cache) Try(try func()) {
	k.writer.RequireNoTransaction("a trial begins")
	if k.isStale() {
		k.Settle()
	}
	forgotten := k.forgotten
	k.writer.BeginTrial()
	defer func() {
		k.writer.EndTrial()
		k.owners.questioned, k.forgotten = nil, forgotten // supposed objects never existed
	}()
	try()
}

// isStale reports whether Settle has anything to update besides the list of waiting jobs.
func (k *Cache) isStale() bool {
	return k.writer.Nodes.AreRanksStale() || k.Quota().IsStale() || k.writer.Classes().IsStale || len(k.owners.questioned)+len(k.ranks.requoted) > 0 || k.StandIns.IsStale() ||
		!k.nodes.topology.IsSettled()
}

// Suppose is Try with a PodGroup and its pods, as if they had just been submitted. They are applied like events, and
// are removed when the function returns. The function gets their job. The objects are not changed, and the caller fills
// in what the API server would. It is an error if one of them exists or is invalid. The function is then not called.
//
// A function is called before each pod is looked at. It may panic to end the trial.
//
// Pending pods keep their classes. So if the supposed pods are the first whose affinity or spread selects by a label,
// that label of other pods is not considered.
func (k *Cache) Suppose(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, step func(), look func(j *cluster.Job)) error {
	supposed, err := k.supposable(group, pods, step)
	if err != nil {
		return err
	}
	k.Try(func() {
		set := 0
		defer func() {
			k.Undo(0)
			for _, o := range slices.Backward(supposed[:set]) {
				o.apply(k)
			}
		}()
		for i := range supposed {
			step()
			Set(supposed[i]).apply(k)
			set++
		}
		k.owners.settle()
		j := k.Job(idOf(group))
		for _, t := range j.Internal.Tasks {
			if t.Status == cluster.Pending {
				step()
				k.writer.Tasks.SetClass(t, false) // the affinity terms of its siblings are known now
			}
		}
		look(j)
	})
	return nil
}

// supposable checks the objects, and returns copies of them in the order in which they are applied. They are removed in
// the opposite order.
func (k *Cache) supposable(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, step func()) ([]Delete, error) {
	if group == nil || group.Name == "" || group.Namespace == "" {
		return nil, errors.New("the PodGroup has no name or no namespace")
	}
	id := idOf(group)
	switch j := k.Job(id); {
	case j != nil && j.Group != nil:
		return nil, fmt.Errorf("PodGroup %s exists already", id)
	case j != nil:
		return nil, fmt.Errorf("pods name PodGroup %s already", id)
	}
	group = group.DeepCopy()
	group.UID = types.UID("supposed " + id.String())
	supposed := []Delete{{group}}
	seen := map[string]bool{}
	for _, pod := range pods {
		step()
		key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
		_, isForeignPod := k.owners.foreignPods[key]
		switch {
		case pod.Name == "":
			return nil, errors.New("a pod has no name")
		case pod.Namespace != group.Namespace:
			return nil, fmt.Errorf("pod %s is not in the namespace of PodGroup %s", key, id)
		case k.Task(key) != nil || isForeignPod:
			return nil, fmt.Errorf("pod %s exists already", key)
		case seen[pod.Name]:
			return nil, fmt.Errorf("pod %s is there twice", key)
		case pod.Spec.NodeName != "":
			return nil, fmt.Errorf("pod %s has a node already: spec.nodeName is %q", key, pod.Spec.NodeName)
		case !k.isOurName(pod.Spec.SchedulerName):
			return nil, fmt.Errorf("pod %s is not for this scheduler: spec.schedulerName is %q", key, pod.Spec.SchedulerName)
		}
		seen[pod.Name] = true
		pod = pod.DeepCopy()
		pod.UID = types.UID("supposed " + key.String())
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, schedulingv1beta1.KubeGroupNameAnnotationKey, group.Name)
		supposed = append(supposed, Delete{pod})
	}
	return supposed, nil
}
