// Package recorder writes the Events of the controllers in the form of core/v1.
//
// Main function: [For] gives a controller its recorder.
//
// Invariants:
//
//  1. Every Event carries the times of its first and last occurrence and a count: what is made through events.k8s.io/v1 must not,
//     and then kubectl cannot sort by them and scripts read nothing.
//
// It must not know any controller or kind.
package recorder
