// Package reason numbers the texts of refusals, so that the answers about many nodes take little memory.
//
// Main type: [Texts] has the text of each [Reason]. However many texts there are, none is taken for [Fits].
//
// This package must not know nodes or plugins.
package reason
