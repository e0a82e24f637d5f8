// Package yunikorn turns the configuration of YuniKorn into objects of Hekla: queues.yaml into Queues, the queue of
// each namespace into an annotation, and the settings of a partition into a configuration of the scheduler.
//
// Main function: [Import] takes the text, and returns a [Result]: the objects, and a line for each key that was read,
// which says whether it was kept, changed or lost. A text that YuniKorn itself would refuse gives an error and no
// result.
//
// Invariants:
//
//  1. Each key of the text has at least one line. No key is dropped silently, and none is guessed: a key that YuniKorn
//     does not know is a problem.
//  2. All problems are listed, in the order of the text.
//  3. The same input gives the same objects and lines. Each Queue comes after the Queue above it.
//  4. What is lost stays out of the objects. It never makes a queue hold more than before without a line that says so.
//  5. The configuration of the scheduler is one that it accepts.
//
// This package must not read files, talk to an API server, or know how queues are enforced.
package yunikorn
