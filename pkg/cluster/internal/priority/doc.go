// Package priority holds what the priority of a job depends on: the PriorityClasses, the priorities of its pods, and
// whether a ResourceQuota limits the pods of a class.
//
// A PodGroup may name any class, and a quota limits only pods. So if a quota limits a class, a job only has the
// priority that its pods have.
//
// This package must not know jobs or tasks.
package priority
