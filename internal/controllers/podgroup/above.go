package podgroup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/queueing"
	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// replacing are the kinds that make what they own again, one after the other. Each of these is a gang of its own, so
// the owners are followed no further.
var replacing = []metav1.TypeMeta{
	{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
	{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob"},
}

// lineage are the owners of a pod, its controller first.
type lineage struct {
	owners []ancestor
	// problem says why the owners further up do not count, "" if they do.
	problem string
}

type ancestor struct {
	reference   metav1.OwnerReference
	annotations map[string]string
}

// follow reads the owners above the controller of a pod.
func (r *Reconciler) follow(ctx context.Context, pod *corev1.Pod, controller *metav1.PartialObjectMetadata) (lineage, error) {
	line := lineage{owners: []ancestor{{*metav1.GetControllerOfNoCopy(pod), controller.Annotations}}}
	for object := controller; len(line.owners) < queueing.MostOwners; {
		reference := metav1.GetControllerOfNoCopy(object)
		if reference == nil || slices.Contains(replacing, metav1.TypeMeta{APIVersion: reference.APIVersion, Kind: reference.Kind}) {
			return line, nil
		}
		var err error
		object, err = queueing.ReadOwner(ctx, r.live, pod.Namespace, reference)
		switch {
		case queueing.IsUnreadable(err):
			line.problem = fmt.Sprintf("the annotations of %s %s do not count: %s", reference.Kind, reference.Name, err)
			return line, nil
		case err != nil:
			return line, err
		case object == nil:
			return line, nil
		}
		line.owners = append(line.owners, ancestor{*reference, object.Annotations})
	}
	return line, nil
}

// maker returns the place of the owner that makes the PodGroup: the topmost one that says how many pods must start
// together. It is 0, for the controller of the pod, if no owner says so.
func (l *lineage) maker() int {
	for i, o := range slices.Backward(l.owners) {
		if _, says := o.annotations[scheduling.GroupMinMemberAnnotationKey]; says {
			return i
		}
	}
	return 0
}

// annotations are those of all owners. Of two, the one nearer to the pod counts, but what must start together the maker
// says.
func (l *lineage) annotations(maker int) map[string]string {
	all := map[string]string{}
	for i, o := range slices.Backward(l.owners) {
		for key, value := range o.annotations {
			if i == maker || !slices.Contains(groupbuilder.MinimumKeys, key) {
				all[key] = value
			}
		}
	}
	return all
}

// ignored says which annotations of a pod, and of the owners below the maker, do not count.
func (l *lineage) ignored(pod *corev1.Pod, maker int) (problems []string) {
	of := &l.owners[maker].reference
	tell := func(whose string, annotations map[string]string) {
		for _, key := range groupbuilder.MinimumKeys {
			if value, says := annotations[key]; says && maker > 0 {
				problems = append(problems, fmt.Sprintf("annotation %s: %q of %s does not count: %s %s makes the PodGroup", key, value, whose, of.Kind, of.Name))
			}
		}
	}
	tell("the pod", pod.Annotations)
	for i := range l.owners[:maker] {
		o := &l.owners[i]
		tell(o.reference.Kind+" "+o.reference.Name, o.annotations)
	}
	return problems
}

// gang is the PodGroup that a pod belongs to by its owners.
type gang struct {
	name        string
	maker       *metav1.OwnerReference // nil if it is the controller of the pod, or the pod
	annotations map[string]string      // of the owners
	problems    []string
}

// gangOf finds the gang of a pod. Where pods of the same controller are in a PodGroup of their own already, further
// ones join them.
func (r *Reconciler) gangOf(ctx context.Context, model *corev1.Pod, pods []*corev1.Pod, of owner) (gang, error) {
	own := gang{name: groupbuilder.PodGroupName(model)}
	if of.object == nil || !r.inheritFromOwners {
		return own, nil
	}
	line, err := r.follow(ctx, model, of.object)
	if err != nil {
		return gang{}, err
	}
	if line.problem != "" {
		own.problems = append(own.problems, line.problem)
	}
	maker := line.maker()
	if hasOwn := slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return isAlive(pod) && pod.Annotations[scheduling.KubeGroupNameAnnotationKey] == own.name
	}); hasOwn && maker > 0 {
		above := &line.owners[maker].reference
		own.problems = append(own.problems, fmt.Sprintf("annotation %s of %s %s does not count: pods of %s %s have a PodGroup of their own already",
			scheduling.GroupMinMemberAnnotationKey, above.Kind, above.Name, line.owners[0].reference.Kind, line.owners[0].reference.Name))
		maker = 0
	}
	own.annotations, own.problems = line.annotations(maker), append(own.problems, line.ignored(model, maker)...)
	if maker > 0 {
		reference := &line.owners[maker].reference
		own.name = scheduling.PodGroupNamePrefix + string(reference.UID)
		own.maker = &metav1.OwnerReference{APIVersion: reference.APIVersion, Kind: reference.Kind, Name: reference.Name, UID: reference.UID, Controller: ptr.To(true)}
	}
	return own, nil
}

// mayBeOfOwnerAbove reports whether the PodGroup that a pod names may be one that an owner above its controller has
// made.
func mayBeOfOwnerAbove(pod *corev1.Pod, named string) bool {
	return strings.HasPrefix(named, scheduling.PodGroupNamePrefix) && metav1.GetControllerOfNoCopy(pod) != nil
}

// hasJoinedAbove reports whether a pod has been put into the PodGroup of an owner above its controller, which then
// counts it.
func hasJoinedAbove(before, after *corev1.Pod) bool {
	named := after.Annotations[scheduling.KubeGroupNameAnnotationKey]
	return named != before.Annotations[scheduling.KubeGroupNameAnnotationKey] && named != groupbuilder.PodGroupName(after) && mayBeOfOwnerAbove(after, named)
}

// join adds to a PodGroup of an owner further up what its pods say together: the newest of them does not say it for
// all.
func (g *gang) join(wanted *scheduling.PodGroup, pods []*corev1.Pod) {
	wanted.Annotations = maps.Clone(wanted.Annotations)
	wanted.Annotations[scheduling.GroupMinMemberAnnotationKey] = fmt.Sprint(wanted.Spec.MinMember) // so it is looked at when pods come
	alive := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !isAlive(pod) })
	if g.annotations[scheduling.GroupMinResourcesAnnotationKey] == "" {
		needed := groupbuilder.MinimumOf(alive, wanted.Spec.MinMember)
		wanted.Spec.MinResources = &needed
	}
	if slices.ContainsFunc(alive, func(pod *corev1.Pod) bool { return pod.Spec.PriorityClassName != wanted.Spec.PriorityClassName }) {
		wanted.Spec.PriorityClassName = "" // the lowest of the pods counts
	}
}

// ReasonSchedulingGroup: the pod names a PodGroup of Kubernetes, which is not read.
const ReasonSchedulingGroup = "SchedulingGroupNotSupported"

// tellSchedulingGroup names the group of Kubernetes that a pod is in, because it does not count.
func (r *Reconciler) tellSchedulingGroup(pod *corev1.Pod) {
	if of := pod.Spec.SchedulingGroup; of != nil {
		r.events.Eventf(pod, nil, corev1.EventTypeWarning, ReasonSchedulingGroup, "Group", "spec.schedulingGroup names PodGroup %q of scheduling.k8s.io, which Hekla does not read: "+
			"the pod starts without the others of it. Use a PodGroup of scheduling.volcano.sh, or the annotation %s of the owner",
			ptr.Deref(of.PodGroupName, ""), scheduling.GroupMinMemberAnnotationKey)
	}
}

// withMembers returns some pods of a PodGroup and all its others.
func (r *Reconciler) withMembers(ctx context.Context, group types.NamespacedName, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	others, err := r.members(ctx, group)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if !slices.ContainsFunc(others, func(other *corev1.Pod) bool { return other.UID == pod.UID }) {
			others = append(others, pod)
		}
	}
	return others, nil
}
