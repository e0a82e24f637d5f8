// Package properties reads the annotations of Queues that the plugin guaranteed-shares knows: YuniKorn's queue
// properties.
//
// Main function: [Read] returns the [Properties] of a queue, and a [Problem] for each value that cannot be read.
// Webhooks refuse a Queue with a problem. The scheduler uses the default in its place, and keeps everything else of the
// queue.
//
// Invariants:
//
//  1. The same annotations give the same properties and the same problems, in the order of the keys.
//  2. A value that cannot be read changes nothing but its own property.
//
// This package must not know other queues, so not what a queue inherits, nor what the properties cause.
package properties
