// Package resourcestrategyfit is the plugin resource-strategy-fit: it scores nodes by how full the pod makes them, one resource
// filled up and another spread, keeps pods off the nodes of scarce resources they do not ask for, and keeps CPU and memory on
// those nodes for the pods that do.
//
// Main types: [Factory] makes the plugin; a strategy is how one resource is scored and how much it counts; scarce are the
// resources that are to be kept free, a reserve is what is kept with each of them.
//
// Invariants:
//
//  1. The score of a node is the mean over the requested resources that have a strategy, each with its weight: the part of the
//     node that is used with the pod on it (MostAllocated), or free (LeastAllocated), times 100 times resourceStrategyFitWeight.
//     A resource that the node has none of scores nothing, and its weight counts.
//  2. The strategy of a resource is the one under its name, else the one under the longest name with a star at its end that it
//     begins with. Without any, CPU and memory are spread.
//  3. A pod may say otherwise for itself: volcano.sh/resource-strategy-scoring-type is the strategy of all it requests that has a
//     weight, and volcano.sh/resource-strategy-weight, a JSON object, gives the resources it names other weights, also those that
//     have none by the configuration; 0 leaves one out. An annotation that cannot be read counts as not there.
//  4. sra: a node is worth 100 times the weight of sra less the part of the scarce resources, by their weights, that it has. A
//     node that lacks something the pod requests is worth nothing.
//  5. proportional: a pod that requests none of the scarce resources leaves, on each node, so many cores and 10⁹ bytes for each
//     unit of them that no pod uses. A pod that requests no CPU takes none away, and is not refused for it; memory likewise.
//  6. Answers rest on the node and the class alone.
//
// In Volcano a type it does not know counts as LeastAllocated, and a weight that is not above zero as 1; here they are errors, as
// are names that can match nothing.
package resourcestrategyfit
