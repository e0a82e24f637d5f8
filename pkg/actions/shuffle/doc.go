// Package shuffle is the action that evicts pods which plugins name, for no preemptor: their time on a node is over, or
// they run in the wrong place.
//
// Invariants: if a plugin names pods, plugins of later tiers are not asked. A pod that is being deleted is left alone.
package shuffle
