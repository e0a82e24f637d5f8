// Package guarantees tests the rules of guaranteed shares on random clusters, through package simulator: trees of
// queues with fences, offsets and delays, pods that run and pods that wait, and victims that come back.
//
// In clusters that are left alone three rules are checked. No queue is brought below its guarantee (G2). Each plan
// brings guarantees nearer, so that the cluster comes to rest within a bound (G11). The order of the input changes
// nothing (S3).
//
// The survey is about clusters in which things happen: queues change, pods come, end and are deleted, applications with
// task groups and pods of DaemonSets come, and schedulers crash. Policies restart jobs of which a pod is evicted, roles
// need device claims that never come, and nodes of plans are cordoned while victims leave. Its judge goes through each
// plan by itself, against rules G2 to G10, J2, K2, Q4 and S1. It checks the order of service (G14), that gangs with
// task groups start with all their places (G13), and that no node holds too much (S5). It shares no code with the
// scheduler, and sees of the model only the places that are held for pods which do not exist. Mutants show that it
// rejects what each rule forbids. After a crash at any write no other pods are evicted than without it. At the end of a
// story nothing more may be decided, and no job tried in one cycle after the other. A pod that gets the room of a plan
// that has ended must not be evicted for the same job right after.
//
// HEKLA_GUARANTEES_CLUSTERS says how many clusters are tried, HEKLA_GUARANTEES_STEPS how many steps the survey takes,
// and HEKLA_GUARANTEES_SEED with which seed it begins.
package guarantees
