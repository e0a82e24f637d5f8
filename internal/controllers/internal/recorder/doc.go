// Package recorder writes the Events of the controllers in the form of core/v1.
//
// Main functions: [For] gives a controller its recorder, [Once] records what is to be said once.
//
// Invariants:
//
//  1. Every Event carries the times of its first and last occurrence and a count: what is made through events.k8s.io/v1
//     must not, and then kubectl cannot sort by them and scripts read nothing. The times are those of what happened,
//     however late it is written.
//  2. Events do not take the API server from what the controllers are there for: of each controller few are written in
//     a second after a first burst. Warnings come first. Of many others the newest come first, those are dropped that
//     have waited too long, and so are all beyond a limit.
//  3. What is recorded by [Once] is there once, also after a restart: the Event itself is the memory of that.
//
// It must not know any controller or kind.
package recorder
