// Package localcluster runs a real Kubernetes control plane as child processes on the loopback interface: etcd,
// kube-apiserver, kube-controller-manager, and kwok, which plays the kubelets of nodes that exist only as API objects.
// `hekla up`, the demo, the benchmark and every test that needs an API server start their cluster here.
//
// Main types: [Options] and [Cluster] (a running cluster or one attached to), [Program] and [Process] (a child),
// [NodeTemplate] (a kwok node). The package binaries builds the programs from the modules that go.mod pins; the package
// cache has the folders of a user and locks.
//
// A pod runs as soon as it is bound and until it is deleted. Two annotations make it end by itself. hekla.sh/run-for is
// a duration such as 10s, for a restartPolicy of Never or OnFailure. hekla.sh/exit-code is a code other than 0, with
// which it then fails if its restartPolicy is Never. One that the finalizer kueue.x-k8s.io/managed or
// batch.kubernetes.io/job-tracking holds fails when it is deleted. The files in the folder stages configure kwok for
// this.
//
// Invariants:
//
//  1. Everything listens on 127.0.0.1 only. etcd and the API server accept no request without a client certificate or a
//     token; kube-controller-manager does not listen at all, and kwok only to say that it is healthy.
//  2. A process is signalled only after its start time proved that it is the one the cluster started.
//  3. The state file is written before a child is waited for, and the environment of each child names the folder, so
//     that a process that finds the folder can stop all of it. A start that was ended at any point is repaired by the
//     next one.
//  4. Stop leaves no process and no listening port; Delete leaves no file but the binary cache.
//  5. A node-lifecycle controller runs, and yet no kwok node is ever tainted for a late heartbeat: the grace period is
//     far longer than the heartbeat. A node set NotReady by hand stays NotReady.
//  6. A wait goes on as long as there is progress, however slow the machine is, and says what it waits for.
//
// The package must not know the scheduler, the controllers or the API types of Hekla: to it they are programs and
// manifests like any others.
package localcluster
