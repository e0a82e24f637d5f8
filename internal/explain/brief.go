package explain

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// Brief returns the code of the reason for which a job waits, "" if there is no verdict, and a message if its verdict does not have that. It
// is for lists of many jobs: nothing is tried, and [Model.Why] may be more precise. The answer depends only on the verdict of the job, on its
// PodGroup, and on [LargestNode].
func (m *Model) Brief(j *cluster.Job) (code, message string) {
	v := j.Verdict
	if v == nil {
		return "", ""
	}
	if refused := podsRefused(j, v); refused != "" {
		return FailedCreate, refused
	}
	if v.Code != verdict.NotEnoughResources {
		return string(v.Code), ""
	}
	if slices.ContainsFunc(v.Shortages, func(s verdict.Shortage) bool { return exceedsAnyNode(m, s) }) {
		return TooLargeForAnyNode, ""
	}
	if !slices.ContainsFunc(v.Nodes, func(r verdict.NodeReason) bool { return codes[r.Kind] == "" }) {
		if refined, _ := dominant(nodeReasons(v.Nodes)); refined != "" {
			return refined, ""
		}
	}
	if v.Placed > 0 && v.Wanted > 1 {
		return GangShort, ""
	}
	return string(v.Code), ""
}

// exceedsAnyNode reports whether more is needed than any node has.
func exceedsAnyNode(m *Model, s verdict.Shortage) bool {
	d, ok := m.cluster.Resources.Find(s.Resource)
	if !ok {
		return true
	}
	largest := LargestNode(m)
	return int(d) < len(largest) && s.Need > largest[d]
}

// LargestNode returns the most that a node has of each known resource. It is never changed, also not by the caller.
func LargestNode(m *Model) []int64 {
	k := known(m)
	if k.largest == nil {
		k.largest = make([]int64, m.cluster.Resources.Len())
		for _, n := range m.cluster.Nodes() {
			if n.Object == nil {
				continue
			}
			for d, amount := range n.Allocatable {
				k.largest[d] = max(k.largest[d], amount)
			}
		}
	}
	return k.largest
}
