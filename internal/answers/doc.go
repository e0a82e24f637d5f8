// Package answers lets people ask the running scheduler: it serves the answers of package explain over HTTPS, as the
// API group answers.hekla.sh, to those who may see them.
//
// The API server passes requests for that group on to this server (API aggregation). So a user needs nothing but a
// kubeconfig, whatever kind of credentials it holds, and RBAC says who may ask what:
//
//	get    jobs pods queues workloads   of a namespace: why does it wait, what does the queue hold
//	create submissions                  of a namespace: what would happen if this were submitted
//	get    nodes diagnoses overviews    of the cluster
//	get    snapshots                    of the cluster: all that the scheduler knows, for replays
//
// An overview is the cluster at a glance: lists of jobs, queues, nodes, evictions and cycles, for the web page. A
// client that asks this server itself, and not by way of the API server, needs no right to overviews if it may get jobs
// in some namespace. It sees the rows of those namespaces, and the sums of the others.
//
// It also serves Kueue's group visibility.kueue.x-k8s.io: the Workloads that wait in a ClusterQueue or LocalQueue, with
// their places (get clusterqueues/pendingworkloads, and localqueues/pendingworkloads of a namespace). Its
// APIServices, and the right to get and patch them, are in installer/visibility.yaml.
//
// Main types: a [Server] is the handler. Its questions are asked of a [hekla.sh/hekla/pkg/scheduler.Questions], which
// answers between cycles. Who asks and what they may is found out by package gate. Package api has what goes over the
// wire. Package publish tells the API server where the leader is, and which authority signed its certificate. Package
// relay passes what the page of another process asks on to the leader.
//
// Invariants:
//
//  1. Nothing is answered to a client that is not authenticated, or that may not get the resource at the path: both are
//     asked of the API server, and refused if it cannot be asked.
//  2. Nothing is changed. A question that is answered leaves model, journal and cluster as they were.
//  3. Names of jobs and pods of namespaces in which the client may not get jobs are left out of every answer, also from
//     sentences; their sums stay. A snapshot is whole, and so is the list of Workloads that wait in a ClusterQueue. The
//     rights to them are rights of their own.
//  4. Questions take at most a bounded part of the scheduler's time ([Share]), and those of one user, or of all
//     ServiceAccounts of a namespace, three quarters of it. Those beyond wait, and those that wait too long fail with
//     429 and the time to wait. A request of more than [MaxBody] bytes is refused, and so is one that takes more than
//     bounds.MaxMemory when it is decoded. Two submissions are read at a time. What takes the loop too long is given up
//     and answered with 413. A client that does not read its answer is left after some time.
//  5. Overviews are made at most once a second ([Freshness]), however many clients read them, and only while one does.
//     Who holds the room is found at most every ten seconds ([HoldersFreshness]).
//  6. What is wrong with a request is answered as a Status of the API, and names the object or the field.
//
// It must not know how answers are found, plugins, or actions.
//
// # Permissions
//
// ClusterRole (verbs per resource):
//
//	authentication.k8s.io   tokenreviews                                            create
//	authorization.k8s.io    subjectaccessreviews                                    create
//	apiregistration.k8s.io  apiservices named v1alpha1.answers.hekla.sh             get patch
//
// Role in the namespace of the Service (volcano-system):
//
//	discovery.k8s.io        endpointslices named volcano-scheduler-answers          get update
//	                        and, for an address of IPv6, volcano-scheduler-answers-ipv6
//
// And the Role extension-apiserver-authentication-reader of Kubernetes in the namespace kube-system.
package answers
