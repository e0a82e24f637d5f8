package quota

import "hekla.sh/hekla/pkg/resources"

// Moved is how the bounds of queues have changed from one session to the next, as far as that may help jobs that wait.
type Moved struct {
	// Grown are the queues that may hold more than before, or that deserve more of what they request.
	Grown []*Node
	// Exposes is set if a queue deserves less than before of what it holds more of than it deserves. Other queues may
	// reclaim more from it then.
	Exposes bool
}

// Since compares the bounds of all queues with those of an earlier session, of which the view is before. A queue that
// deserves more gives nothing up, and one that deserves less has no right that it had not.
func (v *View) Since(before *View, t *Tree) (moved Moved) {
	if before == v || before == nil {
		return moved // nothing was refused by other bounds
	}
	for n := range t.Nodes {
		if v.Seen(n) != n {
			continue // a part of a subtree that counts as one queue
		}
		grown, exposes := v.moved(n, before)
		if grown {
			moved.Grown = append(moved.Grown, n)
		}
		moved.Exposes = moved.Exposes || exposes
	}
	return moved
}

// moved is Since for one queue.
func (v *View) moved(n *Node, before *View) (grown, exposes bool) {
	now, was, held := v.Of(n), before.Of(n), v.Held(n)
	if now.node == nil || was.node == nil {
		return false, false // no job waits in it, or all that do are new
	}
	for i := range max(len(now.Deserved), len(was.Deserved), now.Ceiling.Len(), was.Ceiling.Len()) {
		d := resources.Dim(i)
		_, counts := now.Share.At(d)
		if _, counted := was.Share.At(d); counts != counted {
			return true, true // a share that names other resources is another one altogether
		}
		deserved, deservedBefore, holds := now.Deserved.At(d), was.Deserved.At(d), held.Allocated.At(d)
		grown = grown || now.Ceiling.Value(d) > was.Ceiling.Value(d) || deserved > deservedBefore && held.Request.At(d) > holds
		exposes = exposes || deserved < deservedBefore && holds > deserved && d != resources.Pods
	}
	return grown, exposes
}
