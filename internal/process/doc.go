// Package process has the flags that the programs in the cluster have in common. The same flag means the same for all
// of them, and is refused in the same words. These flags are about leader election ([Election]) and the log ([Log]), or
// change nothing here ([Superseded]). [LeaveCores] says on how many cores they compute, and [Metrics] and [Profiles]
// what they show of themselves.
//
// Invariants:
//
//  1. A flag of Volcano is accepted. What has no effect is said when it is given, with the reason.
//  2. What cannot be meant is an error that names the flag and the value.
//
// It knows nothing of what the programs do.
package process
