// Package edge connects the Kubernetes API and the model: watch events become events of the model, and decisions become
// writes.
//
// Its parts are packages of their own:
//
//   - apiserver: the connections to the API server, and the handling of requests and answers
//   - intake: the watches, and the events that the loop has not taken yet
//   - leader: the election of one scheduler of several
//   - binder: bindings, with the volumes and devices of a pod
//   - plans: preemption plans, stage by stage
//   - status: the statuses of PodGroups, queues, pods and Workloads
//   - load: the loads of nodes, from a source of metrics
//
// Main type of this package: the [Outbox] passes decisions to the writers, and writes Events.
//
// Invariants, in addition to those of the parts:
//
//  1. The loop never waits for the API server: [intake.Inbox.Take] and [Outbox.Do] only touch memory.
//  2. The loop must not decide anything before [intake.Inbox.WaitSynced] has returned.
//  3. Binds come first. While any wait, plans get a part of the requests, and so do statuses for which a controller
//     waits with pods. All other statuses are deferred but for three a second, so that of each object only the newest
//     is written.
//  4. When leadership is lost, every request in flight is cancelled and none is started.
//  5. No condition of a pod is written after its binding was sent.
//  6. An outbox that is drained begins no further step. The next leader does the rest.
//  7. A pod without a node holds no devices but while its binding is under way, or for some seconds after a process has
//     ended in the middle of one: what is left then is taken back, so that the pod can go to another node.
//  8. Objects of kueue.x-k8s.io are watched once the API server has their definitions. While Kueue itself runs, by its
//     Lease, the loop sees none of them.
//  9. Of decisions about Workloads the loop learns how they ended. One that does not hold any more is not written.
//  10. Events about PodGroups and evictions are written as soon as they can be, up to a rate. Those about single pods
//     that wait or have a node, and about admissions, come after everything else. Only the newest Event of each pod is
//     kept, and of each Workload the newest of each reason. Few are written while bindings or admissions wait, and
//     beyond a limit they are dropped and counted.
//
// The caches are filled only after leadership is won, so a standby costs almost nothing. The lists with which a leader
// begins are newer than everything that the leader before it wrote, because they are read from etcd. The price is the
// time of a list at take-over: about a second per 50,000 pods, after up to fifteen seconds for the Lease.
//
// This package must not know policy: package framework and all above it. The edge reads the clock, and the loop gets
// the time as an argument.
//
// # Permissions
//
// ClusterRole (verbs per resource):
//
//	""                      pods                             get list watch delete
//	""                      pods/binding pods/eviction       create
//	""                      pods/status                      patch
//	""                      nodes                            get list watch
//	""                      namespaces resourcequotas        list watch
//	""                      limitranges                      list watch
//	node.k8s.io             runtimeclasses                   list watch
//	""                      persistentvolumes                get list watch update
//	""                      persistentvolumeclaims           get list watch update
//	storage.k8s.io          storageclasses csinodes          list watch
//	storage.k8s.io          csidrivers csistoragecapacities  list watch
//	storage.k8s.io          volumeattachments                list watch
//	resource.k8s.io         resourceclaims                   get list watch create update delete
//	resource.k8s.io         resourceclaims/status            update
//	resource.k8s.io         resourceclaims/binding           update
//	resource.k8s.io         resourceslices deviceclasses     list watch
//	resource.k8s.io         resourceclaimtemplates           list watch
//	resource.k8s.io         devicetaintrules                 list watch
//	policy                  poddisruptionbudgets             list watch
//	""                      events                           create patch
//	scheduling.volcano.sh   podgroups queues                 get list watch
//	scheduling.volcano.sh   podgroups                        patch
//	scheduling.volcano.sh   podgroups/status queues/status   patch
//	topology.volcano.sh     hypernodes                       list watch
//	kueue.x-k8s.io          clusterqueues cohorts localqueues resourceflavors admissionchecks  list watch
//	kueue.x-k8s.io          workloads                        get list watch patch
//	kueue.x-k8s.io          workloads/status                 patch
//	coordination.k8s.io     leases named c1f6bfd2.kueue.x-k8s.io  list
//	scheduling.k8s.io       priorityclasses                  list watch
//	metrics.k8s.io          nodes                            list
//	custom.metrics.k8s.io   nodes/node_cpu_usage_avg nodes/node_memory_usage_avg  get
//
// With the feature gate SchedulingGatesQueueAdmission also: patch pods (installer/gates.yaml).
//
// The last two are needed only where the block `metrics` of the configuration names them as the source.
//
// Role in the namespace of the Lease and of the configuration (volcano-system):
//
//	coordination.k8s.io     leases                                          create
//	coordination.k8s.io     leases named as --leader-elect-resource-name    get update
//	""                      configmaps named hekla-charts                   get update
//	""                      configmaps named as in --scheduler-configmap    get list watch
//
// The ConfigMap hekla-charts hands the charts of the web page over to the next leader. The last is needed only when the
// configuration is read from the API instead of a file.
package edge
