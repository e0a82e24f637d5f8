package explain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain/propose"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// proposed is what was found for a job.
type proposed struct {
	at        time.Time
	proposals []propose.Proposal
	why       string // none were looked for
}

// maxProposed limits for how many jobs it is kept, about two kilobytes each.
const maxProposed = 4096

// proposals looks for changes with which a job would start, or says why it does not look. Users who follow a job ask
// again and again: while the model stays as it is, nothing is tried twice.
func (m *Model) proposals(now time.Time, j *cluster.Job, c *Cause) ([]propose.Proposal, string) {
	kept := m.known().proposed
	if p, ok := kept[j.ID]; ok && isFresh(p.at, now) {
		return slices.Clone(p.proposals), p.why
	}
	p := proposed{at: now}
	if err := m.Attempt(func() { p.proposals, p.why = m.lookForProposals(now, j, c) }); err != nil {
		p.proposals, p.why = nil, err.Error()
	}
	if len(kept) >= maxProposed {
		clear(kept)
	}
	kept[j.ID] = p
	return slices.Clone(p.proposals), p.why
}

func (m *Model) lookForProposals(now time.Time, j *cluster.Job, c *Cause) ([]propose.Proposal, string) {
	of := propose.Job{Job: j, Cluster: m.cluster, Engine: m.outlook, Code: c.Code, Pod: c.Pod, IsRefused: len(c.Nodes) > 0, IsImpossible: c.Never,
		IsTooLarge: c.Code == string(verdict.TooLargeForAnyNode)}
	for _, s := range c.Short {
		of.Short = append(of.Short, s.Resource)
	}
	for _, n := range c.Nodes {
		if n.Kind == string(verdict.NodeTaint) {
			of.Tainted = append(of.Tainted, n.Example)
		}
	}
	of.Suppose = func(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, look func(s *framework.Session, j *cluster.Job)) error {
		return m.cache.Suppose(group, pods, m.supposes, func(j *cluster.Job) { look(m.open(now), j) })
	}
	return propose.For(of)
}
