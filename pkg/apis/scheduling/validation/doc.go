// Package validation says what is wrong with a PodGroup or a Queue of scheduling.volcano.sh, with field and value, as
// far as the object alone shows it and its CustomResourceDefinition cannot. The words are Volcano's where scripts know
// them.
//
// Main functions: [ValidatePodGroup], [ValidateQueueHierarchy] and [ValidateQueueProperties].
//
// Invariant: the same object gets the same problems in the same order.
//
// It must not know other objects: a queue's place among others is judged by the webhooks.
package validation
