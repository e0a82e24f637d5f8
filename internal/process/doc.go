// Package process is what the programs that run in the cluster have in common on their command lines, so that the same flag
// means the same for all of them, and is refused in the same words: leader election ([Election]), the log ([Log]), and the
// flags of Volcano that change nothing here ([Superseded]).
//
// Invariants:
//
//  1. A flag of Volcano is accepted. What has no effect is said when it is given, with the reason.
//  2. What cannot be meant is an error that names the flag and the value.
//
// It knows nothing of what the programs do.
package process
