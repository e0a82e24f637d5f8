// Package statuses decides what is to be written to PodGroups, queues and pods: statuses and conditions, the HyperNode of a PodGroup,
// gates of queue admission to be opened, Events, and the records of plans.
//
// Main types: a [Reporter] looks at the model after the actions of each cycle and adds what is to be written to the decisions. It
// remembers what it decided of each object, since the API server may not show that yet.
//
// Invariants:
//
//  1. A status is decided only when it differs from what the API server shows and from what was decided last.
//  2. Only jobs and queues that something has happened to are looked at.
//  3. Nothing is remembered of an object that the model has forgotten: one that is gone or was made anew under its name, or a job
//     that was handed over. What such a job or its successor shows counts again.
//  4. Of a pod that the gate of queue admission holds nothing is said to autoscalers. Its gate is opened when it gets a node, or
//     lacks nothing else: of a gang together, and never for more than the queue may hold beside what was opened before.
//  5. Of a gang that has no place, those pods say Schedulable that have one, unless the plugin gang says otherwise. A pod that names
//     no PodGroup is told so when none was made for a while.
//
// It must not know how statuses are written, or the wall clock. It places and evicts nothing.
package statuses
