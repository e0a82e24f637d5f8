package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/explain/propose"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/podspec"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Workloads explains all Workloads of kueue.x-k8s.io, by name.
func (m *Model) Workloads() []queued.Workload {
	all := []queued.Workload{}
	for _, e := range m.cache.Workloads.All() {
		all = append(all, m.queued(e))
	}
	return all
}

// EachWorkload visits the Workloads of kueue.x-k8s.io, in no particular order, each with its state ([queued.Waiting]
// and others) and the cause that [Model.WhyWorkload] gives.
func (m *Model) EachWorkload(visit func(e *workloads.Entry, state string, cause Cause)) {
	for e := range m.cache.Workloads.Entries() {
		w := m.known().briefs.Of(e)
		visit(e, w.State, m.causeOf(&w, &e.Workload))
	}
}

// Quotas are the trees of ClusterQueues and Cohorts, and the LocalQueues, of kueue.x-k8s.io.
func (m *Model) Quotas() *queues.Registry { return m.cache.Workloads.Registry() }

// PendingIn lists the Workloads that wait for a ClusterQueue, as [queued.PendingIn] does.
func (m *Model) PendingIn(clusterQueue string, page queued.Page) ([]queued.Pending, error) {
	if c := m.Quotas().FindClusterQueue(clusterQueue); c == nil {
		return nil, NotFound{Kind: "ClusterQueue", Name: clusterQueue}
	}
	return queued.PendingIn(m.cache.Workloads.Reader, clusterQueue, types.NamespacedName{}, page), nil
}

// PendingOf lists those of a LocalQueue likewise.
func (m *Model) PendingOf(local types.NamespacedName, page queued.Page) ([]queued.Pending, error) {
	l := m.Quotas().FindLocalQueue(local)
	if l == nil {
		return nil, NotFound{Kind: "LocalQueue", Name: local.String()}
	}
	return queued.PendingIn(m.cache.Workloads.Reader, l.Settings.ClusterQueue, local, page), nil
}

// queued explains a Workload by the rules of the policy.
func (m *Model) queued(e *workloads.Entry) queued.Workload {
	reader := m.cache.Workloads.Reader
	return queued.Of(m.cluster.Resources, reader, cohorts.Evictions(reader.Queues(), m.policy.WorkloadRules()), e)
}

// ClusterQueues surveys those of kueue.x-k8s.io, by name.
func (m *Model) ClusterQueues() []queued.ClusterQueue {
	return queued.Queues(m.cluster.Resources, m.cache.Workloads.Reader)
}

// WhyWorkload says why a Workload waits, in the form of the answer about a job.
func (m *Model) WhyWorkload(key types.NamespacedName) (Why, error) {
	e := m.cache.Workloads.Find(key)
	if e == nil {
		return Why{}, NotFound{Kind: "Workload", Name: key.String()}
	}
	w := m.queued(e)
	answer := Why{Queued: &w, Cause: m.causeOf(&w, &e.Workload), Job: Job{Job: w.Workload, Workload: w.Workload, Queue: w.ClusterQueue, Phase: w.State,
		Admitted: w.State == queued.Admitted, Priority: w.Priority}}
	if answer.Cause.Waits && w.State != queued.Reserved {
		answer.Mistakes = m.mistakesOfWorkload(&w, &e.Workload)
	}
	if answer.Cause.Waits && answer.Cause.Code != WorkloadsOff {
		for _, help := range queued.Helps(m.cluster.Resources, m.Quotas(), e, &w) {
			answer.Proposals = append(answer.Proposals, propose.Proposal{Kind: help.Kind, Message: help.Message, Assumes: "its pods have room on the nodes"})
		}
	}
	return answer, nil
}

// neverAdmitted are the reasons of conditions that time does not mend.
var neverAdmitted = []string{v1beta2.ReasonMisconfigured, v1beta2.ReasonExceedsMaxQuota, v1beta2.ReasonNoMatchingFlavor}

// causeOf finds the dominant reason of a Workload: that of its condition, or a more precise one.
func (m *Model) causeOf(w *queued.Workload, of *workload.Workload) Cause {
	c := Cause{Code: w.Reason, Message: w.Message, Waits: true, Where: where(w)}
	isWaiting := w.State == queued.Waiting
	switch {
	case w.State != queued.Finished && !m.policy.AdmitsWorkloads():
		c.Code, c.Message = WorkloadsOff, conditions.WorkloadsOffMessage
		c.Waits = w.State != queued.Admitted
	case w.State == queued.Finished || w.State == queued.Admitted:
		c.Code, c.Waits = w.State, false
	case w.State == queued.Reserved:
		c.Code = w.State
		if len(w.Checks) > 0 {
			c.Message = "it holds quota and nodes, and its checks are not all ready: " + strings.Join(w.Checks, ", ")
		}
	case isWaiting && w.Exceeds != nil:
		c.Never = true
		if c.Code != v1beta2.ReasonExceedsMaxQuota {
			c.Code, c.Message = v1beta2.ReasonExceedsMaxQuota, w.Exceeds.Sentence()
		}
	case isWaiting && m.tooLarge(of, &c):
	case isWaiting && w.Strict && len(w.Ahead) > 0:
		c.Code = v1beta2.ReasonHeldUp
		c.Message = conditions.HeldUp(w.ClusterQueue, w.Ahead[0].Workload, w.HeadReason)
	case w.Reason == "":
		c.Code = NotTriedYet
	case len(w.Inactive) > 0 && w.Stopped == "":
		c.Message += ": it " + strings.Join(w.Inactive, ", and ")
	}
	if isWaiting || w.State == queued.NotQueued {
		c.Never = c.Never || slices.Contains(neverAdmitted, c.Code)
	}
	return c
}

// tooLarge reports whether a pod of a Workload requests more than any node has, and says so.
func (m *Model) tooLarge(of *workload.Workload, c *Cause) bool {
	known := m.known().tooLarge
	why, isKnown := known[of.Shape]
	if !isKnown || of.Shape == "" {
		why = m.beyondNodes(of)
		known[of.Shape] = why
	}
	if why != nil {
		c.Code, c.Message, c.Short, c.Never = why.Code, why.Message, why.Short, true
	}
	return why != nil
}

// beyondNodes is the cause if a pod of a Workload requests more than any node has, nil if none does.
func (m *Model) beyondNodes(of *workload.Workload) *Cause {
	most := m.largestNode()
	for i := range of.PodSets {
		set := &of.PodSets[i]
		if set.Template == nil {
			continue
		}
		var short []verdict.Shortage
		for name, quantity := range podspec.Requests(&set.Template.Spec) {
			d, isKnown := m.cluster.Resources.Find(name)
			if !isKnown || int(d) >= len(most) {
				continue // the nodes say so, or devices stand for it
			}
			if need := m.cluster.Resources.Vector(corev1.ResourceList{name: quantity}).At(d); need > most[d] {
				short = append(short, verdict.Shortage{Resource: name, Need: need, Have: most[d]})
			}
		}
		if len(short) == 0 {
			continue
		}
		slices.SortFunc(short, func(a, b verdict.Shortage) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
		c := &Cause{Code: string(verdict.TooLargeForAnyNode), Short: shortages(short)}
		c.Message = fmt.Sprintf("a pod of pod set %s requests more than any node has, even if it were empty: %s", set.Name, sentenceOf(c.Short))
		return c
	}
	return nil
}

// largestNode returns the most that a node has of each known resource.
func (m *Model) largestNode() []int64 {
	k := m.known()
	if k.largest == nil {
		k.largest = make([]int64, m.cluster.Resources.Len())
		copy(k.largest, framework.LargestNode(m.cluster.Nodes()))
	}
	return k.largest
}

// where is the queue at which a Workload stands or stops.
func where(w *queued.Workload) string {
	switch {
	case w.Stopped != "":
		return w.Stopped
	case w.ClusterQueue != "":
		return "ClusterQueue " + w.ClusterQueue
	case w.Wants != "":
		return "ClusterQueue " + w.Wants
	case w.State == queued.NotQueued && w.LocalQueue != "":
		return "LocalQueue " + w.LocalQueue
	}
	return ""
}

func sentenceOf(short []Shortage) string {
	var parts []string
	for _, s := range short {
		parts = append(parts, fmt.Sprintf("%s: needs %s, the largest node has %s, short by %s", s.Resource, s.Needed, s.Available, s.Missing))
	}
	return strings.Join(parts, ", ")
}
