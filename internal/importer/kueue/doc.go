// Package kueue turns a Configuration of Kueue (config.kueue.x-k8s.io, v1beta1 or v1beta2) into the configuration of
// Hekla's scheduler.
//
// Main function: [Import]. Every key of the Configuration has a line in the result: kept, changed, or lost.
//
// Invariants:
//
//  1. The text is read strictly: a key that Kueue does not have, or a value of the wrong kind, is an error, and all are
//     listed.
//  2. A key that is written and has no counterpart is lost, unless it has the value that Hekla has anyway.
//  3. Defaults are those of the version of the text: what is printed means what Kueue would have done.
//
// It must not know the objects of kueue.x-k8s.io, which stay as they are.
package kueue
