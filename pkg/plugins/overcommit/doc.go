// Package overcommit is the plugin that keeps jobs pending admission while the cluster is full: a job is admitted as long as what jobs
// were admitted for, and do not hold yet, fits into the cluster times overcommit-factor, beside all that is used.
//
// Invariants:
//
//  1. What a job that was admitted holds, or is promised, counts once: as used, no longer as booked. What leaves counts no
//     more.
//  2. Only resources that the job's minResources name are looked at. A job without minResources is admitted.
//  3. The cluster is the nodes that can be used (rule Q6). For a job whose pods are not made yet that is with those whose taints no
//     pod tolerates so far: whether its own will is not known.
//  4. The factor is taken as it is written, in decimal: 1.2 of 10 GiB is 12 GiB to the byte.
//
// A factor below 1 would keep a part of the cluster empty for ever. As in Volcano it counts as 1.2.
//
// It must not know queues: their limits are kept by proportion and capacity.
package overcommit
