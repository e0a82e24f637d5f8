package queuetree

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// SharesWithoutEffect warns of what divides a cluster between queues and has no effect where guaranteed shares hold.
// The tree does not know the scheduler's configuration. But where the queue, or one above it, has an annotation for
// guaranteed shares, they are meant to hold. Of what the queue had before, nil if it is new, the user is not warned
// again.
func (t *Tree) SharesWithoutEffect(queue, before *scheduling.Queue) []string {
	if before != nil && !hasNewShare(queue, before) {
		return nil
	}
	var fields []string
	if len(queue.Spec.Deserved) > 0 {
		fields = append(fields, "deserved")
	}
	if queue.Spec.Weight > 1 {
		fields = append(fields, "weight")
	}
	if queue.Spec.Priority != 0 {
		fields = append(fields, "priority")
	}
	if len(fields) == 0 {
		return nil
	}
	above := queue
	for range t.Sorted { // a queue that is stored may be below itself
		if key := properties.Written(above.Annotations); key != "" {
			return []string{fmt.Sprintf("spec.%s of queue %s: without effect below a queue of subtrees of the plugin guaranteed-shares, "+
				"for which queue %s has the annotation %s", strings.Join(fields, ", spec."), queue.Name, above.Name, key)}
		}
		if above = t.ByName[ParentOf(above)]; above == nil {
			return nil
		}
	}
	return nil
}

// hasNewShare reports whether what divides a cluster between queues has changed, or an annotation.
func hasNewShare(queue, before *scheduling.Queue) bool {
	return ParentOf(queue) != ParentOf(before) || queue.Spec.Weight != before.Spec.Weight || queue.Spec.Priority != before.Spec.Priority ||
		!apiequality.Semantic.DeepEqual(queue.Spec.Deserved, before.Spec.Deserved) || !apiequality.Semantic.DeepEqual(queue.Annotations, before.Annotations)
}
