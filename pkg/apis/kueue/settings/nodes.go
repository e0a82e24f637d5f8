package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// NodeCount is how many pods of a podset one node holds.
type NodeCount struct {
	Node  string
	Count int32
}

// Topology is the field topologyAssignment for nodes, nil for none. What all names begin with stands there once.
func Topology(nodes []NodeCount) *v1beta2.TopologyAssignment {
	if len(nodes) == 0 {
		return nil
	}
	values := &v1beta2.TopologyAssignmentSliceLevelIndividualValues{Roots: make([]string, len(nodes))}
	counts := v1beta2.TopologyAssignmentSlicePodCounts{Individual: make([]int32, len(nodes))}
	prefix := nodes[0].Node
	isUniform := true
	for i, n := range nodes {
		for !strings.HasPrefix(n.Node, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
		counts.Individual[i] = n.Count
		isUniform = isUniform && n.Count == nodes[0].Count
	}
	if len(nodes) == 1 {
		prefix = "" // it would be the whole name
	}
	for i, n := range nodes {
		values.Roots[i] = n.Node[len(prefix):]
	}
	if prefix != "" {
		values.Prefix = &prefix
	}
	if isUniform {
		count := nodes[0].Count
		counts = v1beta2.TopologyAssignmentSlicePodCounts{Universal: &count}
	}
	return &v1beta2.TopologyAssignment{Levels: []string{corev1.LabelHostname}, Slices: []v1beta2.TopologyAssignmentSlice{{
		DomainCount:    int32(len(nodes)),
		ValuesPerLevel: []v1beta2.TopologyAssignmentSliceLevelValues{{Individual: values}},
		PodCounts:      counts,
	}}}
}

// Nodes are the nodes that a topologyAssignment names, in either of its forms. It fails if the last level is not the
// name of a node, or the columns of the shorter form do not fit together.
func Nodes(t *v1beta2.TopologyAssignment) ([]NodeCount, error) {
	if t == nil {
		return nil, nil
	}
	last := len(t.Levels) - 1
	if last < 0 || t.Levels[last] != corev1.LabelHostname {
		return nil, fmt.Errorf("the levels %q do not end in %s", t.Levels, corev1.LabelHostname)
	}
	var nodes []NodeCount
	for _, domain := range t.Domains {
		if len(domain.Values) != len(t.Levels) {
			return nil, fmt.Errorf("the domain %q has %d values for %d levels", domain.Values, len(domain.Values), len(t.Levels))
		}
		nodes = append(nodes, NodeCount{domain.Values[last], domain.Count})
	}
	if len(nodes) > 0 {
		return nodes, nil
	}
	for i := range t.Slices {
		more, err := ofSlice(&t.Slices[i], last)
		if err != nil {
			return nil, fmt.Errorf("slices[%d]: %w", i, err)
		}
		nodes = slices.Concat(nodes, more)
	}
	return nodes, nil
}

func ofSlice(s *v1beta2.TopologyAssignmentSlice, last int) ([]NodeCount, error) {
	if len(s.ValuesPerLevel) != last+1 {
		return nil, errors.New("valuesPerLevel and levels differ in length")
	}
	values, counts := &s.ValuesPerLevel[last], &s.PodCounts
	if values.Universal != nil && s.DomainCount != 1 {
		return nil, fmt.Errorf("%d domains are one node", s.DomainCount)
	}
	if values.Universal == nil && (values.Individual == nil || len(values.Individual.Roots) != int(s.DomainCount)) ||
		counts.Universal == nil && len(counts.Individual) != int(s.DomainCount) {
		return nil, fmt.Errorf("the columns do not have the %d entries of domainCount", s.DomainCount)
	}
	nodes := make([]NodeCount, s.DomainCount)
	for i := range nodes {
		if values.Universal != nil {
			nodes[i].Node = *values.Universal
		} else {
			nodes[i].Node = text(values.Individual.Prefix) + values.Individual.Roots[i] + text(values.Individual.Suffix)
		}
		if counts.Universal != nil {
			nodes[i].Count = *counts.Universal
		} else {
			nodes[i].Count = counts.Individual[i]
		}
	}
	return nodes, nil
}

func text(of *string) string {
	if of == nil {
		return ""
	}
	return *of
}
