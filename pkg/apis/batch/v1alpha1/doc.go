// Package v1alpha1 is the API group batch.volcano.sh: Job, a workload of one or more tasks whose pods start together
// or not at all, and CronJob, which starts Jobs at the times of a schedule.
//
// Main types: Job, its TaskSpec (one role, replicated), LifecyclePolicy (what to do when something happens) and
// JobStatus; CronJob and its JobTemplateSpec; the labels and annotations that a Job's pods carry.
//
// Invariants:
//
//  1. A stored Job satisfies the schema and CEL rules of installer/crds; SetDefaults fills what the schema cannot
//     (names and sums that depend on other fields). Readers work on a Job after SetDefaults.
//  2. SetDefaults is idempotent and never overrides what the user wrote.
//  3. status.state.phase moves only along the Job phase machine of the job controller; Completed, Failed and Terminated
//     are final.
//  4. A jobTemplate follows the rules for the creation of a Job, and may be changed at any time, for the next run.
//
// This package must not know how a Job is turned into pods and a PodGroup.
//
// +kubebuilder:object:generate=true
// +groupName=batch.volcano.sh
package v1alpha1
