// Package callout asks an extender: one POST of JSON for each question, one JSON object as the answer.
//
// It is the only code in the core that waits for another program, and is a package of its own for that reason.
//
// Invariants:
//
//  1. A call ends within the timeout, including reading the answer.
//  2. No more than [MaxAnswer] bytes of an answer are read. A longer one is an error.
//  3. Errors are short and do not depend on the time, so that they can be counted and shown. If there is no answer the
//     error is [ErrSilent].
//  4. Redirections are not followed.
//
// This package must not know what is asked.
package callout
