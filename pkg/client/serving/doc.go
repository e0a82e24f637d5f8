// Package serving says whether Hekla serves the kinds of kueue.x-k8s.io: whether the scheduler's configuration admits
// Workloads, and whether Kueue itself runs in the cluster, which is then left alone. The scheduler, the controllers and
// the webhooks ask here, so that they agree.
//
// Invariants:
//
//  1. Kueue runs as long as a Lease of its name, in whichever namespace, has a holder that renews it in time.
//  2. A scheduler without a ConfigMap goes by [conf.DefaultYAML], and so do those that ask here.
//
// It must not know what is served, nor write anything.
package serving
