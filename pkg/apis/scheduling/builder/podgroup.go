package builder

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Surroundings are the annotations of what a pod belongs to; a nil map is none.
type Surroundings struct {
	Owner     map[string]string
	Namespace map[string]string
	// Maker is the owner of which the pods make one PodGroup, if it is one above their controller: it has the
	// annotation group-min-member. Then Owner holds what this and the owners below it say, and the pod and those below
	// do not say the minimum.
	Maker *metav1.OwnerReference
	// Deadline is the activeDeadlineSeconds of an owner that is a batch/v1 Job, nil if there is none.
	Deadline *int64
	// LabelQueue is the Queue that YuniKorn's labels of the pod name, as [FindQueue] has found it. It is empty if there
	// are none, or if they do not count.
	LabelQueue string
	// LabelProblem says why they name none, though they are there.
	LabelProblem string
	// DefaultQueue is the Queue of pods for which nothing names one; empty is the queue default.
	DefaultQueue string
}

// PodGroupName is the name of the PodGroup of the pod: by its controller, or by itself if it has no controller.
func PodGroupName(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return scheduling.PodGroupNamePrefix + string(owner.UID)
	}
	return scheduling.PodGroupNamePrefix + string(pod.UID)
}

// PodGroup makes the PodGroup for a pod that names none, and sentences about annotations that could not be read.
func PodGroup(pod *corev1.Pod, around Surroundings) (*scheduling.PodGroup, []string) {
	if around.Maker != nil {
		pod = below(around.Maker, pod)
	}
	minMember, problems := minMember(pod, around.Owner)
	queue, queueProblems := queueName(pod, around)
	minResources, resourceProblems := minResources(pod, around.Owner, minMember)
	topology, topologyProblems := networkTopology(pod, around.Owner)
	annotations := inherited(around.Owner, pod.Annotations)
	annotations[scheduling.SchedulerNameKey] = pod.Spec.SchedulerName
	if around.Deadline != nil {
		annotations[scheduling.ActiveDeadlineKey] = (time.Duration(min(*around.Deadline, mostSeconds)) * time.Second).String()
	}
	return &scheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            PodGroupName(pod),
			Namespace:       pod.Namespace,
			OwnerReferences: []metav1.OwnerReference{ownerReference(pod)},
			Labels:          inherited(pod.Labels),
			Annotations:     annotations,
		},
		Spec: scheduling.PodGroupSpec{
			MinMember:         minMember,
			MinResources:      &minResources,
			Queue:             queue,
			PriorityClassName: pod.Spec.PriorityClassName,
			NetworkTopology:   topology,
		},
	}, slices.Concat(problems, queueProblems, resourceProblems, topologyProblems)
}

// below returns a copy of a pod as one that an owner further up controls: what the pod says about the minimum is not
// about its gang.
func below(maker *metav1.OwnerReference, pod *corev1.Pod) *corev1.Pod {
	direct := *pod // what it refers to is not changed
	direct.OwnerReferences = []metav1.OwnerReference{*maker}
	direct.Annotations = maps.Clone(pod.Annotations)
	for _, key := range MinimumKeys {
		delete(direct.Annotations, key)
	}
	return &direct
}

// MinimumKeys are the annotations that say what must start together.
var MinimumKeys = []string{scheduling.GroupMinMemberAnnotationKey, scheduling.GroupMinResourcesAnnotationKey}

// MinimumOf returns what quotas count of as many of some pods as must start together, those that were made first. Pods
// that do not exist yet do not count: they may be of another kind.
func MinimumOf(pods []*corev1.Pod, minMember int32) corev1.ResourceList {
	pods = slices.SortedFunc(slices.Values(pods), CompareMembers)
	list := corev1.ResourceList{}
	for _, pod := range pods[:min(len(pods), int(minMember))] {
		AddUsage(list, &pod.Spec, 1)
	}
	return list
}

// mostSeconds are as many as a duration can have.
const mostSeconds = int64(math.MaxInt64 / time.Second)

// annotation looks for an annotation on the pod, then on its owner.
func annotation(pod *corev1.Pod, owner map[string]string, key string) (value string, found bool) {
	if value, found = pod.Annotations[key]; !found {
		value, found = owner[key]
	}
	return value, found
}

// ownerReference makes the pod's controller, or else the pod, the controller of the PodGroup. It does not block the
// owner's deletion: nothing is lost when the PodGroup outlives it for a moment, and blocking would take a permission
// on every kind that can own pods.
func ownerReference(pod *corev1.Pod) metav1.OwnerReference {
	controller := true
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return metav1.OwnerReference{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: &controller,
		}
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &controller}
}

// minMember reads scheduling.volcano.sh/group-min-member of the pod, else of its owner; 1 if neither says so. A pod
// without a controller is alone in its PodGroup, so a larger number could never be met.
func minMember(pod *corev1.Pod, owner map[string]string) (int32, []string) {
	const key = scheduling.GroupMinMemberAnnotationKey
	value, found := annotation(pod, owner, key)
	if !found {
		return 1, nil
	}
	number, err := strconv.ParseInt(value, 10, 32)
	if err != nil || number < 1 {
		return 1, []string{fmt.Sprintf("annotation %s: %q is not a number from 1 up; using 1", key, value)}
	}
	if number > 1 && metav1.GetControllerOfNoCopy(pod) == nil {
		return 1, []string{fmt.Sprintf(
			"annotation %s: %s cannot be met, because this pod has no controller and is alone; using 1", key, value)}
	}
	return int32(number), nil
}

// minResources reads scheduling.volcano.sh/group-min-resources, a JSON object of quantities, of the pod, else of its
// owner. If neither says so it is what quotas count of as many pods like this one as there must be at least, as in the
// PodGroup of a Job.
func minResources(pod *corev1.Pod, owner map[string]string, minMember int32) (corev1.ResourceList, []string) {
	const key = scheduling.GroupMinResourcesAnnotationKey
	var problems []string
	if value, found := annotation(pod, owner, key); found {
		var list corev1.ResourceList
		err := bounds.UnmarshalJSON([]byte(value), &list)
		for name, quantity := range list {
			if quantity.Sign() < 0 && err == nil {
				err = fmt.Errorf("%s is negative", name)
			}
		}
		if err == nil && list != nil {
			return list, nil
		}
		problems = []string{fmt.Sprintf("annotation %s: %q is not a JSON object of quantities: %v; using what the pods request",
			key, value, err)}
	}
	list := corev1.ResourceList{}
	AddUsage(list, &pod.Spec, minMember)
	return list, problems
}

// networkTopology reads volcano.sh/network-topology-mode and volcano.sh/network-topology-highest-tier of the pod, else
// of its owner. If only one is there the other is as if the PodGroup had left it out.
func networkTopology(pod *corev1.Pod, owner map[string]string) (*scheduling.NetworkTopologySpec, []string) {
	const modeKey, tierKey = scheduling.NetworkTopologyModeKey, scheduling.NetworkTopologyHighestTierKey
	mode, hasMode := annotation(pod, owner, modeKey)
	tier, hasTier := annotation(pod, owner, tierKey)
	if !hasMode && !hasTier {
		return nil, nil
	}
	var problems []string
	spec := &scheduling.NetworkTopologySpec{Mode: scheduling.HardNetworkTopologyMode}
	switch read := scheduling.NetworkTopologyMode(strings.ToLower(mode)); {
	case read == scheduling.HardNetworkTopologyMode || read == scheduling.SoftNetworkTopologyMode:
		spec.Mode = read
	case hasMode:
		problems = append(problems, fmt.Sprintf("annotation %s: %q is neither hard nor soft; using hard", modeKey, mode))
	}
	if hasTier {
		if number, err := strconv.Atoi(tier); err == nil && number >= 0 {
			spec.HighestTierAllowed = &number
		} else {
			problems = append(problems, fmt.Sprintf("annotation %s: %q is not a number from 0 up; there is no bound", tierKey, tier))
		}
	}
	return spec, problems
}

// queueName reads scheduling.volcano.sh/queue-name of the pod, else of its owner, else the labels of YuniKorn, else
// that of its namespace.
func queueName(pod *corev1.Pod, around Surroundings) (string, []string) {
	const key = scheduling.QueueNameAnnotationKey
	var problems []string
	if around.LabelProblem != "" {
		problems = append(problems, around.LabelProblem)
	}
	for _, name := range []string{pod.Annotations[key], around.Owner[key], around.LabelQueue, around.Namespace[key]} {
		if name == "" {
			continue
		}
		if messages := validation.IsDNS1123Subdomain(name); len(messages) > 0 {
			problems = append(problems, fmt.Sprintf("annotation %s: %q is no name of a queue: %s", key, name, messages[0]))
			continue
		}
		return name, problems
	}
	return cmp.Or(around.DefaultQueue, scheduling.DefaultQueue), problems
}

// inherited returns the entries whose keys start with volcano.sh/ and the estimate of the run time, a later map winning
// over an earlier one. What describes one pod of a batch Job among others says nothing about a group and stays out.
func inherited(from ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, entries := range from {
		for key, value := range entries {
			if strings.HasPrefix(key, scheduling.AnnotationPrefix) && key != batch.TaskIndexKey || key == scheduling.RunningEstimateKey {
				result[key] = value
			}
		}
	}
	return result
}
