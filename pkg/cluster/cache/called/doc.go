// Package called finds jobs by the names that users call them.
//
// Main type: an [Index]. Users call a job by the object for which a controller made its PodGroup, such as a Volcano Job, whose PodGroup has
// another name.
//
// Invariants:
//
//  1. It holds the jobs whose name differs from that of their PodGroup, and no others.
//  2. Each job must be followed when its PodGroup has changed or has gone.
//
// It must not know why jobs wait.
package called
