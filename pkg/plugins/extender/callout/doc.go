// Package callout asks an extender: one POST of JSON for each question, one JSON object for an answer.
//
// It is the only part of what decides that waits for another program, and kept apart for that.
//
// Invariants:
//
//  1. A call ends within the timeout, the reading of the answer included.
//  2. Of an answer no more than [MaxAnswer] bytes are read; a longer one is an error.
//  3. Errors are in few words that do not depend on when they happen, so that they can be counted and shown. One that says
//     without an answer is [ErrSilent].
//  4. It goes where it was told to go: redirections are not followed.
//
// It must not know what is asked.
package callout
