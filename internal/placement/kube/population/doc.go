// Package population knows which pods are on nodes, for classes of pods that depend on pods elsewhere.
//
// Main type: a [Population] finds the pods that may matter to a class by namespace, by label, and by what their
// affinity terms select. It also lists what has come and gone, so that a class follows it without another search.
//
// Invariants:
//
//  1. A search finds every pod that the class selects, and every pod with a term about the class. It may find others.
//  2. Indexes by label are made when they are asked for. Their size is bounded.
//  3. What is found comes in no order: it may only be counted.
//
// It must not know the model, nor what is counted.
package population
