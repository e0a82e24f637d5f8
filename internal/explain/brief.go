package explain

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// Brief returns the code of the reason for which a job waits, "" if there is no verdict, and a message if its verdict does not have that. It
// is for lists of many jobs: nothing is tried, and [Model.Why] may be more precise.
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
	k := known(m)
	d, ok := m.cluster.Resources.Find(s.Resource)
	if !ok {
		return true
	}
	if k.largest == nil {
		k.largest = make([]int64, m.cluster.Resources.Len())
		for _, n := range m.cluster.Nodes() {
			for i := range k.largest {
				if n.Object != nil {
					k.largest[i] = max(k.largest[i], n.Allocatable.At(dim(i)))
				}
			}
		}
	}
	return int(d) < len(k.largest) && s.Need > k.largest[d]
}
