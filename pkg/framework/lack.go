package framework

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// queueRefusals are the codes of jobs that their queue may not hold.
var queueRefusals = []verdict.Code{verdict.OverShare, verdict.OverCapability, verdict.OverCluster, verdict.TooLargeForQueue}

// WaitForQuota returns a verdict by which a refused job waits until its queue may hold as many more of its pods as it
// needs. If that is not why it is refused, or no plugin knows what the queue lacks, it returns the same verdict.
func (q Questions) WaitForQuota(j *cluster.Job, v *verdict.Verdict) *verdict.Verdict {
	if !slices.Contains(queueRefusals, v.Code) {
		return v
	}
	if lack := q.lackToPlace(j); lack.Stock != nil {
		return v.Await(lack, verdict.HelpJob|verdict.HelpTime)
	}
	return v
}

// WaitToReclaim returns a verdict by which a refused job waits until its queue has a right to reclaim. If its own queue
// cannot help, or no plugin knows what the queue lacks, it returns the same verdict.
func (q Questions) WaitToReclaim(j *cluster.Job, v *verdict.Verdict) *verdict.Verdict {
	if v.Help&verdict.HelpOwnQueue == 0 {
		return v
	}
	if lack := q.lackToReclaim(j); lack.Stock != nil {
		return v.Await(lack, v.Help&^verdict.HelpOwnQueue)
	}
	return v
}

// lackToPlace returns what the queue of a job lacks to hold as many more of its pods as it needs, or one if it has
// started. Each plugin that limits queues may refuse, so what one of them knows counts.
func (q Questions) lackToPlace(j *cluster.Job) verdict.Lack {
	waiting, lacks := cluster.Waiting(j.Tasks()), q.LacksToStart(j)
	if lacks == 0 {
		waiting = slices.DeleteFunc(waiting, (*cluster.Task).BestEffort) // they are placed by themselves
	}
	least := cluster.LeastRequest(waiting, max(lacks, 1))
	for _, plugin := range q.Policy.allocation {
		if keeper, ok := plugin.(AllocationStockkeeper); ok {
			if lack := keeper.LackToPlace(j.Queue, least); lack.Stock != nil {
				return lack
			}
		}
	}
	return verdict.Lack{}
}

// lackToReclaim returns what the queue of a job lacks to reclaim for as many pods as the job needs if all that wait are
// alike, otherwise for one.
func (q Questions) lackToReclaim(j *cluster.Job) verdict.Lack {
	waiting, count := cluster.Waiting(j.Tasks()), 1
	if len(cluster.OnePerClass(waiting)) == 1 {
		count = max(j.LacksPromises(), 1)
	}
	least := cluster.LeastRequest(waiting, count)
	for _, plugin := range q.Policy.reclaimCheckers {
		if keeper, ok := plugin.(ReclaimStockkeeper); ok {
			if lack := keeper.LackToReclaim(j.Queue, least); lack.Stock != nil {
				return lack
			}
		}
	}
	return verdict.Lack{}
}
