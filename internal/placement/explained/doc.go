// Package explained keeps why each node refuses a class of pods, for questions that come again and again.
//
// Main types: an [Answer] is about one class, follows the changes of nodes, and counts the reasons as they change.
// [Answers] are those that are kept.
//
// Invariants:
//
//  1. An answer that has followed the changes is that of a new one.
//  2. What is kept takes about [limit.Bytes] at most, whatever the number of classes and nodes.
//
// This package must not know how a node is judged.
package explained
