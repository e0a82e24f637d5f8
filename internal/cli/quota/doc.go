// Package quota has the verbs about the kinds of kueue.x-k8s.io, with the flags of kueuectl: create, list, stop and
// resume. Its verb tree shows Cohorts and ClusterQueues.
//
// Main functions: [NewCommands] are the verbs. The first four have a subcommand for every kind that they are for.
//
// Invariants:
//
//  1. What a flag says is checked before the API server is asked, by the rules that the webhook has.
//  2. A table begins with the columns of kueuectl, in its order.
//  3. Stopping and resuming change nothing but the stopPolicy, or active of a Workload.
//
// It must not know how workloads are admitted; it says what their conditions say.
package quota
