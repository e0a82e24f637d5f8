// Package settings reads the objects of kueue.x-k8s.io into one form, in which either spelling of a field reads alike,
// every default is in place, and nothing is a pointer that need not be.
//
// Main functions: [OfClusterQueue], [OfCohort], [OfLocalQueue], [OfFlavor], [OfWorkload] and [OfCheck]. [Nodes] and
// [Topology] translate between the nodes of a podset and the field topologyAssignment.
//
// Invariants:
//
//  1. The same object gives the same settings, whichever of its two spellings it uses.
//  2. An object with a problem is read as far as it can be, and has the problem as a text. A problem is what package
//     validation says of it, or a field that is set and that Hekla does not serve. The object is to be treated as
//     inactive. It never stops another.
//  3. A default of the schema is the default here, for objects that were stored without it.
//  4. Lists keep their order: that of flavors says which is tried first.
//
// The settings share memory with the object they were read from. They are not changed.
//
// This package must not know the scheduler's model, other objects, or a client.
package settings
