package propose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// newNodes says which further nodes would hold the pods: so many like one that is there, or of which size and with
// which labels. What pods elsewhere forbid, and what volumes and devices need, is not known of a node that is not
// there: then it says nothing.
func (p *proposer) newNodes() {
	if p.job.IsPendingAdmission() {
		p.newNodesForExpected()
		return
	}
	lacksRoom := p.job.Verdict != nil && p.job.Verdict.Code.LacksRoom() && verdict.Code(p.job.Code) != verdict.OverShare
	if !lacksRoom && !p.job.IsTooLarge {
		return
	}
	var tasks []*cluster.Task
	for i := range p.pending {
		if t := p.pending[i].task; t != nil {
			tasks = append(tasks, t)
		}
	}
	classes := cluster.OnePerClass(tasks)
	if len(classes) == 0 {
		return
	}
	var parts []string
	for _, t := range classes[:min(len(classes), maxExamples)] {
		if p.job.Cluster.DependsOnPods(t.Class) || t.Class.NeedsSupplies() || t.Class.HasPorts {
			return
		}
		if example := p.exampleFor(t); example != nil {
			parts = append(parts, moreLike(example, t.Request(), p.missing(t, len(classes) == 1)))
		} else {
			parts = append(parts, p.shapeFor(t))
		}
	}
	if len(classes) <= maxExamples {
		p.found = append(p.found, Proposal{Kind: "newNodes", Message: "there would be room with " + strings.Join(parts, ", and with ")})
	}
}

// exampleFor returns the first node that would hold a task if it were empty, nil if there is none.
func (p *proposer) exampleFor(t *cluster.Task) *cluster.Node {
	for _, n := range p.job.Cluster.Nodes() {
		if n.Object != nil && p.job.Engine.CanOpen(t, n) {
			return n
		}
	}
	return nil
}

// newNodesForExpected says so of a job that is not admitted for want of nodes: whatever its pods select, they need so
// much room.
func (p *proposer) newNodesForExpected() {
	switch verdict.Code(p.job.Code) {
	case verdict.OverCommitted, verdict.OverCluster, verdict.TooLargeForCluster:
	default:
		return
	}
	request, missing := p.pending[0].request, len(p.pending)-p.placed
	for _, n := range p.job.Cluster.Nodes() {
		if n.Object == nil || !n.Ready() || n.Object.Spec.Unschedulable || !request.LessEqual(n.Allocatable) {
			continue
		}
		if taints, _ := p.untolerated(n.Object.Spec.Taints); len(taints) > 0 {
			continue
		}
		if missing > 0 {
			p.found = append(p.found, Proposal{Kind: "newNodes", Message: "there would be room with " + moreLike(n, request, missing)})
		}
		return
	}
}

// missing is how many pods of the class of a task lack a place. If it is the only one, those with a place do not count.
func (p *proposer) missing(t *cluster.Task, isOnly bool) int {
	pods := 0
	for _, other := range p.pending {
		if other.task != nil && other.task.Class == t.Class {
			pods++
		}
	}
	if lacks := p.job.Lacks(); isOnly && lacks > 0 {
		pods = min(pods, lacks)
		pods = max(pods-p.placed, 1)
	}
	return pods
}

// moreLike says how many nodes like one would hold so many pods.
func moreLike(n *cluster.Node, request resources.Vector, pods int) string {
	each := int64(math.MaxInt64)
	for d, need := range request {
		if need > 0 {
			each = min(each, n.Allocatable.At(resources.Dim(d))/need)
		}
	}
	if each = max(each, 1); each == math.MaxInt64 { // it can hold one
		each = int64(pods) // that request nothing
	}
	count := (int64(pods) + each - 1) / each
	noun := "nodes"
	if count == 1 {
		noun = "node"
	}
	return fmt.Sprintf("%d more %s like %s, which holds %s if it is empty", count, noun, n.Name, counted(each, "such pod"))
}

// counted is a number of things.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// shapeFor says what a node must have for a task.
func (p *proposer) shapeFor(t *cluster.Task) string {
	var parts []string
	for d, need := range t.Request() {
		if name := p.job.Cluster.Resources.Name(resources.Dim(d)); need > 0 && name != corev1.ResourcePods {
			parts = append(parts, string(name)+" "+resources.Format(name, need))
		}
	}
	slices.Sort(parts)
	shape := "a node for each of its pods that has " + strings.Join(parts, ", ") + " for pods"
	if labels := t.Pod.Spec.NodeSelector; len(labels) > 0 {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			pairs = append(pairs, key+"="+labels[key])
		}
		shape += " and the labels " + strings.Join(pairs, ", ")
	}
	return shape
}
