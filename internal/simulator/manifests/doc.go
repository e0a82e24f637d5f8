// Package manifests reads the files of a simulation: the objects of a cluster, and the configuration of the scheduler.
//
// Main types: an [Input] is what the files say, with all defaults filled in that an API server would fill in; [Read]
// and [New] make one.
//
// Invariants:
//
//  1. Nothing is read that is not understood: an unknown kind or field, or an object given twice, is an error with its
//     place, and there is no input.
//  2. The same objects give the same input, whatever the order of files and documents.
//
// It must not know what a simulation does with the input.
package manifests
