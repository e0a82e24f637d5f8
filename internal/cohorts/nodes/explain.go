package nodes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/verdict"
)

// Explain adds to the reasons of a Workload that was refused for how many pods nodes have no room now, and why.
func (p *Places) Explain(n *workload.Nomination) {
	parts := n.Assignment.Parts()
	for i := range n.Assignment.PodSets {
		reasons := n.Assignment.PodSets[i].Reasons
		for j := range reasons {
			r := &reasons[j]
			if r.Part == nil || r.Nodes != "" || r.Text != "" {
				continue
			}
			asked := append(parts[:i:i], *r.Part)
			if p.exceedsNodes(asked) {
				if r.Left, r.Nodes = r.Part.Count, noNodes; len(p.session.Cluster.Nodes()) > 0 {
					r.Nodes = fmt.Sprintf("all nodes together may have %d pods", p.most)
				}
				continue
			}
			if tasks := p.try(n.Workload, asked).tasks; p.overCapability(&p.scratch, tasks) != nil {
				r.Code, r.Text = p.capability(tasks)
				continue
			}
			r.Left, r.Nodes = p.Left(n.Workload, asked)
		}
	}
}

const noNodes = "there are no nodes"

// capability says that a queue above has no capability left for tasks, or will never have as much.
func (p *Places) capability(tasks []*cluster.Task) (code workload.Code, text string) {
	if code = workload.WaitingForQuota; !couldHold(&p.scratch, tasks) {
		code = workload.ExceedsMaxQuota
	}
	return code, p.overCapability(&p.scratch, tasks).Sentence()
}

// Left returns how many pods of the last part find no node once those of the parts before have theirs, and what nodes
// say of the first of them.
func (p *Places) Left(w *workload.Workload, parts []workload.Part) (count int32, why string) {
	s, tasks := p.session, p.try(w, parts).tasks
	x := s.Begin()
	defer x.Undo()
	var refused *cluster.Task
	last := len(tasks) - int(parts[len(parts)-1].Count)
	for i, t := range tasks {
		if refused != nil && refused.Class == t.Class && !s.Cluster.DependsOnPods(t.Class) {
			count++ // as the one before
			continue
		}
		switch n := s.Placer.Best(t); {
		case n != nil:
			x.Place(t, n)
		case i >= last:
			count++
			if refused == nil {
				refused = t
			}
		}
	}
	if refused == nil {
		return 0, ""
	}
	reasons, _ := s.Placer.Explain(refused)
	return count, counted(reasons)
}

// counted is how many nodes give each reason, the most frequent first.
func counted(reasons []verdict.NodeReason) string {
	if len(reasons) == 0 {
		return noNodes
	}
	reasons = slices.SortedFunc(slices.Values(reasons), func(a, b verdict.NodeReason) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Reason, b.Reason))
	})
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = fmt.Sprintf("%d %s", r.Nodes, r.Reason)
	}
	return strings.Join(texts, ", ")
}
