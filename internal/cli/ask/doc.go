// Package ask has the verbs that ask the scheduler: why, try, diag and snapshot, and replay, which runs a snapshot. It
// reaches the scheduler by way of the API server, with the rights of its user.
//
// Invariants:
//
//  1. One code and one sentence come first; details follow. With -o json or yaml the answer is what the scheduler said,
//     whole.
//  2. Every text ends with a command that shows more or mends it.
//  3. Where the scheduler does not know an object, the API server is asked, and the message says which of the two
//     answered.
//
// It must not know how answers are found.
package ask
