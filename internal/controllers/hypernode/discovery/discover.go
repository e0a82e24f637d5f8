package discovery

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// domain is the nodes that have a value of a label in common, as one topology sees them.
type domain struct {
	topology int // of the Topologies
	tier     int
	value    string
}

func (d domain) compare(other domain) int {
	return cmp.Or(cmp.Compare(d.topology, other.topology), cmp.Compare(d.tier, other.tier), cmp.Compare(d.value, other.value))
}

// Discover returns the HyperNodes that topologies make of nodes, by name. Those that exist keep their names.
func Discover(topologies []Topology, nodes []metav1.PartialObjectMetadata, existing []topologyv1alpha1.HyperNode) []*topologyv1alpha1.HyperNode {
	chains := make([][][]domain, len(nodes)) // of each node in each topology, from tier 1 up
	members := map[domain]map[string]bool{}
	for i := range nodes {
		chains[i] = make([][]domain, len(topologies))
		for t := range topologies {
			chains[i][t] = chain(t, &topologies[t], nodes[i].Labels)
			for _, d := range chains[i][t] {
				members[d] = map[string]bool{}
			}
		}
	}
	names := nameDomains(topologies, slices.SortedFunc(maps.Keys(members), domain.compare), existing)
	for i := range nodes {
		for _, domains := range chains[i] {
			member := nodes[i].Name
			for _, d := range domains {
				members[d][member] = true
				member = names[d]
			}
		}
	}
	var wanted []*topologyv1alpha1.HyperNode
	for d, of := range members {
		wanted = append(wanted, hyperNode(names[d], topologies[d.topology].Labels[d.tier-1], d, slices.Sorted(maps.Keys(of))))
	}
	slices.SortFunc(wanted, func(a, b *topologyv1alpha1.HyperNode) int { return cmp.Compare(a.Name, b.Name) })
	return wanted
}

// chain returns where a node is, from tier 1 up to the first label that it does not have: what is above that is not
// known.
func chain(index int, t *Topology, labels map[string]string) []domain {
	var domains []domain
	for i, key := range t.Labels {
		value, has := labels[key]
		if !has {
			break
		}
		domains = append(domains, domain{topology: index, tier: i + 1, value: value})
	}
	return domains
}

func hyperNode(name, key string, d domain, members []string) *topologyv1alpha1.HyperNode {
	h := &topologyv1alpha1.HyperNode{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			topologyv1alpha1.NetworkTopologySourceLabelKey: SourceLabel, key: d.value,
		}},
		Spec: topologyv1alpha1.HyperNodeSpec{Tier: d.tier, TierName: key},
	}
	kind := topologyv1alpha1.MemberTypeHyperNode
	if d.tier == 1 {
		kind = topologyv1alpha1.MemberTypeNode
	}
	for _, member := range members {
		h.Spec.Members = append(h.Spec.Members, topologyv1alpha1.MemberSpec{
			Type: kind, Selector: topologyv1alpha1.MemberSelector{ExactMatch: &topologyv1alpha1.ExactMatch{Name: member}},
		})
	}
	return h
}

// nameDomains names each domain like the HyperNode that Volcano or Hekla discovered for it before. Otherwise it chooses
// a free name, which is the same in every process.
func nameDomains(topologies []Topology, domains []domain, existing []topologyv1alpha1.HyperNode) map[domain]string {
	taken := map[string]bool{}
	type label struct{ key, value string }
	discovered := map[label][]string{} // names
	for i := range existing {
		h := &existing[i]
		taken[h.Name] = true
		if isDiscovered(h) {
			for key, value := range h.Labels {
				discovered[label{key, value}] = append(discovered[label{key, value}], h.Name)
			}
		}
	}
	names := map[domain]string{}
	for _, d := range domains {
		t := &topologies[d.topology]
		key, begin := t.Labels[d.tier-1], prefix(t.Name, d.tier)
		for _, name := range slices.Sorted(slices.Values(discovered[label{key, d.value}])) {
			if strings.HasPrefix(name, begin) {
				names[d] = name
				break
			}
		}
		for attempt := 0; names[d] == ""; attempt++ {
			if name := begin + suffix(key, d.value, attempt); !taken[name] {
				names[d], taken[name] = name, true
			}
		}
	}
	return names
}

// prefix is how the names of the HyperNodes of one tier begin.
func prefix(topology string, tier int) string {
	return fmt.Sprintf("hypernode-%s-tier%d-", cleanName(topology), tier)
}

// cleanName is the name of a topology as it stands in names of HyperNodes.
func cleanName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.':
			return c
		}
		return '-'
	}, name)
}

// suffix tells the HyperNodes of one tier apart.
func suffix(key, value string, attempt int) string {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s=%s/%d", key, value, attempt)
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

// isDiscovered reports whether a HyperNode is ours to change and delete.
func isDiscovered(h *topologyv1alpha1.HyperNode) bool {
	return h.Labels[topologyv1alpha1.NetworkTopologySourceLabelKey] == SourceLabel
}

// change is a HyperNode that is not as it should be: before is nil if there is none, after if there should be none.
type change struct {
	before, after *topologyv1alpha1.HyperNode
}

// compare returns what must be done so that the discovered among those that exist are what is wanted, deletions first:
// a node is in one HyperNode of each tier. What is being deleted already is let go.
func compare(wanted []*topologyv1alpha1.HyperNode, existing []topologyv1alpha1.HyperNode) []change {
	missing := map[string]*topologyv1alpha1.HyperNode{}
	for _, h := range wanted {
		missing[h.Name] = h
	}
	var gone, others []change
	for i := range existing {
		before := &existing[i]
		want := missing[before.Name]
		delete(missing, before.Name)
		switch {
		case !isDiscovered(before) || before.DeletionTimestamp != nil:
		case want == nil:
			gone = append(gone, change{before: before})
		case !equality.Semantic.DeepEqual(before.Spec, want.Spec):
			after := before.DeepCopy()
			after.Spec = want.Spec
			others = append(others, change{before: before, after: after})
		}
	}
	for _, h := range wanted {
		if missing[h.Name] != nil {
			others = append(others, change{after: h})
		}
	}
	return append(gone, others...)
}
