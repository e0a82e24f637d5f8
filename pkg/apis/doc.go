// Package apis is the public Go surface of Hekla: the Kubernetes objects users write and read.
//
// Each API group is a package of its own:
//
//   - batch/v1alpha1: Job, the workload (batch.volcano.sh)
//   - scheduling/v1beta1: PodGroup, the gang, and Queue, the share of the cluster (scheduling.volcano.sh)
//   - flow/v1alpha1: JobFlow, Jobs that wait for each other, and JobTemplate, what they are made from (flow.volcano.sh)
//   - topology/v1alpha1: HyperNode, nodes that are close to each other in the network (topology.volcano.sh)
//   - kueue/v1beta2: ClusterQueue, Cohort, LocalQueue, ResourceFlavor and Workload, quotas in the form of Kueue
//     (kueue.x-k8s.io)
//   - bus/v1alpha1: Command, a request to act on an object, and the vocabulary of events and actions (bus.volcano.sh)
//
// In addition to the types, each group has two packages that all components use: validation says what is wrong with an
// object, builder makes the objects that one consists of. Webhooks, controllers and the simulator share them.
//
// This package itself holds only AddToScheme, which registers all of them.
//
// Invariants:
//
//  1. Group, version, kind, JSON names, enum values, label and annotation keys are Volcano's, or Kueue's in its group.
//     What applies to a cluster with either applies here unchanged.
//  2. What a client may write is checked by the schema and CEL rules of the CustomResourceDefinitions under
//     installer/crds, generated from the markers on these types; no webhook is needed to keep nonsense out.
//  3. The rules compile within the cost limits of Kubernetes 1.30 and later. They erase the type of quantities with
//     dyn() before they compare them: the API server's estimate takes a typed one to be as long as a whole request.
//  4. A field that Hekla accepts without acting on it says so in its comment.
//  5. zz_generated files and everything under pkg/client and installer/crds are made by hack/generate.sh.
//
// The packages below must not know the scheduler, the controllers or a client. Those of the types import only
// Kubernetes' own API packages.
package apis
