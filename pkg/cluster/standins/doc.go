// Package standins makes and drops the stand-ins of jobs that say which pods they expect before these exist: the task
// groups of YuniKorn's applications (rule G13).
//
// Main type: [StandIns] follows the jobs of a model. Package cache tells it what has changed, the scheduler what time
// it is.
//
// Invariants:
//
//  1. Until a gang has its nodes it has one stand-in for each pod that is missing from its podsets. From then on
//     stand-ins only go, unless a node is lost.
//  2. A gang that has waited too long has no stand-ins, and no minimum above one.
//  3. There are stand-ins only for pods that the ResourceQuotas of their namespace allow, all of a gang or none, and
//     nodes are held no longer than a given time.
//  4. A process that starts again finds the nodes that are held in the record of the PodGroup, and holds them again.
//
// This package must not know how jobs are placed, nor what is written to the API server.
package standins
