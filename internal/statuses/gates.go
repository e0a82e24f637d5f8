package statuses

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/gang"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
)

// OpenGates decides from which pods without a node the scheduling gate of queue admission is removed: those that lack
// nothing but a node. An autoscaler then sees that they cannot be scheduled, and adds nodes for no more than the queues
// may hold. Pods whose gates were removed before count for their queues. The gates of a gang are removed together or
// not at all. Pods with a node need no decision, because their gates are removed when they are bound.
func (r *Reporter) OpenGates(s *framework.Session, d *decision.Decisions) {
	x := s.Begin()
	defer x.Undo()
	var held []*cluster.Job
	for _, j := range s.Cluster.Waiting() {
		isHeld := false
		for _, t := range j.Tasks() {
			switch {
			case t.Status == cluster.Pipelined && t.IsHeld() && !r.memory.pods[t].isOpened:
				r.open(t, d)
			case t.Status != cluster.Pending:
			case r.wasHeld(t):
				x.Claim(t)
			case t.IsHeld():
				isHeld = true
			}
		}
		if isHeld && !j.IsPendingAdmission() && j.Verdict != nil && j.Verdict.Code.LacksRoom() {
			held = append(held, j)
		}
	}
	slices.SortFunc(held, func(a, b *cluster.Job) int {
		if a.Queue != b.Queue {
			return cmp.Or(s.CompareQueues(a.Queue, b.Queue), cluster.CompareQueues(a.Queue, b.Queue))
		}
		return s.CompareJobs(a, b)
	})
	for _, j := range held {
		r.openGatesOf(s, j, d)
	}
}

// openGatesOf removes the gates of those pods of a job that its queue may hold, if it may hold the job's minimum.
func (r *Reporter) openGatesOf(s *framework.Session, j *cluster.Job, d *decision.Decisions) {
	x := s.Begin()
	var opened []*cluster.Task
	for _, t := range s.Pending(j) {
		v := s.MayAllocate(t)
		// A limit by the size of the cluster grows with it. A limit in the queue's spec does not.
		if v != nil && (!gang.IsPartOfCluster(v) || !isUnderCapability(t)) {
			continue
		}
		x.Claim(t)
		if t.IsHeld() {
			opened = append(opened, t)
		}
	}
	if j.LacksPromises() > 0 {
		x.Undo()
		return
	}
	for _, t := range opened {
		r.open(t, d)
	}
}

func (r *Reporter) open(t *cluster.Task, d *decision.Decisions) {
	r.memory.open(t)
	d.Gates = append(d.Gates, decision.GateOpening{Pod: t.Key(), UID: t.UID()})
}

// wasHeld reports whether the gate of queue admission was removed from a pod, or will be.
func (r *Reporter) wasHeld(t *cluster.Task) bool {
	return t.Pod.Annotations[schedulingv1beta1.QueueAllocationGateKey] == "true" && (!t.IsHeld() || r.memory.pods[t].isOpened)
}

// isUnderCapability reports whether a task fits under the capability of its queue and those above it.
func isUnderCapability(t *cluster.Task) bool {
	return quota.Written(quota.Policy{}).Fits(t.Job.QuotaNode(), quota.ToPlace(t.Request()))
}
