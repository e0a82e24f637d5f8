// Package reason numbers the refusals of nodes, so that the answers about many nodes take little memory.
//
// Main type: [Refusals] has the refusal of each [Reason]. However many there are, none is taken for [Fits].
//
// This package must not know nodes or plugins.
package reason
