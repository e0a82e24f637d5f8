package propose

import (
	"fmt"
	"maps"
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
	lacksRoom := p.job.Verdict != nil && p.job.Verdict.Code.LacksRoom() && verdict.Code(p.job.Code) != verdict.OverShare
	if !lacksRoom && !p.job.IsTooLarge {
		return
	}
	classes := cluster.OnePerClass(p.pending)
	var parts []string
	for _, t := range classes[:min(len(classes), maxExamples)] {
		if p.job.Cluster.DependsOnPods(t.Class) || t.Class.NeedsSupplies() || t.Class.HasPorts {
			return
		}
		if example := p.exampleFor(t); example != nil {
			parts = append(parts, p.moreLike(example, t, len(classes) == 1))
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

// moreLike says how many nodes like one would hold the pods of the class of a task. If it is the only one, those with a
// place do not count.
func (p *proposer) moreLike(n *cluster.Node, t *cluster.Task, isOnly bool) string {
	pods := 0
	for _, other := range p.pending {
		if other.Class == t.Class {
			pods++
		}
	}
	if lacks := p.job.Lacks(); isOnly && lacks > 0 {
		pods = min(pods, lacks)
		pods = max(pods-p.placed(), 1)
	}
	each := int64(pods)
	for d, need := range t.Request() {
		if need > 0 {
			each = min(each, n.Allocatable.At(resources.Dim(d))/need)
		}
	}
	each = max(each, 1) // it can hold one
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
