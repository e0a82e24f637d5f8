package turns

import "k8s.io/client-go/util/workqueue"

// NewQueue returns a work queue in which the namespaces of its items take turns. Its metrics have the name, none
// without one.
func NewQueue[T comparable](name string, retries workqueue.TypedRateLimiter[T], namespaceOf func(T) string) workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(retries, workqueue.TypedRateLimitingQueueConfig[T]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
			Name: name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{
				Name: name, Queue: newLines(namespaceOf),
			}),
		}),
	})
}

// lines holds what is ready to be worked on. The work queue calls it under its own lock.
type lines[T comparable] struct {
	namespaceOf func(T) string
	lines       map[string][]T // by namespace; none of them is empty
	order       []string       // the namespaces in the order of their turns
	total       int
}

func newLines[T comparable](namespaceOf func(T) string) *lines[T] {
	return &lines[T]{namespaceOf: namespaceOf, lines: map[string][]T{}}
}

// Touch does nothing: what is added again keeps its place.
func (l *lines[T]) Touch(T) {}

// Push puts an item behind the others of its namespace.
func (l *lines[T]) Push(item T) {
	namespace := l.namespaceOf(item)
	if len(l.lines[namespace]) == 0 {
		l.order = append(l.order, namespace)
	}
	l.lines[namespace] = append(l.lines[namespace], item)
	l.total++
}

// Len is the number of items.
func (l *lines[T]) Len() int { return l.total }

// Pop takes the first item of the namespace whose turn it is.
func (l *lines[T]) Pop() T {
	namespace := l.order[0]
	l.order[0], l.order = "", l.order[1:]
	line := l.lines[namespace]
	item := line[0]
	var none T
	line[0] = none
	if line = line[1:]; len(line) > 0 {
		l.lines[namespace] = line
		l.order = append(l.order, namespace)
	} else {
		delete(l.lines, namespace)
	}
	l.total--
	return item
}
