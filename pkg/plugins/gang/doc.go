// Package gang is the plugin that starts the pods of a job together or not at all: at least minMember of them, and of
// each task at least its own minimum (minTaskMember); and that does not let pods leave who would break their gang.
//
// As in Volcano the minimums of the tasks do not bind when minMember is smaller than their sum: then any pods will do.
// Jobs that have not started are served before those that have, and of those the ones that have lost pods and are below
// their minimum first: a broken gang holds room for nothing.
//
// Invariants:
//
//  1. Pods may leave if all pods of their gang leave with them, or if what stays is still a gang: minMember pods, and of
//     each task its minimum (rule J2). A pod that is promised room is not there yet and does not count as staying, not even
//     one of the same job that the others leave for: until it starts the gang would be broken.
//  2. A gang that is broken already gives pods only all together.
//  3. A job lacks something until minMember of its pods have a node or the promise of one.
package gang
