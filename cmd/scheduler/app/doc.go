// Package app is the scheduler as a process: flags, configuration, leader election, servers, and the loop between inbox
// and outbox.
//
// Main functions: [NewCommand] is the whole command, [Run] the same on a given connection. Behind them, policies turns
// the text of a configuration into a policy, from a source that watches a file or a ConfigMap. runner is what a leader
// does.
//
// Invariants:
//
//  1. Nothing is decided before this process leads, a configuration is in force, and the caches are complete.
//  2. A configuration that cannot be used changes nothing but a metric, the log, and an Event with its ConfigMap.
//  3. A signal ends the process in good order, with code 0: no new cycle, what was begun is finished, the Lease is
//     given back. Lost leadership ends it at once, with another code.
//  4. Whatever Volcano's scheduler accepts on the command line is accepted. What has no meaning here is named in a
//     warning.
//
// It must not know how anything is decided.
package app
