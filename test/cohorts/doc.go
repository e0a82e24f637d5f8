// Package cohorts tests quotas and cohorts: cases with expected decisions, and properties of random ones.
//
// The cases are JSON files, one list a file, one case a line. quota.json and share.json are about the tree,
// assignment.json about flavors, preemption.json about victims. cycle.json is about one round over the heads of several
// queues, nodes.json about the same with nodes. termination.json is about coming to rest. They are read from the folder
// in the environment variable COHORT_CASES if it is set, else from testdata.
package cohorts
