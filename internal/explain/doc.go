// Package explain answers questions about the model: why a job waits, where a pod may run, what a queue holds, and from
// which queues it may reclaim. It also says which pods are on a node, and what would happen if a job were submitted.
//
// Main types: a [Model] is asked. [Job], [Pod], [Queue], [Node] and [Submission] are answers. They are plain data for
// JSON. No answer points into the model.
//
// A Model has plugins and placement engines of its own, made from the same configuration. So a question does not change
// what plugins and engines have stored for decisions. If something must be tried, it is tried on the model itself, in a
// trial ([cluster.Cluster.Try]) that is undone, by the same code that decides.
//
// Invariants:
//
//  1. After an answer the model is as it was: its objects, the verdicts, what would wake a job, and what has changed
//     since statuses were last written.
//  2. The work for an answer is limited. Lists name at most [MaxListed] entries and the total, nodes are explained
//     for at most [MaxClasses] classes of pods, and a search for victims looks at no more than [MaxSearched] nodes.
//     Work that goes on for more than [MaxSteps], or for longer than who asks allows ([Model.Bound]), ends with
//     [ErrTooLarge].
//  3. The same model, configuration and time give the same answer, byte for byte. Questions within a second may share
//     what was found out about one state of the model; the place in a long queue may be some seconds old
//     ([hekla.sh/hekla/internal/explain/order.Backlog]).
//  4. No answer waits for another process. Plugins that ask one ([framework.RemotePlugin]) are left out, and the answer
//     names them.
//
// This package must not know the loop, Kubernetes clients, or the clock, and makes no decisions.
package explain
