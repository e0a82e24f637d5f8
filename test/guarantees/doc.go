// Package guarantees tests the rules of guaranteed shares on random clusters, through package simulator: trees of queues with
// fences, offsets and delays, pods that run and pods that wait, and victims that come back.
//
// Checked are three rules. No queue is brought below its guarantee (G2). Each plan brings guarantees nearer, so that the cluster
// comes to rest within a bound (G11). The order of the input changes nothing (S3).
//
// HEKLA_GUARANTEES_CLUSTERS says how many clusters are tried.
package guarantees
