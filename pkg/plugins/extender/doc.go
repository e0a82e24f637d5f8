// Package extender is the plugin that asks a service outside, by HTTP, as Volcano's plugin of that name does.
//
// Each verb that has a name in the arguments is asked by a POST to <urlPrefix>/<verb>; the others are not. The service
// answers with status 200 and JSON:
//
//	verb             question                     answer                                   what follows
//	predicate        {task, node}                 {status or errorMessage: ""}             a text vetoes the node
//	preemptable      {evictor, evictees}          {status: -1|0|1, victims: [{UID}, …]}    see invariant 3
//	reclaimable      {evictor, evictees}          {status: -1|0|1, victims: [{UID}, …]}    the same, between queues
//	jobEnqueueable   {job}                        {status: -1|0|1}                         refused, no say, permitted
//	queueOverused    {queue}                      {overused: true|false}                   its jobs wait
//	jobReady         {job}                        {status: true|false}                     the job does not start
//	onSessionOpen    {Jobs, Nodes, Queues, …}     any                                      nothing
//	allocateFunc     {task}                       any                                      nothing
//	deallocateFunc   {task}                       any                                      nothing
//
// Tasks, jobs, nodes and queues have the fields that Volcano's structures of these names have, by the same names: those that
// wire.go lists, of which the Kubernetes objects are the most telling. What differs: a node's Tasks come without their Pods,
// and onSessionOpen holds the jobs that wait, without their tasks, and the nodes without theirs.
//
// Main types: [Factory] makes the plugin; package callout, below, does the asking.
//
// Invariants:
//
//  1. predicate is asked about each pod and the node that would be chosen for it, and the next best if it refuses (rule K7), never about
//     all. An answer stands until the node or the pod changes.
//  2. Where managedResources are given, a pod that requests none of them is not asked about, as the
//     one that is placed or the one that takes.
//  3. Pods may leave if all of them are among the victims of the answer; status 0 is no say, whatever the victims.
//  4. An extender that does not answer in time is not asked again in the session. Without an answer it has no say if it is
//     ignorable; else no node is agreed to, no pod leaves, no job passes or starts, and queues have enough.
//  5. allocateFunc and deallocateFunc are told what has come of all that was tried, not every attempt: before the extender is
//     asked anything, and when the next session opens.
//
// A cycle waits for every answer, so the same events give the same decisions only if the extender answers the same. Without
// an effect are prioritize, since nodes are scored one by one, and jobEnqueued and onSessionClose.
package extender
