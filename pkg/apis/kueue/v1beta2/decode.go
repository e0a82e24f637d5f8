package v1beta2

import "hekla.sh/hekla/pkg/apis/bounds"

// plainClusterQueue is a ClusterQueue as any decoder reads it.
type plainClusterQueue ClusterQueue

// UnmarshalJSON decodes a ClusterQueue within bounds; see [bounds.Decode].
func (c *ClusterQueue) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainClusterQueue)(c), &c.TypeMeta, &c.ObjectMeta)
}

// Plain returns the ClusterQueue as a type that does not decode itself; see [bounds.Strict].
func (c *ClusterQueue) Plain() any { return (*plainClusterQueue)(c) }

// plainCohort is a Cohort as any decoder reads it.
type plainCohort Cohort

// UnmarshalJSON decodes a Cohort within bounds; see [bounds.Decode].
func (c *Cohort) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainCohort)(c), &c.TypeMeta, &c.ObjectMeta)
}

// Plain returns the Cohort as a type that does not decode itself; see [bounds.Strict].
func (c *Cohort) Plain() any { return (*plainCohort)(c) }

// plainLocalQueue is a LocalQueue as any decoder reads it.
type plainLocalQueue LocalQueue

// UnmarshalJSON decodes a LocalQueue within bounds; see [bounds.Decode].
func (l *LocalQueue) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainLocalQueue)(l), &l.TypeMeta, &l.ObjectMeta)
}

// Plain returns the LocalQueue as a type that does not decode itself; see [bounds.Strict].
func (l *LocalQueue) Plain() any { return (*plainLocalQueue)(l) }

// plainResourceFlavor is a ResourceFlavor as any decoder reads it.
type plainResourceFlavor ResourceFlavor

// UnmarshalJSON decodes a ResourceFlavor within bounds; see [bounds.Decode].
func (r *ResourceFlavor) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainResourceFlavor)(r), &r.TypeMeta, &r.ObjectMeta)
}

// Plain returns the ResourceFlavor as a type that does not decode itself; see [bounds.Strict].
func (r *ResourceFlavor) Plain() any { return (*plainResourceFlavor)(r) }

// plainWorkload is a Workload as any decoder reads it.
type plainWorkload Workload

// UnmarshalJSON decodes a Workload within bounds; see [bounds.Decode].
func (w *Workload) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainWorkload)(w), &w.TypeMeta, &w.ObjectMeta)
}

// Plain returns the Workload as a type that does not decode itself; see [bounds.Strict].
func (w *Workload) Plain() any { return (*plainWorkload)(w) }

// plainWorkloadPriorityClass is a WorkloadPriorityClass as any decoder reads it.
type plainWorkloadPriorityClass WorkloadPriorityClass

// UnmarshalJSON decodes a WorkloadPriorityClass within bounds; see [bounds.Decode].
func (w *WorkloadPriorityClass) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainWorkloadPriorityClass)(w), &w.TypeMeta, &w.ObjectMeta)
}

// Plain returns the WorkloadPriorityClass as a type that does not decode itself; see [bounds.Strict].
func (w *WorkloadPriorityClass) Plain() any { return (*plainWorkloadPriorityClass)(w) }

// plainAdmissionCheck is an AdmissionCheck as any decoder reads it.
type plainAdmissionCheck AdmissionCheck

// UnmarshalJSON decodes an AdmissionCheck within bounds; see [bounds.Decode].
func (a *AdmissionCheck) UnmarshalJSON(document []byte) error {
	return bounds.Decode(document, (*plainAdmissionCheck)(a), &a.TypeMeta, &a.ObjectMeta)
}

// Plain returns the AdmissionCheck as a type that does not decode itself; see [bounds.Strict].
func (a *AdmissionCheck) Plain() any { return (*plainAdmissionCheck)(a) }
