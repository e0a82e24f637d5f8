// Package apiserver is a Kubernetes API server in memory, for simulations: one process, no listener, no etcd, and
// the simulation decides what happens when.
//
// Almost all of it is the code of kube-apiserver itself: the handlers of k8s.io/apiserver (all verbs, patches of four
// kinds with server-side apply, dry runs, tables and metadata, JSON and protobuf), the registries of k8s.io/kubernetes
// (defaults, validation, preconditions, binding, eviction with budgets, graceful deletion, finalizers), the admission
// plugins that are on by default, ValidatingAdmissionPolicies and calls of webhooks, the handler of custom resources of
// k8s.io/apiextensions-apiserver, discovery, the audit log, and the storage layer that reads and writes etcd. In place
// of etcd stands a map with revisions.
//
// Main types: [Server] serves requests one at a time ([Server.Handle]) and opens watches ([Server.Watch]). A [Cursor]
// is a watch: it offers the events in their order, and its holder delivers each one, a bookmark or the error 410, or
// cuts it. [Options.CacheRevision] lets lists with resourceVersion=0 answer from the past; [Server.Compact] lets
// older revisions expire. A [Snapshot] saves the start: creating our definitions takes a second of work, restoring them
// a tenth.
//
// Invariants:
//
//  1. A request is done when Handle returns. Goroutines that serve it have ended by then, but those that wait for the
//     next event of a watch, and those that take a second of virtual time to end after a definition has changed; Close
//     waits for both. No request waits for time to pass.
//  2. The same requests at the same times with the same seed get the same bytes: UIDs and generated names come from the
//     seed and the revision, so that readers in any order change nothing for others; times come from the clock of the
//     process, which is the bubble's in testing/synctest. For that, what k8s.io/apimachinery and
//     github.com/google/uuid take chance from is set, so that a process has one server at work at a time.
//  3. What controllers of definitions do later in a cluster (accept names, establish, clean up, publish) and what
//     informers of the API server learn later (policies, quotas, limits, classes, webhooks) is done when Handle
//     returns.
//
// The tests compare it with a real API server: random requests about seventeen kinds, sequences that chance would not
// find, and watches with and without initial events get the same codes, bodies and events; only UIDs, times and
// resource versions may differ.
//
// # Known differences
//
//   - There is no delay inside the server, see invariant 3. A watch from before the server's cache of a custom resource
//     began gets 410 in a cluster, and here only after Compact.
//   - The resource version of a list from a cache is that of the whole store, or what [Options.CacheRevision] says; in
//     a cluster it may be that of the last change to the resource.
//   - ServiceAccounts are no requirement of pods, since controllers make them. Certificates, tokens, exec, logs and
//     proxies are not served, and no MutatingAdmissionPolicies.
//   - Definitions: of the checks of names only kinds are compared, and the conditions for nonstructural schemas are not
//     set; conversion by webhooks is not served.
//   - Services get addresses and ports in the order of chance of their allocators, without records of them.
//   - The causes of an invalid object are sorted by field; the API server gives those of custom resources in an order
//     of chance.
//   - Users are who [Options.User] says. Without [Options.Authorize] all is allowed.
//   - /version says v0.0.0 unless the binary is linked with a version.
//   - What is served is what kube-apiserver serves by default: no alpha and beta versions.
package apiserver
