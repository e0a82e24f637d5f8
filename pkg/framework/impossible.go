package framework

import (
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Opener knows which pods no node could hold even if it were empty. The placement engine implements it.
type Opener interface {
	// CanOpenAny reports whether there is a node that could hold a task if it were empty.
	CanOpenAny(t *cluster.Task) bool
	// CanHoldOnNew reports whether a node that is added could hold a task, as far as its affinity goes.
	CanHoldOnNew(t *cluster.Task) bool
}

// withImpossible adds to a refusal of a job that no node could hold one of its pods, even if the node were empty. That
// must be put right first, whatever else the job waits for. It returns the refusal itself if a node could hold each of
// them, or if the queue or the pods come first.
func (s *Session) withImpossible(j *cluster.Job, v *verdict.Verdict) *verdict.Verdict {
	opener, ok := s.Placer.(Opener)
	if v == nil || v.Impossible != nil || v.Code.Precedes(verdict.TooLargeForQueue) || v.Code == verdict.Preempting || v.Code == verdict.PodsMissing || j.Count(cluster.Pending) == 0 || !ok || s.domain != nil {
		return v
	}
	cannot := func(t *cluster.Task) bool { return !t.IsStandIn && !opener.CanOpenAny(t) }
	seen, found := map[*cluster.Class]bool{}, false
	for _, t := range j.Tasks() {
		if t.Status == cluster.Pending && !found && !seen[t.Class] {
			seen[t.Class], found = true, cannot(t)
		}
	}
	if !found {
		return v
	}
	// The same pod is named in whatever order they came.
	for _, t := range cluster.OnePerClass(j.Pending(cluster.CompareTasks)) {
		if !cannot(t) {
			continue
		}
		refusal := *v // a plugin may keep the verdict that it returned
		refusal.Impossible = s.Impossible(t)
		if v.Code != verdict.NotEnoughResources { // which waits for what the pod lacks already
			refusal.Help |= verdict.HelpNode
			if t.Class.NeedsSupplies() {
				refusal.Help |= verdict.HelpSupply
			}
		}
		return &refusal
	}
	return v
}

// withNewNodes notes in a refusal of a job that no node which is added could hold one of its waiting pods, so that
// autoscalers are not told to add some.
func (s *Session) withNewNodes(j *cluster.Job, v *verdict.Verdict) *verdict.Verdict {
	opener, ok := s.Placer.(Opener)
	if v == nil || !ok || s.domain != nil || j.Count(cluster.Pending) == 0 || !v.IsHelpedByNodes() {
		return v
	}
	var last *cluster.Class
	for _, t := range j.Tasks() {
		if t.Status != cluster.Pending || t.Class == last {
			continue
		}
		if last = t.Class; t.IsStandIn || opener.CanHoldOnNew(t) {
			return v
		}
	}
	beyond := *v // a plugin may keep the verdict that it returned
	beyond.BeyondNodes = true
	beyond.Help |= verdict.HelpPod
	return &beyond
}

// Impossible says why no node could hold a task even if it were empty.
func (s *Session) Impossible(t *cluster.Task) *verdict.Impossible {
	nodes, _ := s.Placer.Explain(t)
	i := &verdict.Impossible{Pod: t.Key().String(), Nodes: nodes, NoClaim: s.MissingClaim(t).Stock != nil}
	largest := Keep(s, "largest node", func() resources.Vector { return LargestNode(s.Cluster.Nodes()) })
	for d, need := range t.Request() {
		if have := largest.At(resources.Dim(d)); need > have {
			i.Short = append(i.Short, verdict.Shortage{Resource: s.Cluster.Resources.Name(resources.Dim(d)), Need: need, Have: have})
		}
	}
	slices.SortFunc(i.Short, func(a, b verdict.Shortage) int { return strings.Compare(string(a.Resource), string(b.Resource)) })
	return i
}

// LargestNode returns the most that one of some nodes has of each resource.
func LargestNode(nodes []*cluster.Node) (most resources.Vector) {
	for _, n := range nodes {
		if n.Object == nil {
			continue
		}
		for d, amount := range n.Allocatable {
			most.Set(resources.Dim(d), max(most.At(resources.Dim(d)), amount))
		}
	}
	return most
}

// maxPromised limits the nodes of plans that are looked at for one task.
const maxPromised = 64

// IsPromisedToOthers reports whether a task would fit on a node but for what is promised to other jobs, as far as it
// looks.
func (s *Session) IsPromisedToOthers(t *cluster.Task) bool {
	opener, ok := s.Placer.(interface {
		CanOpen(t *cluster.Task, n *cluster.Node) bool
	})
	if !ok || s.Cluster.Promised.IsZero() {
		return false
	}
	known := Keep(s, "promised nodes", func() *promisedNodes { return new(promisedNodes) })
	known.follow(s)
	for _, p := range known.all {
		if p.job != t.Job && p.node.Object != nil && FitsWithoutPromises(p.node, t.Request()) && opener.CanOpen(t, p.node) {
			return true
		}
	}
	return false
}

// promisedNodes are the first nodes of plans in force.
type promisedNodes struct {
	decided *Decided // when they were listed
	all     []promisedNode
}

type promisedNode struct {
	job  *cluster.Job
	node *cluster.Node
}

// follow lists them again if anything was decided.
func (k *promisedNodes) follow(s *Session) {
	decided := s.Decided()
	if k.decided != nil && *k.decided == decided {
		return
	}
	k.decided, k.all = &decided, nil
	for _, p := range s.Cluster.Plans().InOrder() {
		if p.Job == nil {
			continue
		}
		for _, t := range p.Promised() {
			if len(k.all) == maxPromised {
				return
			}
			if t.Node != nil {
				k.all = append(k.all, promisedNode{job: p.Job, node: t.Node})
			}
		}
	}
}

// FitsWithoutPromises reports whether a request is free on a node now, or will be once leaving pods are gone, without
// promises.
func FitsWithoutPromises(n *cluster.Node, request resources.Vector) bool {
	for i, need := range request {
		d := resources.Dim(i)
		if need > 0 && need > n.Future(d)+n.Promised.At(d) {
			return false
		}
	}
	return true
}
