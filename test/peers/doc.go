// Package peers judges other schedulers by hekla audit, so that its rules are those of the API and not Hekla's own
// habits.
//
// kube-scheduler runs as it is built from its module, on a local cluster, and has pods to place and to evict. What the
// audit log of the API server shows, and what watches show meanwhile, must break no rule, but that each pod which
// kube-scheduler evicts beyond those that were needed may be found to be evicted in vain.
//
// Volcano and Kueue are judged by recordings in testdata: audit logs of a local cluster, cut to what the auditor reads.
// Tests say exactly what is found in them, and what more is found when they are changed. TestRecordVolcano and
// TestRecordKueue record again if HEKLA_PEERS_PROGRAMS names a folder with vc-scheduler, vc-controller-manager and
// kueue, built from the modules that they name. What is recorded differs each time, so what tests expect has to be read
// from the log again.
package peers
