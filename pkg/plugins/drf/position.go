package drf

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/apis/bounds"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// position is the place of a queue in the tree, from its annotations.
type position struct {
	queue, path, weights string // what it was read from

	steps []step // from below the root to the queue
	err   error
}

// step is one node on the path of a queue.
type step struct {
	name   string
	weight int64 // in thousandths
}

const (
	one       = 1000    // the weight 1
	maxWeight = 1 << 20 // enough for any useful ratio, and far from overflow
)

// reread returns the position of a queue, which is p unless the annotations have changed.
func (p position) reread(q *cluster.Queue) position {
	path := q.Object.Annotations[schedulingv1beta1.HierarchyAnnotationKey]
	weights := q.Object.Annotations[schedulingv1beta1.HierarchyWeightsAnnotationKey]
	if p.queue == q.Name && p.path == path && p.weights == weights {
		return p
	}
	p = position{queue: q.Name, path: path, weights: weights}
	p.steps, p.err = readSteps(q.Name, path, weights)
	return p
}

// readSteps reads the annotations of a queue. A path that does not begin with the root continues from it, as in
// Volcano's webhook.
func readSteps(queue, path, weights string) ([]step, error) {
	if path == "" && weights == "" {
		return []step{{name: queue, weight: one}}, nil
	}
	names, numbers := strings.Split(path, "/"), strings.Split(weights, "/")
	if weights == "" {
		numbers = slices.Repeat([]string{"1"}, len(names))
	}
	if len(names) != len(numbers) {
		return nil, fmt.Errorf("annotation %s is %q and %s is %q: they must have equally many parts",
			schedulingv1beta1.HierarchyAnnotationKey, path, schedulingv1beta1.HierarchyWeightsAnnotationKey, weights)
	}
	var steps []step
	for i, name := range names {
		if name == "" {
			return nil, fmt.Errorf("annotation %s is %q: its parts must not be empty",
				schedulingv1beta1.HierarchyAnnotationKey, path)
		}
		weight, err := bounds.ParseNumber(numbers[i])
		if err != nil || weight <= 0 {
			return nil, fmt.Errorf("annotation %s is %q: %q is not a number above 0",
				schedulingv1beta1.HierarchyWeightsAnnotationKey, weights, numbers[i])
		}
		if i == 0 && name == schedulingv1beta1.RootQueue {
			continue
		}
		// As in Volcano a weight below 1 counts as 1.
		weight = min(max(weight, 1), maxWeight)
		steps = append(steps, step{name: name, weight: int64(math.Round(weight * one))})
	}
	return steps, nil
}
