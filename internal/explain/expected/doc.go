// Package expected says what the pods of a job will be that waits for admission and has none yet, or too few: as many
// as must start together, each with an equal part of the minResources of its PodGroup.
//
// Main functions: [Sets] returns what stands in for them in the model, [Pods] objects that can be supposed.
//
// Invariant: what a template of the pods says besides requests, such as its node selector, is not known here.
//
// It must not know what is tried with them.
package expected
