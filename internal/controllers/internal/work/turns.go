package work

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// newQueue makes the queue of a controller, in which namespaces take turns. The priorities of controller-runtime's own
// queue would only put what is new before what was there when the process began; here, who has much to do waits for
// himself.
func newQueue(name string, retries workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(retries, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
				Name: name, Queue: &turns{lines: map[string][]reconcile.Request{}},
			}),
		}),
	})
}

// turns holds what is ready to be worked on. The namespaces that have anything take turns, one object each; the objects
// of a namespace are first come, first served. The work queue calls it under its own lock.
type turns struct {
	lines map[string][]reconcile.Request // by namespace; none of them is empty
	order []string                       // the namespaces in the order of their turns
	total int
}

// Touch does nothing: what is added again keeps its place.
func (t *turns) Touch(reconcile.Request) {}

// Push puts an object behind the others of its namespace.
func (t *turns) Push(item reconcile.Request) {
	if len(t.lines[item.Namespace]) == 0 {
		t.order = append(t.order, item.Namespace)
	}
	t.lines[item.Namespace] = append(t.lines[item.Namespace], item)
	t.total++
}

// Len is how many objects are ready.
func (t *turns) Len() int { return t.total }

// Pop takes the first object of the namespace whose turn it is. There is one.
func (t *turns) Pop() reconcile.Request {
	namespace := t.order[0]
	t.order[0], t.order = "", t.order[1:]
	line := t.lines[namespace]
	item := line[0]
	line[0] = reconcile.Request{}
	if line = line[1:]; len(line) > 0 {
		t.lines[namespace] = line
		t.order = append(t.order, namespace)
	} else {
		delete(t.lines, namespace)
	}
	t.total--
	return item
}
