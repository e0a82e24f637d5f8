// Package scenarios holds what is expected of the scheduler, as scripts and as folders. Each is run through package
// simulator, and its name is the sentence that it proves.
//
// A script, NAME.txt, is a few lines for nodes, queues and gangs, and under each run of cycles all that was decided
// there: see package script. To write one, write the objects and the commands, then
//
//	go test ./test/scenarios -run TestScripts/NAME -rewrite
//
// writes what is decided now. Read it against the rules before it is committed: it is what is expected from then on.
// After a change that is meant to decide otherwise, or to say it in other words, the same command without a name
// rewrites all, and the diff shows what has changed.
//
// A folder is for what a script cannot say, such as nodes that are not ready, or pods with two containers, and a form
// for bug reports. README.md says of each why it is one. cluster.yaml has manifests as `kubectl get -o yaml` prints
// them, with the scheduler's configuration in a ConfigMap. expect.yaml lists some of the decisions. `hekla simulate -f
// FOLDER/cluster.yaml` runs it.
//
// expect.yaml says `source` (where the case comes from), `rules` (the numbers of the rules that it tests), perhaps a
// `note`, either `cycles: N` or `untilStable: true`, `args` (further flags of hekla simulate), and under `expect` any
// of:
//
//	evict, evictAnyOf, evictCount  the exact set of pods evicted, one of several sets, how many
//	evictions                      by pod: `action`, `rule` or `for` of its eviction
//	bind, nominate                 by pod: the node, "*" for any
//	notBound, notNominated         pods that are not
//	nominateCount                  how often a node is promised to a pod
//	apart                          groups of pods that are on different nodes
//	jobs                           by job, at the end: phase, ready, reason and so on; reasonNot, what it is not
//	says                           by job, at the end: words of its message, such as the rule that protects the others
//	queues                         by queue, at the end: allocated, deserved, share
//	stable                         whether the end is at rest
//
// `fates` says, by pod, what becomes of its evictions if that is unusual. `refused: REASON` means that the API server
// refuses them for good, with `late: true` only when they are sent and not in the dry run before. `overdue: 5s` means
// that the pod ends that much after its grace period, `overdue: never` that it never ends.
//
// `changes` lists later changes of the cluster, each with `before: N`, the number of a cycle. `file: NAME` names
// manifests of the folder that are applied then. `delete` is a list of objects that are deleted, such as "Pod work/a".
//
// Two more things are checked of every scenario. A second run and other orders of the documents must decide the same,
// byte for byte (rule S3). The cluster must come to rest after the last change, so that 20 further cycles decide
// nothing (rule S2), unless a fate prevents it.
//
// To write a new one, make a folder whose name is the sentence that it proves, put cluster.yaml into it, and run
//
//	go test ./test/scenarios -run TestScenarios/NAME -draft
//
// which writes an expect.yaml with all that is decided now. It fails until `source` and `rules` are filled in. Work out
// by hand what the rules demand, correct what differs, and delete what the case does not test.
//
// known-differences.yaml names the scenarios that are not met, each with the reason. One that is met must not be in it.
package scenarios
