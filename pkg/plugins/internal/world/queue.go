package world

import (
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// Option says something of a queue.
type Option = func(*schedulingv1beta1.Queue)

// Below sets the parent.
func Below(parent string) Option {
	return func(q *schedulingv1beta1.Queue) { q.Spec.Parent = parent }
}

// Weighing sets the weight.
func Weighing(weight int32) Option {
	return func(q *schedulingv1beta1.Queue) { q.Spec.Weight = weight }
}

// Ranking sets the priority.
func Ranking(priority int32) Option {
	return func(q *schedulingv1beta1.Queue) { q.Spec.Priority = priority }
}

// Deserving sets what the queue deserves.
func Deserving(text string) Option {
	return func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List(text) }
}

// Guaranteed sets the guarantee.
func Guaranteed(text string) Option {
	return func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = fixture.List(text) }
}

// Capped sets the capability.
func Capped(text string) Option {
	return func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List(text) }
}

// Annotated sets an annotation.
func Annotated(key, value string) Option {
	return func(q *schedulingv1beta1.Queue) { q.Annotations[key] = value }
}

// Closed closes the queue.
func Closed(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed }
