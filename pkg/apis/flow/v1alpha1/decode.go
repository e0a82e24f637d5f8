package v1alpha1

import "hekla.sh/hekla/pkg/apis/bounds"

// plainJobFlow is a JobFlow as any decoder reads it.
type plainJobFlow JobFlow

// UnmarshalJSON decodes a JobFlow within bounds; see [bounds.Decode].
func (j *JobFlow) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainJobFlow)(j), &j.TypeMeta, &j.ObjectMeta)
}

// Plain returns the JobFlow as a type that does not decode itself; see [bounds.Strict].
func (j *JobFlow) Plain() any { return (*plainJobFlow)(j) }

// plainJobTemplate is a JobTemplate as any decoder reads it.
type plainJobTemplate JobTemplate

// UnmarshalJSON decodes a JobTemplate within bounds; see [bounds.Decode].
func (j *JobTemplate) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainJobTemplate)(j), &j.TypeMeta, &j.ObjectMeta)
}

// Plain returns the JobTemplate as a type that does not decode itself; see [bounds.Strict].
func (j *JobTemplate) Plain() any { return (*plainJobTemplate)(j) }
