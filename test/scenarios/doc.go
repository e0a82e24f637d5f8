// Package scenarios holds what is expected of the scheduler as folders: cluster.yaml, manifests as `kubectl get -o yaml`
// prints them with the scheduler's configuration in a ConfigMap, and expect.yaml, what is to be decided. The test runs every
// folder through package simulator. A folder is also a bug report's form: `hekla simulate -f FOLDER/cluster.yaml`.
//
// expect.yaml says `source` (where the case comes from), `laws` (those it turns on), either `cycles: N` or `untilStable:
// true`, `args` (further flags of hekla simulate), and under `expect` any of:
//
//	evict, evictAnyOf, evictCount  the exact set of pods evicted, one of several sets, how many
//	evictions                      by pod: the action, law or for that its eviction carries
//	bind, nominate                 by pod: the node, "*" for any
//	notBound, notNominated         pods that are not
//	apart                          groups of pods that are on different nodes
//	jobs                           by job, at the end: phase, ready, reason and so on; reasonNot, what it is not
//	queues                         by queue, at the end: allocated, deserved, share
//	stable                         whether the end is at rest
//	shuffle                        the same decisions in whatever order the documents are given
package scenarios
