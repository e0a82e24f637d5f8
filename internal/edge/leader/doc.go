// Package leader elects one scheduler of several by a Lease, and runs a function for as long as this process leads.
//
// Main type: [Election].
//
// Invariants:
//
//  1. The context of the leader's function ends before another process can lead.
//  2. The Lease is released only after the function has returned.
//  3. Renewals have a connection and a limit of requests of their own, so that no load delays them.
//
// This package must not know what the leader does.
package leader
