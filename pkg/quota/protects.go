package quota

import (
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Protects says what protects a queue from the preemptor completely, none if the preemptor may take at least one
// unit of some resource. It answers from which queues the preemptor may reclaim. How much it may take depends on the
// pods.
func Protects(rules Rules, victim *Node) verdict.Protection {
	if why := rules.Forbids(victim); why.Exists() {
		return why
	}
	why := verdict.HoldsNothing.Protection()
	for i, held := range victim.Subtree.Allocated {
		d := resources.Dim(i)
		if held <= 0 || d == resources.Pods {
			continue
		}
		// One unit of one resource is tried at a time. Of several together there may be too much.
		var least resources.Vector
		least.Set(d, 1)
		if why = rules.WhyProtected(victim, least, least, func() bool { return rules.IsEntitled(least) }); why.IsNone() {
			break
		}
	}
	return why
}
