package workload

import (
	"fmt"

	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Audit works out what each queue and Cohort uses from the charges of Workloads, and returns the differences, one
// sentence each.
func (q *Queues) Audit() (found []string) {
	for _, tree := range q.Trees {
		for _, fr := range tree.FRs() {
			q.auditBelow(tree.Root, fr, &found)
		}
	}
	for _, queue := range q.list {
		for i, w := range queue.holders {
			if w.holder != i+1 || w.Queue != queue {
				found = append(found, fmt.Sprintf("workload %s is charged in ClusterQueue %s, which does not know", w.Key(), queue.Name))
			}
		}
	}
	return found
}

// auditBelow returns what a node uses: a queue what its Workloads are charged, a Cohort what those below it do not
// cover by what they do not lend.
func (q *Queues) auditBelow(n *cohort.Node, fr resources.FR, found *[]string) (usage int64) {
	if queue := q.byNode[n]; queue != nil {
		for _, w := range queue.holders {
			for _, a := range w.Charge {
				if a.FR == fr {
					usage = plus(usage, a.Value)
				}
			}
		}
	}
	for _, child := range n.Children() {
		kept := int64(0)
		if limit := child.LendingLimit(fr); limit != cohort.Unlimited {
			kept = max(0, child.Subtree(fr)-limit)
		}
		usage = plus(usage, max(0, q.auditBelow(child, fr, found)-kept))
	}
	if have := n.Usage(fr); have != usage {
		*found = append(*found, fmt.Sprintf("%s uses %d of %s, should use %d", n.Path(), have, q.Index.ResourceOf(fr), usage))
	}
	return usage
}

func plus(a, b int64) int64 {
	if a > cohort.Unlimited-b {
		return cohort.Unlimited
	}
	return a + b
}
