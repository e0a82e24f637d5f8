package quota

import "hekla.sh/hekla/pkg/resources"

// HoldsNothing is said of a node from which nothing is to be had.
const HoldsNothing = "the queue holds nothing"

// Protects says which rule protects all that a node holds from the preemptor, "" if there is a resource of which the preemptor may have at
// least the least amount. It is the answer to whom a queue may take from; how much it may take the rules say of each pod.
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
		// One resource at a time, and the least of it: of several together there may be too much.
		var least resources.Vector
		least.Set(d, 1)
		if why = rules.Objects(victim, least, least, func() bool { return rules.IsEntitled(least) }); why == "" {
			return ""
		}
	}
	return why
}
