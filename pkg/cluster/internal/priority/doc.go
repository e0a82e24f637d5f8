// Package priority holds what the priority of a job follows from: the PriorityClasses, the priorities that its pods carry, and whether a
// ResourceQuota bounds how many pods may be of a class. A PodGroup may name any class, and the API server only counts pods; so where a
// quota bounds a class, a job has its priority as far as its pods have.
//
// It must not know jobs or tasks.
package priority
