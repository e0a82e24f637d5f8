package admission

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/admission/corerules"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// defaultQueue writes down what the user left open.
func defaultQueue(_ context.Context, _ *server, asked change[*scheduling.Queue]) error {
	queue := asked.after
	path, weights := queue.Annotations[scheduling.HierarchyAnnotationKey], queue.Annotations[scheduling.HierarchyWeightsAnnotationKey]
	first, _, _ := strings.Cut(path, "/")
	if path != "" && weights != "" && first != scheduling.RootQueue {
		metav1.SetMetaDataAnnotation(&queue.ObjectMeta, scheduling.HierarchyAnnotationKey, scheduling.RootQueue+"/"+path)
		metav1.SetMetaDataAnnotation(&queue.ObjectMeta, scheduling.HierarchyWeightsAnnotationKey, "1/"+weights)
	}
	if queue.Spec.Reclaimable == nil {
		yes := true
		queue.Spec.Reclaimable = &yes
	}
	if queue.Spec.Weight == 0 {
		queue.Spec.Weight = 1
	}
	return nil
}

// judgeQueue says what is wrong with a queue, and with its place among the others. What has not changed is not judged
// again: a queue that was made under other rules can still be edited.
func judgeQueue(ctx context.Context, s *server, from client.Reader, asked change[*scheduling.Queue]) (ruling, error) {
	queues, err := listQueues(ctx, from)
	if err != nil {
		return ruling{}, err
	}
	settings := s.settings.Load()
	if asked.operation == admissionv1.Delete {
		return ruling{problems: judgeDeletion(settings, queues, asked.before)}, nil
	}
	queue, before := asked.after, asked.before
	var said ruling
	hasResources, hasPath, isMoved := true, true, true
	if before != nil {
		hasResources = !apiequality.Semantic.DeepEqual(
			[]any{queue.Spec.Capability, queue.Spec.Deserved, queue.Spec.Guarantee},
			[]any{before.Spec.Capability, before.Spec.Deserved, before.Spec.Guarantee})
		hasPath = queue.Annotations[scheduling.HierarchyAnnotationKey] != before.Annotations[scheduling.HierarchyAnnotationKey] ||
			queue.Annotations[scheduling.HierarchyWeightsAnnotationKey] != before.Annotations[scheduling.HierarchyWeightsAnnotationKey]
		isMoved = parentOf(queue) != parentOf(before)
	}
	if hasPath {
		said.refuse(validatePath(queue, queues)...)
	}
	if hasResources {
		judgeResources(&said, &queue.Spec)
	}
	if isRoot(queue) {
		return said, nil
	}
	if isMoved {
		if problem := judgePlace(settings, queues, queue); problem != nil {
			said.refuse(problem)
			return said, nil // sums over a tree that cannot be would only add riddles
		}
	}
	if hasResources || isMoved {
		said.refuse(queues.with(queue).sums(queue)...)
	}
	return said, nil
}

// judgeDeletion says why a queue has to stay.
func judgeDeletion(settings *settings, queues *queueTree, queue *scheduling.Queue) field.ErrorList {
	if queue.Name == scheduling.DefaultQueue || isRoot(queue) {
		return field.ErrorList{stays("this queue always exists")}
	}
	var problems field.ErrorList
	switch children := queues.below(queue.Name); len(children) {
	case 0:
	case 1:
		problems = append(problems, stays("queue %s is below it", children[0].Name))
	default:
		problems = append(problems, stays("%d queues are below it, such as %s", len(children), children[0].Name))
	}
	status := &queue.Status
	if stored := queues.byName[queue.Name]; stored != nil {
		status = &stored.Status
	}
	groups := status.Pending + status.Inqueue + status.Running + status.Unknown
	pods := status.Allocated[corev1.ResourcePods]
	switch {
	case !settings.keepsUsedQueues:
	case groups > 0:
		problems = append(problems, stays("it holds %d PodGroups that have not finished", groups))
	case pods.Sign() > 0:
		problems = append(problems, stays("it holds %s pods", pods.String()))
	}
	if settings.keepsOpenQueues && status.State == scheduling.QueueStateOpen {
		problems = append(problems, stays("it is open; close it first"))
	}
	return problems
}

// validatePath checks the place in the tree of hierarchical drf, which is written in annotations.
func validatePath(queue *scheduling.Queue, queues *queueTree) field.ErrorList {
	path, weights := queue.Annotations[scheduling.HierarchyAnnotationKey], queue.Annotations[scheduling.HierarchyWeightsAnnotationKey]
	if path == "" && weights == "" {
		return nil
	}
	annotations := field.NewPath("metadata", "annotations")
	atPath, atWeights := annotations.Key(scheduling.HierarchyAnnotationKey), annotations.Key(scheduling.HierarchyWeightsAnnotationKey)
	names, numbers := strings.Split(path, "/"), strings.Split(weights, "/")
	if len(names) != len(numbers) {
		return field.ErrorList{field.Invalid(atWeights, weights, fmt.Sprintf("must have as many parts as the path %q: %d, not %d", path, len(names), len(numbers)))}
	}
	var problems field.ErrorList
	for i := range names {
		if names[i] == "" {
			problems = append(problems, field.Invalid(atPath, path, "its parts must not be empty"))
		}
		if weight, err := strconv.ParseFloat(numbers[i], 64); err != nil || math.IsNaN(weight) || weight <= 0 {
			problems = append(problems, field.Invalid(atWeights, weights, fmt.Sprintf("%q is not a number above 0", numbers[i])))
		}
	}
	for _, other := range queues.sorted {
		if other.Name != queue.Name && strings.HasPrefix(other.Annotations[scheduling.HierarchyAnnotationKey], path+"/") {
			problems = append(problems, field.Invalid(atPath, path, fmt.Sprintf("queue %s is below it, at %q; jobs go into queues at the ends of the tree",
				other.Name, other.Annotations[scheduling.HierarchyAnnotationKey])))
			break
		}
	}
	return problems
}

// judgeResources compares what the queue says of itself.
func judgeResources(said *ruling, spec *scheduling.QueueSpec) {
	path := field.NewPath("spec")
	lists := []struct {
		path *field.Path
		list corev1.ResourceList
	}{{path.Child("guarantee", "resource"), spec.Guarantee.Resource}, {path.Child("deserved"), spec.Deserved}, {path.Child("capability"), spec.Capability}}
	for i, smaller := range lists {
		for _, name := range sortedKeys(smaller.list) {
			quantity := smaller.list[name]
			said.refuse(corerules.Quantity(name, quantity, smaller.path.Key(string(name)))...)
			for _, larger := range lists[i+1:] {
				if bound, is := larger.list[name]; is && quantity.Cmp(bound) > 0 {
					said.refuse(field.Invalid(smaller.path.Key(string(name)), quantity.String(), fmt.Sprintf("must not exceed %s, which is %s", larger.path, bound.String())))
				}
			}
		}
	}
	for _, name := range sortedKeys(spec.Guarantee.Resource) {
		if _, is := spec.Deserved[name]; !is && len(spec.Deserved) > 0 {
			said.warnings = append(said.warnings, fmt.Sprintf("spec.guarantee.resource[%s] is kept free, but spec.deserved does not name %s: "+
				"with the plugin capacity the queue deserves none of it", name, name))
		}
	}
}

// judgePlace says why the queue cannot be where it wants to be.
func judgePlace(settings *settings, queues *queueTree, queue *scheduling.Queue) *field.Error {
	path, name := field.NewPath("spec", "parent"), parentOf(queue)
	if name == queue.Name {
		return field.Invalid(path, name, "a queue cannot be its own parent")
	}
	parent := queues.byName[name]
	if parent == nil {
		if name == scheduling.RootQueue {
			return nil // the queue controller is about to make it
		}
		return field.NotFound(path, name)
	}
	tree := queues.with(queue)
	levels := tree.levelsAbove(queue)
	switch pods := parent.Status.Allocated[corev1.ResourcePods]; {
	case levels == noRoot:
		return field.Invalid(path, name, fmt.Sprintf("queue %s would be below itself, or below a queue that does not exist", queue.Name))
	case levels+tree.levelsBelow(queue.Name) > settings.maxQueueDepth:
		return field.Invalid(path, name, fmt.Sprintf("there would be queues %d levels below %s; at most %d levels are allowed",
			levels+tree.levelsBelow(queue.Name), scheduling.RootQueue, settings.maxQueueDepth))
	case !isRoot(parent) && len(queues.below(name)) == 0 && pods.Sign() > 0:
		return field.Invalid(path, name, fmt.Sprintf("queue %s holds %s pods; a queue with queues below it takes no jobs itself", name, pods.String()))
	}
	return nil
}
