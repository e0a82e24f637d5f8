package intake

import "k8s.io/apimachinery/pkg/runtime"

// Objects returns all objects as the next [Inbox.Take] would leave them, in no particular order; pods as [cluster.Pod].
// The caller must not change them.
func (i *Inbox) Objects() []runtime.Object {
	var all []runtime.Object
	for _, w := range i.watched() {
		for _, one := range w.store.List() {
			if o, ok := one.(object); ok && i.isOurs(o) {
				i.kueue.pass(o, func(o object) { all = append(all, o) })
			}
		}
	}
	return all
}
