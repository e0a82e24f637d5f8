package v1alpha1

import "hekla.sh/hekla/pkg/apis/bounds"

// plainJob is a Job as any decoder reads it.
type plainJob Job

// UnmarshalJSON decodes a Job within bounds; see [bounds.Decode].
func (j *Job) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainJob)(j), &j.TypeMeta, &j.ObjectMeta)
}

// Plain returns the Job as a type that does not decode itself; see [bounds.Strict].
func (j *Job) Plain() any { return (*plainJob)(j) }

// plainCronJob is a CronJob as any decoder reads it.
type plainCronJob CronJob

// UnmarshalJSON decodes a CronJob within bounds; see [bounds.Decode].
func (c *CronJob) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainCronJob)(c), &c.TypeMeta, &c.ObjectMeta)
}

// Plain returns the CronJob as a type that does not decode itself; see [bounds.Strict].
func (c *CronJob) Plain() any { return (*plainCronJob)(c) }
