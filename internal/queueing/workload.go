package queueing

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Lookup finds the objects that jobs and Workloads name. That an object does not exist is an error.
type Lookup interface {
	// WorkloadPriorityClass is the one of this name.
	WorkloadPriorityClass(name string) (*v1beta2.WorkloadPriorityClass, error)
	// PriorityClass is the one of this name, or the default one if the name is empty; then nil if there is none.
	PriorityClass(name string) (*schedulingv1.PriorityClass, error)
	// Flavor is the one of this name.
	Flavor(name string) (*v1beta2.ResourceFlavor, error)
}

// NewWorkload is the Workload of a job, as it is created. The error is that of a priority class.
func NewWorkload(job Job, of Lookup) (*v1beta2.Workload, error) {
	object, kind := job.Object(), job.Kind().GroupVersionKind
	w := &v1beta2.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: WorkloadName(kind, object.GetName(), object.GetUID()),
			Labels:          map[string]string{v1beta2.JobUIDLabel: string(object.GetUID())},
			Finalizers:      []string{v1beta2.ResourceInUseFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object, kind)},
		},
		Spec: v1beta2.WorkloadSpec{PodSets: job.PodSets(), QueueName: object.GetLabels()[v1beta2.QueueNameLabel]},
	}
	gate(w, object.GetAnnotations())
	w.Spec.MaximumExecutionTimeSeconds = maximumTime(object)
	return w, prioritize(w, object.GetLabels()[v1beta2.PriorityClassLabel], of)
}

// gate makes a Workload wait for those that gate the admission of its job.
func gate(w *v1beta2.Workload, annotations map[string]string) {
	if by := annotations[v1beta2.AdmissionGatedByAnnotation]; by != "" {
		w.Annotations = map[string]string{v1beta2.AdmissionGatedByAnnotation: by}
	}
}

// Group is pods that are queued together, by themselves.
type Group struct {
	Namespace, Name string // of the Workload
	IsAlone         bool   // it is one pod that names no group
	Total           int32  // how many pods there are to be
	Pods            []*corev1.Pod
}

// Workload is that of the group, as it is created. The error is that of a priority class.
func (g *Group) Workload(of Lookup) (*v1beta2.Workload, error) {
	first := g.Pods[0]
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name, Finalizers: []string{v1beta2.ResourceInUseFinalizer}}}
	w.Spec.QueueName, w.Spec.PodSets = first.Labels[v1beta2.QueueNameLabel], podSetsOf(g.Pods, g.Total)
	if g.IsAlone {
		w.Labels = map[string]string{v1beta2.JobUIDLabel: string(first.UID)}
		w.Spec.PodSets[0].Name = v1beta2.DefaultPodSetName
	}
	w.OwnerReferences = OwnersOf(g.IsAlone, g.Pods)
	gate(w, first.Annotations)
	if !g.IsAlone {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, v1beta2.GroupWorkloadAnnotation, "true")
	}
	return w, prioritize(w, first.Labels[v1beta2.PriorityClassLabel], of)
}

// MembersOf are the pods that the Workload of a group is made of, nil while they are not as many as it has. Those that
// have succeeded count as well: when its Workload is deleted meanwhile, no others come in their place. Of those that
// wait the oldest come first. With fast admission one pod that waits is enough.
func MembersOf(waiting, succeeded []*corev1.Pod, total int32) []*corev1.Pod {
	if len(waiting) == 0 || waiting[0].Annotations[v1beta2.PodGroupFastAdmissionAnnotation] != "true" && len(waiting)+len(succeeded) < int(total) {
		return nil
	}
	lacks := max(int(total)-len(succeeded), 0)
	return slices.Concat(waiting[:min(len(waiting), lacks)], succeeded)
}

// FreePlaces are how many more pods of each podset of a group may start: no more than were admitted besides those that
// run, and than the podset has besides those that have started and not failed. The place of a pod that has succeeded
// may have been given up before the others were admitted, and is given to no other pod.
func FreePlaces(sets []v1beta2.PodSet, infos []PodSetInfo, started []*corev1.Pod) map[string]int32 {
	left, free := map[string]int32{}, map[string]int32{}
	for i := range sets {
		left[sets[i].Name] = sets[i].Count
	}
	for i := range infos {
		free[infos[i].Name] = infos[i].Count
	}
	for _, pod := range started {
		set := pod.Labels[v1beta2.PodSetLabel]
		left[set]--
		if pod.Status.Phase != corev1.PodSucceeded {
			free[set]--
		}
	}
	for set := range free {
		free[set] = min(free[set], left[set])
	}
	return free
}

// IsGated reports whether a pod waits to be admitted with its Workload.
func IsGated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == v1beta2.AdmissionGate })
}

// KeepPod keeps a pod that is queued by itself when it is deleted, until it need not be counted any more. One
// that a controller has made is not: that may wait until it is gone, and make another of its name.
func KeepPod(pod *metav1.ObjectMeta) {
	if metav1.GetControllerOfNoCopy(pod) == nil && pod.DeletionTimestamp == nil && !IsKept(pod) {
		pod.Finalizers = append(pod.Finalizers, v1beta2.PodFinalizer)
	}
}

// IsKept reports whether a pod has the finalizer of those that are queued by themselves.
func IsKept(pod metav1.Object) bool {
	return slices.Contains(pod.GetFinalizers(), v1beta2.PodFinalizer)
}

// OwnersOf are the pods of a group, and what controls them, as owners of their Workload: it goes with the last of them.
func OwnersOf(isAlone bool, pods []*corev1.Pod) []metav1.OwnerReference {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	var references, controllers []metav1.OwnerReference
	for _, pod := range pods {
		if isAlone {
			return []metav1.OwnerReference{*metav1.NewControllerRef(pod, kind)}
		}
		references = append(references, metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: pod.Name, UID: pod.UID})
		of := metav1.GetControllerOfNoCopy(pod)
		if of != nil && !slices.ContainsFunc(controllers, func(o metav1.OwnerReference) bool { return o.UID == of.UID }) {
			controllers = append(controllers, metav1.OwnerReference{APIVersion: of.APIVersion, Kind: of.Kind, Name: of.Name, UID: of.UID})
		}
	}
	return slices.Concat(references, controllers)
}

// prioritize gives a Workload the priority of its class: the WorkloadPriorityClass that the job names, else the
// PriorityClass of its pods, else the default one, else 0. The class is written in the spellings of both versions: a
// client of one drops that of the other.
func prioritize(w *v1beta2.Workload, class string, of Lookup) error {
	w.Spec.PriorityClassRef, w.Spec.PriorityClassName, w.Spec.PriorityClassSource = nil, "", ""
	if class != "" {
		found, err := of.WorkloadPriorityClass(class)
		if err != nil {
			return err
		}
		w.Spec.Priority = &found.Value
		w.Spec.PriorityClassRef = &v1beta2.PriorityClassRef{Group: v1beta2.WorkloadPriorityClassGroup, Kind: v1beta2.WorkloadPriorityClassKind, Name: class}
		SpellPriorityClass(w)
		return nil
	}
	for i := range w.Spec.PodSets {
		if class = w.Spec.PodSets[i].Template.Spec.PriorityClassName; class != "" {
			break
		}
	}
	found, err := of.PriorityClass(class)
	if err != nil || found == nil {
		w.Spec.Priority = ptr.To(int32(0))
		return err
	}
	w.Spec.Priority = &found.Value
	w.Spec.PriorityClassRef = &v1beta2.PriorityClassRef{Group: v1beta2.PodPriorityClassGroup, Kind: v1beta2.PodPriorityClassKind, Name: found.Name}
	SpellPriorityClass(w)
	return nil
}

// SpellPriorityClass gives a Workload the class of its priority in the spelling that it lacks.
func SpellPriorityClass(w *v1beta2.Workload) {
	ref := settings.PriorityClass(&w.Spec)
	if ref.Name == "" {
		return
	}
	if w.Spec.PriorityClassRef == nil {
		w.Spec.PriorityClassRef = &ref
	}
	if w.Spec.PriorityClassName == "" {
		w.Spec.PriorityClassName, w.Spec.PriorityClassSource = ref.Name, v1beta2.PodPriorityClassSource
		if ref.Kind == v1beta2.WorkloadPriorityClassKind {
			w.Spec.PriorityClassSource = v1beta2.WorkloadPriorityClassSource
		}
	}
}

// Follow makes a Workload that was made earlier say what the labels and annotations of its job say now: its priority,
// its time limit, and the gates that are left. later says what of it cannot change while the Workload holds quota, ""
// if nothing differs.
func Follow(w *v1beta2.Workload, job metav1.Object, isHeld bool, of Lookup) (later string, err error) {
	class, had := job.GetLabels()[v1beta2.PriorityClassLabel], settings.PriorityClass(&w.Spec)
	isNamed := had.Kind == v1beta2.WorkloadPriorityClassKind
	switch {
	case isNamed && class == had.Name, !isNamed && class == "":
	case isHeld && (!isNamed && had.Name != "" || had.Name == "" || class == ""):
		later = v1beta2.PriorityClassLabel
	default:
		if err := prioritize(w, class, of); err != nil {
			return "", err
		}
	}
	if isHeld {
		return later, nil
	}
	w.Spec.MaximumExecutionTimeSeconds = maximumTime(job)
	left := job.GetAnnotations()[v1beta2.AdmissionGatedByAnnotation]
	if had := w.Annotations[v1beta2.AdmissionGatedByAnnotation]; had != left && (left == "" || isWithin(left, had)) {
		if left == "" {
			delete(w.Annotations, v1beta2.AdmissionGatedByAnnotation)
		} else {
			w.Annotations[v1beta2.AdmissionGatedByAnnotation] = left
		}
	}
	return "", nil
}

// isWithin reports whether each gate of a list is in another one.
func isWithin(gates, of string) bool {
	all := strings.Split(of, ",")
	for gate := range strings.SplitSeq(gates, ",") {
		if !slices.Contains(all, gate) {
			return false
		}
	}
	return true
}

// Reprioritize gives a Workload whose podsets have changed the priority of its class, as at its creation.
func Reprioritize(w *v1beta2.Workload, job metav1.Object, of Lookup) error {
	return prioritize(w, job.GetLabels()[v1beta2.PriorityClassLabel], of)
}

// maximumTime is for how long a job may be admitted, nil if it does not say, or cannot mean it.
func maximumTime(job metav1.Object) *int32 {
	seconds, err := strconv.ParseInt(job.GetLabels()[v1beta2.MaxExecTimeSecondsLabel], 10, 32)
	if err != nil || seconds <= 0 {
		return nil
	}
	return ptr.To(int32(seconds))
}
