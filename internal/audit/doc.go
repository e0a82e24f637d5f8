// Package audit proves from the audit log of an API server, or from what its watches show, what a scheduler did
// wrong. It serves any scheduler that binds pods by the API of Kubernetes: it reads requests and the objects that
// they made, and asks no one why.
//
// The parts:
//
//   - [Auditor.Read] reads the log, a JSON object a line, on all cores, and keeps what concerns pods, nodes, gangs,
//     queues and quotas.
//   - [Auditor.Watched] takes in what watches show instead, and infers the requests that can be inferred from it. The
//     package live below it does the watching.
//   - The [Auditor] takes these requests in the order in which they arrived, and keeps the cluster as it was at each
//     of them: which pod holds what on which node, and for which gang, queue and Workload.
//   - Each rule, a file of its own, looks at one kind of change and reports a [Violation].
//
// Invariants:
//
//  1. A violation is proven. A log does not say when between its arrival and its answer a request took effect. So
//     requests are taken in the order of their arrival: whatever a scheduler had seen when it sent one had arrived
//     before. What a scheduler may not have seen yet, such as a node that offers less since a moment, is not held
//     against it. What the log leaves open is counted in [Report.Unknown], and is no violation.
//  2. An object that is older than the log is unknown until a request shows it whole, or [Auditor.Know] tells of it.
//     Nothing is said about a node of which pods may be unknown.
//  3. Memory grows with the objects that are there at one time, not with the log.
//
// It must not know how Hekla decides: it imports nothing of this module but the types of the API and the gate for
// foreign text.
package audit
