// Package edge stands between the Kubernetes API and the model: what the API shows becomes events, and decisions become
// writes.
//
// Main types: [Clients] are the connections to the API server; [Inbox] watches and keeps the events that were not taken
// yet; [Outbox] carries decisions out; [Lead] runs a function for as long as this process is the leader.
//
// Invariants:
//
//  1. Nothing here waits for the API server on behalf of the loop: [Inbox.Take] and [Outbox.Do] only touch memory.
//  2. The inbox holds at most two events per object, however long it is not emptied: that the object it replaced is gone,
//     and what it is now. What was never taken and is outdated is never seen.
//  3. The first Take after [Inbox.WaitSynced] returns the whole cluster, from lists that are no older than the call of
//     [Inbox.Start]. Nothing may be decided before.
//  4. A binding names the UID of its pod and the API server binds a pod only once, so no repetition, race or deposed
//     leader binds a pod twice or binds one that was made anew under the same name.
//  5. A binding ends in what the API server showed: the pod is bound, or gone, or a live read after the last attempt
//     shows it without a node; only then [cluster.BindFailed] is reported. Time alone ends none.
//  6. Statuses are coalesced: at most one waits per object, the newest; it is tried until it is written, replaced, or its
//     object is gone. Only fields that are the scheduler's own are written, and never to another object of the same name.
//  7. Binds go first. While any waits, plans get a part of the requests, and statuses pass at a trickle.
//  8. When leadership is lost every request under way is broken off and none is started.
//  9. A plan is written in stages, and none begins before the one before it is confirmed by the API server: the PodGroup says
//     that there is a plan, the pods of the taker say which nodes they are promised and by which plan, every victim says that it is
//     to leave, for which plan and why, and then the victims are told to. So whoever takes over in the middle finds all that was meant. Of a plan that has
//     several victims the API server says, before the first is marked, whether it would evict each (a dry run): if one is refused,
//     no other leaves in vain.
//  10. Each of these steps names the UID of its pod and may be repeated: a lost reply is answered by sending it again. A step
//     that is refused for good, or [maxBindRequests] times, ends the plan: nothing more of it is sent, and
//     [cluster.PlanFailed] is reported when nothing of it is under way any more, with the victims that were refused.
//  11. Of a plan that is cancelled nothing more is sent from that moment on. What was written is taken back in the reverse
//     order, for each pod after the request that was under way, and only where a live read still shows it. That is tried
//     until it is done or refused, for nobody else would do it.
//  12. A disruption budget is passed over only where the eviction says so; then the pod is deleted without asking for one.
//  13. An outbox that is drained begins no further step. The rest is for the next leader.
//  14. What a pod takes of volumes and devices is written before its binding, and the binding is sent when the volumes are
//     bound and the devices ready. A claim that is made for a pod is written under the name that was decided, so that making it
//     may be repeated. A binding that is refused gives its devices back first. Who waits for volumes or devices holds up no
//     stop.
//  15. Events about PodGroups and evictions are written as soon as they can be, up to a rate. Those that say of each pod that it
//     waits or has its node come after everything else: of a pod the newest, few while bindings wait, and beyond a number
//     that may wait they are dropped and counted.
//
// The caches are filled after leadership was won, not before. A standby then costs next to nothing, and the lists with
// which a leader begins are newer than everything the leader before it wrote, because they are read through to etcd. The
// price is the time of a list at take-over: about a second per 50,000 pods, after a wait of up to fifteen for the Lease.
//
// It must not know policy: package framework and all above it. Time is read here, the loop gets it as an argument.
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
//	""                      persistentvolumes                get list watch update
//	""                      persistentvolumeclaims           get list watch update
//	storage.k8s.io          storageclasses csinodes          list watch
//	storage.k8s.io          csidrivers csistoragecapacities  list watch
//	storage.k8s.io          volumeattachments                list watch
//	resource.k8s.io         resourceclaims                   get list watch create update delete
//	resource.k8s.io         resourceclaims/status            update
//	resource.k8s.io         resourceclaims/binding           update
//	resource.k8s.io         resourceslices deviceclasses     list watch
//	resource.k8s.io         devicetaintrules                 list watch
//	policy                  poddisruptionbudgets             list watch
//	""                      events                           create patch
//	scheduling.volcano.sh   podgroups queues                 get list watch
//	scheduling.volcano.sh   podgroups                        patch
//	scheduling.volcano.sh   podgroups/status queues/status   patch
//	topology.volcano.sh     hypernodes                       list watch
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
//	""                      configmaps named as in --scheduler-configmap    get list watch
//
// The last is needed only when the configuration is read from the API instead of a file.
package edge
