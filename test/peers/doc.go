// Package peers judges other schedulers by hekla audit, so that its rules are those of the API and not Hekla's own
// habits.
//
// kube-scheduler runs as it is built from its module, on a local cluster, and has pods to place and to evict. What the
// audit log of the API server shows, and what watches show meanwhile, must break no rule, but that each pod which
// kube-scheduler evicts beyond those that were needed may be found to be evicted in vain.
package peers
