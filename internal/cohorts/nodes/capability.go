package nodes

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// account counts what a job of a Workload holds in the queue of Volcano that the tree of its ClusterQueue is attached
// to (rule C22). While the ClusterQueue is gone it counts where it did.
func account(c *model.Cluster, j *cluster.Job, w *workload.Workload) {
	if w.Queue != nil {
		name := w.Below()
		cluster.SetBelow(c.Quota(), j, name, c.Queue(name))
	}
}

// overCapability says which queue above a job tasks that wait would bring above its capability, nil if none. Pods of
// Workloads that leave count until they are gone, as their quota does, but for those that have left for this question.
func (p *Places) overCapability(j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	if n := j.AccountOf(); n != nil {
		return quota.OverCapability(p.session.Cluster.Resources, n, quota.ToStart(cluster.RequestOf(tasks), p.gone))
	}
	return nil
}

// count leaves the pods of a Workload that leave out of the queues above it, or counts them again with -1.
func (p *Places) count(victim *cluster.Job, sign int64) {
	for n := victim.AccountOf(); n != nil; n = n.Above() {
		if p.gone == nil {
			p.gone = quota.Held{}
		}
		left := p.gone[n]
		left.AddScaled(victim.Usage.Leaving, sign)
		p.gone[n] = left
	}
}

// couldHold reports whether the capabilities of all queues above a job would hold tasks if they held nothing else.
func couldHold(j *cluster.Job, tasks []*cluster.Task) bool {
	n := j.AccountOf()
	if n == nil {
		return true
	}
	written := quota.Written(quota.Policy{})
	for request := cluster.RequestOf(tasks); n != nil; n = n.Above() {
		for i, amount := range request {
			if amount > written.Of(n).Ceiling.Value(resources.Dim(i)) {
				return false
			}
		}
	}
	return true
}

// sharesCapability reports whether what a Workload holds counts in a queue whose capability tasks would exceed.
func (p *Places) sharesCapability(victim *cluster.Job, tasks []*cluster.Task) bool {
	over := p.overCapability(&p.scratch, tasks)
	if over == nil {
		return false
	}
	for n := victim.AccountOf(); n != nil; n = n.Above() {
		if n.Name == over.Subject {
			return true
		}
	}
	return false
}
