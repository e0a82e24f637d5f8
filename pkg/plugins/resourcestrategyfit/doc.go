// Package resourcestrategyfit is the plugin resource-strategy-fit. It scores nodes by how full the pod makes them,
// where one resource may be packed and another spread. It keeps pods off the nodes of scarce resources that they do not
// request, and keeps CPU and memory on those nodes for the pods that do.
//
// Main types: [Factory] makes the plugin. A strategy is how one resource is scored, with its weight. scarce are the
// resources to keep free. A reserve is what is kept free for each unit of them.
//
// Invariants:
//
//  1. The score of a node is the mean over the requested resources with a strategy, each with its weight. It is the
//     part of the node that is used with the pod on it (MostAllocated), or free (LeastAllocated), times 100 times
//     resourceStrategyFitWeight. A resource that the node lacks scores nothing, but its weight counts.
//  2. The strategy of a resource is the one under its name. Otherwise it is the one under the longest prefix that ends
//     with a star. Without any strategy, CPU and memory are spread.
//  3. Annotations of a pod may change that. volcano.sh/resource-strategy-scoring-type is the strategy of all resources
//     that it requests and that have a weight. volcano.sh/resource-strategy-weight, a JSON object, sets weights, also
//     of resources that have none in the configuration; 0 leaves one out. An annotation that cannot be read is ignored.
//  4. sra: a node scores 100 times the weight of sra, less the part of the scarce resources, by their weights, that it
//     has. A node that lacks something the pod requests scores nothing.
//  5. proportional: a pod that requests none of the scarce resources must leave so many cores and 10⁹ bytes free for
//     each unused unit of them on the node. A pod that requests no CPU is not refused for lack of CPU; memory likewise.
//  6. Answers depend only on the node and the class.
//
// In Volcano an unknown type counts as LeastAllocated, and a weight that is not above zero as 1. Here they are errors,
// as are names that match nothing.
package resourcestrategyfit
