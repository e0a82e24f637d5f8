// Package explain answers questions about the model: why a job waits, where a pod may go, what a queue holds and from which queues
// it may take, who is on a node, and what would happen if a job were submitted.
//
// Main types: a [Model] is asked; [Job], [Pod], [Queue], [Node] and [Submission] are answers. They are plain data for JSON: no
// answer refers to a part of the model.
//
// A Model has plugins and placement engines of its own, made of the same configuration. So what plugins and engines have
// found out for decisions is not touched by a question. What must be tried is tried on the model itself, in a trial
// ([cluster.Cluster.Try]) that is undone, by the code that decides.
//
// Invariants:
//
//  1. After an answer the model is as it was: what it holds, the verdicts, what would wake a job, and what has changed since
//     statuses were written last.
//  2. The work for an answer is bounded: lists name at most [MaxListed] entries beside how many there are, nodes are explained for at
//     most [MaxClasses] kinds of pods, and a search for victims looks at no more than [MaxSearched] nodes.
//  3. The same model, configuration and time give the same answer, byte for byte.
//  4. No answer waits for another process: plugins that ask one ([framework.RemotePlugin]) have no say in answers, which name them.
//
// It must not know the loop, Kubernetes clients, or the clock, and it decides nothing.
package explain
