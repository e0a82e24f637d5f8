// Package propose looks for changes with which a job that waits would start: fewer pods, smaller requests, another
// queue, more quota, more nodes.
//
// Main types: a [Job] is what changes are looked for; a [Proposal] is one of them.
//
// Invariants:
//
//  1. A proposal that starts the job was tried by the code that places, in a trial that is undone.
//  2. The number of trials is limited, whatever the job.
//
// It must not know how trials are made, or the clock.
package propose
