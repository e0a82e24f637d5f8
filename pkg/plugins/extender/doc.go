// Package extender is the plugin that asks an HTTP service, as Volcano's plugin of that name does.
//
// Each verb that has a name in the arguments is asked by a POST to <urlPrefix>/<verb>. The others are not asked. The
// service answers with status 200 and JSON:
//
//	verb             question                     answer                                   what follows
//	predicate        {task, node}                 {status or errorMessage: ""}             a text vetoes the node
//	preemptable      {evictor, evictees}          {status: -1|0|1, victims: [{UID}, …]}    see invariant 3
//	reclaimable      {evictor, evictees}          {status: -1|0|1, victims: [{UID}, …]}    the same, between queues
//	jobEnqueueable   {job}                        {status: -1|0|1}                         reject, abstain, permit
//	queueOverused    {queue}                      {overused: true|false}                   its jobs wait
//	jobReady         {job}                        {status: true|false}                     the job does not start
//	onSessionOpen    {Jobs, Nodes, Queues, …}     any                                      nothing
//	allocateFunc     {task}                       any                                      nothing
//	deallocateFunc   {task}                       any                                      nothing
//
// Tasks, jobs, nodes and queues have the fields of Volcano's structures with these names, as far as wire.go lists them,
// and the Kubernetes objects are among them. Two things differ: the Tasks of a node come without their Pods, and
// onSessionOpen has only the jobs that wait, without their tasks, and the nodes without theirs.
//
// Main types: [Factory] makes the plugin. Package callout, below, sends the requests.
//
// Invariants:
//
//  1. predicate is asked only about the node that would be chosen for a pod, and the next best if it refuses (rule K7).
//     An answer is kept until the node or the pod changes.
//  2. With managedResources, the extender is not asked about pods that request none of them, neither as the pod to
//     place nor as the preemptor.
//  3. Pods may be evicted if all of them are among the victims of the answer. Status 0 abstains, whatever the victims.
//  4. An extender that does not answer in time is not asked again in the session. If it is ignorable, the plugin then
//     abstains. Otherwise it vetoes every node, rejects every eviction and admission, starts no job, and every queue is
//     overused.
//  5. allocateFunc and deallocateFunc report the result of all that was tried, not every try: before any other
//     question, and when the next session opens.
//
// A cycle waits for every answer, so the same events lead to the same decisions only if the extender gives the same
// answers. These verbs have no effect: prioritize, since nodes are scored one by one, and jobEnqueued and
// onSessionClose.
package extender
