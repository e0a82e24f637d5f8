// Package live shows an [audit.Auditor] a cluster that runs, by watches.
//
// It lists and watches the kinds that rules look at, each by a reflector of client-go, and puts what they show into one
// order: that of the resource versions, which are one sequence for all kinds that one etcd stores. A sighting therefore
// waits for a moment in which another watch may show something older.
//
// Invariants:
//
//  1. The auditor is told of what is there first, once every kind has been listed, and of nothing before.
//  2. It is called by one goroutine.
//  3. What a watch missed while it was broken is made up for by the next list: what is not listed any more is gone.
//
// It must not know the rules, nor what an object means.
package live
