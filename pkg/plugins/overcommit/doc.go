// Package overcommit is the plugin that keeps jobs pending admission while the cluster is full. A job is admitted if
// its minResources fit into the cluster times overcommit-factor, in addition to what is used and what admitted jobs
// still lack of theirs.
//
// Invariants:
//
//  1. What tasks of an admitted job hold, on a node or pipelined, counts as used and no longer as lacking. What is
//     being evicted does not count.
//  2. Only resources that the job's minResources name are compared. A job without minResources is admitted.
//  3. The cluster is the usable nodes (rule Q6). A node that holds more of a resource than it offers counts with what
//     it holds. For a job without pods yet, it includes nodes with taints that no pod tolerates so far, because its
//     tolerations are not known.
//  4. The factor is taken as the decimal that the user wrote: 1.2 times 10 GiB is exactly 12 GiB.
//
// A factor below 1 would keep a part of the cluster empty for ever. As in Volcano it counts as 1.2.
//
// This package must not know queues. The plugins proportion and capacity enforce their limits.
package overcommit
