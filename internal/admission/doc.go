// Package admission answers the API server when a client creates, changes or deletes objects of Hekla. It fills in
// defaults, and refuses what could never work, with field and value, while the user still looks. Nothing else depends
// on it. If it was down or is not installed, the controllers and the scheduler apply the same rules later.
//
// Main types: [Options] say what is served; [Add] puts the server into a manager. Inside, a service is one webhook: its
// path, what is sent there, and the handler. A handler is made from a function that edits an object (mutates), or one
// that says what is wrong with it (validates). services is the table of them, with a line for each kind. A rule is a
// function of an object and a reader. A rule that needs other objects reads them from the cache, and again from the API
// server before it refuses.
//
// Rules that need no server to answer are not here: those of a single object are in its CustomResourceDefinition, those
// about deletions, the queue root and Commands in installer/policies.yaml, as CEL.
//
// Invariants:
//
//  1. Nothing is sent here but what a rule may have something to say about: match conditions see to that. Of pods,
//     those of a resource group, those of our schedulers with a disruption budget, or that ask to wait for their queue,
//     and those that name a LocalQueue. Of updates, those of a spec, or of the labels by which jobs and pods are
//     queued. Jobs and pods that name a LocalQueue are sent only while the scheduler admits workloads, and Jobs that
//     name none only where a namespace has a LocalQueue for them. Kueue's kinds are not sent while it runs.
//  2. Webhooks for kinds that others have, or that hold what already runs, are ignored when no webhook answers. Only
//     what users write of ours waits for an answer.
//  3. An error, or a bug, is treated like no answer: allowed where the webhook is ignored then, refused elsewhere.
//  4. A change is made by the smallest patch: fields that this program does not know stay as they are.
//  5. The same request gets the same words each time.
//  6. A rule that a stored object breaks refuses no change to another part of it.
//  7. Bodies, their sum in memory, and the time for an answer are bounded.
//  8. Replicas need not know of each other: certificates are in one Secret, and what is registered follows from the
//     flags and the Secret alone.
//
// It must not know how scheduling decides, nor write any object of the user.
//
// # Permissions
//
// ClusterRole (verbs per resource):
//
//	scheduling.volcano.sh         queues                                                        list watch
//	kueue.x-k8s.io                localqueues                                                   list watch
//	scheduling.volcano.sh         podgroups                                                     list
//	coordination.k8s.io           leases  named c1f6bfd2.kueue.x-k8s.io                         list
//	""                            pods                                                          list
//	""                            namespaces                                                    get list watch
//	batch                         jobs                                                          get
//	jobset.x-k8s.io               jobsets                                                       get
//	kubeflow.org                  jaxjobs mpijobs paddlejobs pytorchjobs tfjobs xgboostjobs     get
//	leaderworkerset.x-k8s.io      leaderworkersets                                              get
//	ray.io                        rayclusters rayjobs rayservices                               get
//	sparkoperator.k8s.io          sparkapplications                                             get
//	trainer.kubeflow.org          trainjobs                                                     get
//	workload.codeflare.dev        appwrappers                                                   get
//	admissionregistration.k8s.io  mutatingwebhookconfigurations    named volcano-admission       get update
//	admissionregistration.k8s.io  validatingwebhookconfigurations  named volcano-admission       get update
//
// Role in the namespace of the Secret (volcano-system):
//
//	""                            secrets                          named volcano-admission-secret     get update
//	""                            configmaps                       named volcano-scheduler-configmap  get
//
// The Secret and the two configurations are installed empty, so that the controllers need no right to create such
// objects.
package admission
