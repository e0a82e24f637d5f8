package v1beta1

import "hekla.sh/hekla/pkg/apis/bounds"

// plainPodGroup is a PodGroup as any decoder reads it.
type plainPodGroup PodGroup

// UnmarshalJSON decodes a PodGroup within bounds; see [bounds.Decode].
func (p *PodGroup) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainPodGroup)(p), &p.TypeMeta, &p.ObjectMeta)
}

// Plain returns the PodGroup as a type that does not decode itself; see [bounds.Strict].
func (p *PodGroup) Plain() any { return (*plainPodGroup)(p) }

// plainQueue is a Queue as any decoder reads it.
type plainQueue Queue

// UnmarshalJSON decodes a Queue within bounds; see [bounds.Decode].
func (q *Queue) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainQueue)(q), &q.TypeMeta, &q.ObjectMeta)
}

// Plain returns the Queue as a type that does not decode itself; see [bounds.Strict].
func (q *Queue) Plain() any { return (*plainQueue)(q) }
