// Package shuffle is the action that evicts pods which plugins name though no job takes their room: their time on a node is
// up, or they stand in the wrong place.
//
// Invariants: what is named by a plugin of an earlier tier keeps those of later tiers from being asked; a pod that is on its
// way out already is left alone.
package shuffle
