// Package controllers turns what users submit into what the scheduler works on: Jobs into PodGroups and pods, lone pods
// into PodGroups, schedules into Jobs, and it keeps the state and counts of Queues. Each controller is a sub-package of
// its own; this package only puts the chosen ones into one controller-runtime manager (Add) and shapes the cache they
// share (CacheOptions).
//
//	job          Job -> PodGroup <job>-<uid> and pods <job>-<task>-<index>; phases, counts, the reason for waiting
//	podgroup     a pod of our scheduler without a PodGroup -> PodGroup podgroup-<owner or pod uid>
//	cronjob      CronJob -> a Job <cronjob>-<minutes since 1970> whenever one is due
//	queue        root and default exist; parent, state and PodGroup counts of every queue; opens and closes by Command
//	jobflow      JobFlow -> Jobs <jobflow>-<jobtemplate>, each when what it depends on holds; asks pods that are probed
//	jobtemplate  the Jobs that were made from a JobTemplate, in its status
//	hypernode    how many nodes are in each HyperNode, and what is wrong with those that are left out; makes HyperNodes of
//	             the labels of nodes, if the ConfigMap volcano-controller-configmap says so
//	workload     Jobs of batch/v1, pods and groups of pods with a LocalQueue -> Workload; starts and stops them; states of
//	             ClusterQueues and LocalQueues
//
// The last, garbagecollector, deletes Jobs whose ttlSecondsAfterFinished is over.
//
// Invariants:
//
//  1. Level-triggered: a reconcile reads the present state and moves it towards the wanted one. Losing an event, or
//     being killed between any two API calls and started again, changes nothing but the time it takes.
//  2. Nothing is created twice: names follow from the owner, and "already exists" is accepted only when the object
//     belongs to that owner.
//  3. Status is written when it differs, as a patch of the fields the controller owns: the scheduler's fields of a
//     PodGroup or Queue are never in it.
//  4. One broken object stops itself only. It gets an Event that names field and value, and is tried again with a
//     growing delay.
//  5. The permissions below are all that is needed; the binary runs under exactly these.
//
// The controllers must not know how scheduling decides: the PodGroup's phase and conditions are all they see of it.
//
// # Permissions
//
// ClusterRole (verbs per resource):
//
//	""                      pods                                get list watch create patch delete
//	""                      namespaces nodes                    list watch
//	""                      persistentvolumeclaims              get create
//	""                      configmaps services                 get create patch delete
//	""                      secrets                             get create patch delete
//	networking.k8s.io       networkpolicies                     get create patch delete
//	""                      events                              create patch
//	batch.volcano.sh        jobs                                get list watch create delete
//	batch.volcano.sh        jobs/status                         patch
//	batch.volcano.sh        jobs/finalizers                     update
//	batch.volcano.sh        cronjobs                            get list watch
//	batch.volcano.sh        cronjobs/status                     patch
//	batch.volcano.sh        cronjobs/finalizers                 update
//	bus.volcano.sh          commands                            get list watch delete
//	admissionregistration.k8s.io validatingadmissionpolicies validatingadmissionpolicybindings named volcano-queue-commands get
//	flow.volcano.sh         jobflows                            get list watch
//	flow.volcano.sh         jobtemplates                        list watch
//	flow.volcano.sh         jobflows/status jobtemplates/status patch
//	flow.volcano.sh         jobflows/finalizers                 update
//	scheduling.volcano.sh   podgroups                           get list watch create patch delete
//	scheduling.volcano.sh   queues                              get list watch create patch
//	scheduling.volcano.sh   queues/status                       patch
//	topology.volcano.sh     hypernodes                          list watch create patch delete
//	topology.volcano.sh     hypernodes/status                   patch
//	""                      limitranges                         list watch
//	node.k8s.io             runtimeclasses                      list watch
//	scheduling.k8s.io       priorityclasses                     list watch
//	apps                    daemonsets replicasets statefulsets get
//	batch                   jobs                                get list watch patch
//	batch                   jobs/status                         patch
//	jobset.x-k8s.io         jobsets                             get
//	kubeflow.org            jaxjobs mpijobs paddlejobs pytorchjobs tfjobs xgboostjobs get
//	leaderworkerset.x-k8s.io leaderworkersets                    get
//	ray.io                  rayclusters rayjobs rayservices     get
//	sparkoperator.k8s.io    sparkapplications                   get
//	trainer.kubeflow.org    trainjobs                           get
//	workload.codeflare.dev  appwrappers                         get
//	kueue.x-k8s.io          workloads                           list watch create patch delete
//	kueue.x-k8s.io          localqueues cohorts workloadpriorityclasses list watch
//	kueue.x-k8s.io          clusterqueues resourceflavors admissionchecks list watch patch
//	kueue.x-k8s.io          workloads/status clusterqueues/status localqueues/status cohorts/status admissionchecks/status patch
//	coordination.k8s.io     leases named c1f6bfd2.kueue.x-k8s.io list
//
// Role in the namespace of the Lease (volcano-system):
//
//	coordination.k8s.io     leases                              create
//	coordination.k8s.io     leases named vc-controller-manager  get update
//	""                      configmaps named volcano-controller-configmap  get list watch
//	""                      configmaps named volcano-scheduler-configmap  get
//	""                      events                              create patch
//
// Clusters that enforce owner reference permissions ask for the finalizers. The reason is that pods and PodGroups block
// the foreground deletion of their Job, and Jobs that of their CronJob or JobFlow. CronJobs and JobFlows create Jobs.
// They are deleted when their ttlSecondsAfterFinished is over, for the history of a CronJob, to be replaced by its next
// run, or when a JobFlow that has succeeded does not retain them. ConfigMaps, Secrets, Services and NetworkPolicies are
// those of job plugins, read by name only. Jobs of batch/v1 are changed only if they name a LocalQueue. HyperNodes are
// made, changed and deleted by the discovery: those of users never. The events of the Role are those of leader
// election.
package controllers
