package admission

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/admission/corerules"
	"hekla.sh/hekla/internal/admission/queuetree"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/scheduling/validation"
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
	return nil
}

// judgeQueue says what is wrong with a queue, and with its place among the others. What has not changed is not judged
// again: a queue that was made under other rules can still be edited.
func judgeQueue(ctx context.Context, s *server, from client.Reader, asked change[*scheduling.Queue]) (ruling, error) {
	queues, err := queuetree.List(ctx, from)
	if err != nil {
		return ruling{}, err
	}
	settings := s.settings.Load()
	if asked.operation == admissionv1.Delete {
		return judgeDeletion(ctx, s, queues, asked.before)
	}
	queue, before := asked.after, asked.before
	var said ruling
	hasResources, hasPath, isMoved := true, true, true
	var annotations map[string]string // before
	if before != nil {
		annotations = before.Annotations
		hasResources = !apiequality.Semantic.DeepEqual(
			[]any{queue.Spec.Capability, queue.Spec.Deserved, queue.Spec.Guarantee},
			[]any{before.Spec.Capability, before.Spec.Deserved, before.Spec.Guarantee})
		hasPath = queue.Annotations[scheduling.HierarchyAnnotationKey] != before.Annotations[scheduling.HierarchyAnnotationKey] ||
			queue.Annotations[scheduling.HierarchyWeightsAnnotationKey] != before.Annotations[scheduling.HierarchyWeightsAnnotationKey]
		isMoved = queuetree.ParentOf(queue) != queuetree.ParentOf(before)
	}
	said.refuse(validation.ValidateQueueProperties(queue, annotations)...)
	if hasPath {
		said.refuse(validatePath(queue, queues)...)
	}
	if hasResources {
		said.judgeResources(&queue.Spec)
	}
	if queuetree.IsRoot(queue) {
		return said, nil
	}
	said.warnings = append(said.warnings, queues.With(queue).SharesWithoutEffect(queue, before)...)
	if isMoved {
		problem := settings.judgePlace(queues, queue)
		if problem == nil {
			if problem, err = s.judgeParent(ctx, queues, queue); err != nil {
				return ruling{}, err
			}
		}
		if problem != nil {
			said.refuse(problem)
			return said, nil // sums over a tree that cannot be would only add riddles
		}
	}
	if hasResources || isMoved {
		said.refuse(queues.With(queue).Sums(queue)...)
	}
	return said, nil
}

// judgeDeletion says why a queue has to stay.
func judgeDeletion(ctx context.Context, s *server, queues *queuetree.Tree, queue *scheduling.Queue) (ruling, error) {
	settings := s.settings.Load()
	var said ruling
	if queue.Name == scheduling.DefaultQueue || queuetree.IsRoot(queue) {
		said.refuse(stays("`%s` queue can not be deleted: it always exists", queue.Name))
		return said, nil
	}
	switch children := queues.Below(queue.Name); len(children) {
	case 0:
	case 1:
		said.refuse(stays("queue %s can not be deleted because it has 1 child queues: queue %s is below it", queue.Name, children[0].Name))
	default:
		said.refuse(stays("queue %s can not be deleted because it has %d child queues: they are below it, such as %s", queue.Name, len(children), children[0].Name))
	}
	status := &queue.Status
	if stored := queues.ByName[queue.Name]; stored != nil {
		status = &stored.Status
	}
	if settings.keepsUsedQueues {
		pods, err := podsIn(ctx, s.live, queue.Name)
		if err != nil {
			return ruling{}, err
		}
		if len(pods) > 0 {
			said.refuse(stays("queue %s cannot be deleted because it has allocated Pods: %d, such as %s", queue.Name, len(pods), pods[0]))
		}
	}
	if settings.keepsOpenQueues && status.State == scheduling.QueueStateOpen {
		said.refuse(stays("it is open; close it first"))
	}
	return said, nil
}

// validatePath checks the place in the tree of hierarchical drf, which is written in annotations.
func validatePath(queue *scheduling.Queue, queues *queuetree.Tree) field.ErrorList {
	path, weights := queue.Annotations[scheduling.HierarchyAnnotationKey], queue.Annotations[scheduling.HierarchyWeightsAnnotationKey]
	problems := validation.ValidateQueueHierarchy(queue)
	if path == "" && weights == "" || len(strings.Split(path, "/")) != len(strings.Split(weights, "/")) {
		return problems
	}
	atPath := field.NewPath("metadata", "annotations").Key(scheduling.HierarchyAnnotationKey)
	for _, other := range queues.Sorted {
		if other.Name != queue.Name && strings.HasPrefix(other.Annotations[scheduling.HierarchyAnnotationKey], path+"/") {
			problems = append(problems, field.Invalid(atPath, path, fmt.Sprintf("%s is not allowed to be in the sub path of %s of queue %s: "+
				"that queue is below it, and jobs go into queues at the ends of the tree", path, other.Annotations[scheduling.HierarchyAnnotationKey], other.Name)))
			break
		}
	}
	return problems
}

// judgeResources compares what the queue says of itself.
func (r *ruling) judgeResources(spec *scheduling.QueueSpec) {
	path := field.NewPath("spec")
	lists := []struct {
		path *field.Path
		list corev1.ResourceList
	}{{path.Child("guarantee", "resource"), spec.Guarantee.Resource}, {path.Child("deserved"), spec.Deserved}, {path.Child("capability"), spec.Capability}}
	for i, smaller := range lists {
		for _, name := range sortedKeys(smaller.list) {
			quantity := smaller.list[name]
			r.refuse(corerules.Quantity(name, quantity, smaller.path.Key(string(name)))...)
			for _, larger := range lists[i+1:] {
				if bound, is := larger.list[name]; is && quantity.Cmp(bound) > 0 {
					r.refuse(field.Invalid(smaller.path.Key(string(name)), quantity.String(), exceeds(smaller.path, larger.path, name, quantity, bound)))
				}
			}
		}
	}
	for _, name := range sortedKeys(spec.Guarantee.Resource) {
		if _, is := spec.Deserved[name]; !is && len(spec.Deserved) > 0 {
			r.warnings = append(r.warnings, fmt.Sprintf("spec.guarantee.resource[%s] is kept free, but spec.deserved does not name %s: "+
				"with the plugin capacity the queue deserves none of it", name, name))
		}
	}
}

// exceeds says that a queue has more of a resource by one of its lists than by another, in the words of Volcano where
// it has any.
func exceeds(smaller, larger *field.Path, name corev1.ResourceName, quantity, bound resource.Quantity) string {
	detail := fmt.Sprintf("must not exceed %s, which is %s", larger, bound.String())
	of := func(path *field.Path) string { return strings.Split(path.String(), ".")[1] }
	switch of(smaller) + of(larger) {
	case "guaranteedeserved":
		return fmt.Sprintf("deserved[%s]=%s must be >= guarantee[%s]=%s: %s", name, bound.String(), name, quantity.String(), detail)
	case "guaranteecapability", "deservedcapability":
		return fmt.Sprintf("%s[%s]=%s must be <= capability[%s]=%s: %s", of(smaller), name, quantity.String(), name, bound.String(), detail)
	}
	return detail
}

// judgePlace says why the queue cannot be where it wants to be.
func (s *settings) judgePlace(queues *queuetree.Tree, queue *scheduling.Queue) *field.Error {
	path, name := field.NewPath("spec", "parent"), queuetree.ParentOf(queue)
	if name == queue.Name {
		return field.Invalid(path, name, fmt.Sprintf("queue %s cannot use itself as parent", queue.Name))
	}
	parent := queues.ByName[name]
	if parent == nil {
		if name == scheduling.RootQueue {
			return nil // the queue controller is about to make it
		}
		problem := field.NotFound(path, name)
		problem.Detail = fmt.Sprintf("failed to get parent queue of queue %s: queue.scheduling.volcano.sh %q not found", queue.Name, name)
		return problem
	}
	tree := queues.With(queue)
	levels := tree.LevelsAbove(queue)
	switch {
	case levels == queuetree.NoRoot:
		return field.Invalid(path, name, fmt.Sprintf("queue %s would be below itself, or below a queue that does not exist", queue.Name))
	case levels+tree.LevelsBelow(queue.Name) > s.maxQueueDepth:
		return field.Invalid(path, name, fmt.Sprintf("queue %s exceeds the maximum allowed depth of %d: there would be queues %d levels below %s",
			queue.Name, s.maxQueueDepth, levels+tree.LevelsBelow(queue.Name), scheduling.RootQueue))
	}
	return nil
}

// judgeParent says why the queue, which may be there by its place in the tree, cannot be the first one below its
// parent.
func (s *server) judgeParent(ctx context.Context, queues *queuetree.Tree, queue *scheduling.Queue) (*field.Error, error) {
	parent := queues.ByName[queuetree.ParentOf(queue)]
	if parent == nil || queuetree.IsRoot(parent) || len(queues.Below(parent.Name)) > 0 {
		return nil, nil
	}
	// What the scheduler last wrote costs nothing to read; only where it says that there are pods these are looked for.
	if pods := parent.Status.Allocated[corev1.ResourcePods]; pods.Sign() <= 0 {
		return nil, nil
	}
	pods, err := podsIn(ctx, s.live, parent.Name)
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	return field.Invalid(field.NewPath("spec", "parent"), parent.Name, fmt.Sprintf("queue %s cannot be the parent queue of queue %s because it has allocated Pods: %d, such as %s; "+
		"a queue with queues below it takes no jobs itself", parent.Name, queue.Name, len(pods), pods[0])), nil
}
