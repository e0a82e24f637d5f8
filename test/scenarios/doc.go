// Package scenarios holds what is expected of the scheduler, as scripts and as folders. Each is run through package simulator, and its
// name is the sentence that it proves.
//
// A script, NAME.txt, is a few lines for nodes, queues and gangs, and under each run of cycles all that was decided there: see package
// script. To write one, write the objects and the commands, then
//
//	go test ./test/scenarios -run TestScripts/NAME -rewrite
//
// writes what is decided now. Read it against the rules before it is committed: it is what is expected from then on. After a change
// that is meant to decide otherwise, or to say it in other words, the same command without a name rewrites all, and the diff
// shows what has changed.
//
// A folder is for what a script cannot say, and a bug report's form: cluster.yaml, manifests as `kubectl get -o yaml` prints them with
// the scheduler's configuration in a ConfigMap, and expect.yaml, what is to be decided, in part. `hekla simulate -f
// FOLDER/cluster.yaml` runs it.
//
// expect.yaml says `source` (where the case comes from), `laws` (those it turns on), perhaps a `note`, either `cycles: N` or
// `untilStable: true`, `args` (further flags of hekla simulate), and under `expect` any of:
//
//	evict, evictAnyOf, evictCount  the exact set of pods evicted, one of several sets, how many
//	evictions                      by pod: the action, law or for that its eviction carries
//	bind, nominate                 by pod: the node, "*" for any
//	notBound, notNominated         pods that are not
//	nominateCount                  how often a node is promised to a pod
//	apart                          groups of pods that are on different nodes
//	jobs                           by job, at the end: phase, ready, reason and so on; reasonNot, what it is not
//	says                           by job, at the end: words that its message holds, such as the law that protects the others
//	queues                         by queue, at the end: allocated, deserved, share
//	stable                         whether the end is at rest
//
// Under `fates` stands, by pod, what becomes of its evictions where that is not the usual: `refused: REASON` if the API server
// refuses them for good, with `late: true` only when they are sent and not when it is asked before, `overdue: 5s` if the pod outlives its time so long, `overdue: never` if it never goes.
//
// Under `changes` stands what happens in the world outside later on, each as `before: N`, the number of a cycle, with `file: NAME`,
// manifests of the folder that come or are so from then on, and `delete`, a list of objects that go, such as "Pod work/a".
//
// Of every scenario it is also checked, whatever it expects, that a second run and other orders of the documents decide the
// same, byte for byte (rule S3), and that the cluster comes to rest after the last change and 20 further cycles decide nothing (rule S2), unless a fate keeps it from
// that.
//
// To write a new one, make a folder whose name is the sentence that it proves, put cluster.yaml into it, and run
//
//	go test ./test/scenarios -run TestScenarios/NAME -draft
//
// which writes an expect.yaml with all that is decided now. It fails until `source` and `laws` are filled in: work out by
// hand what the laws demand, correct what differs, and delete what the case does not turn on.
//
// known-differences.yaml names the scenarios that are not met, each with the reason. One that is met must not be in it.
package scenarios
