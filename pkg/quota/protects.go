package quota

import "hekla.sh/hekla/pkg/resources"

// HoldsNothing says that a queue holds nothing that could be reclaimed.
const HoldsNothing = "the queue holds nothing"

// Protects says which rule protects a queue from the preemptor completely, "" if the preemptor may take at least one
// unit of some resource. It answers from which queues the preemptor may reclaim. How much it may take depends on the
// pods.
func Protects(rules Rules, victim *Node) string {
	if why := rules.Forbids(victim); why != "" {
		return why
	}
	why := HoldsNothing
	for i, held := range victim.Subtree.Allocated {
		d := resources.Dim(i)
		if held <= 0 || d == resources.Pods {
			continue
		}
		// One unit of one resource is tried at a time. Of several together there may be too much.
		var least resources.Vector
		least.Set(d, 1)
		if why = rules.WhyProtected(victim, least, least, func() bool { return rules.IsEntitled(least) }); why == "" {
			return ""
		}
	}
	return why
}
