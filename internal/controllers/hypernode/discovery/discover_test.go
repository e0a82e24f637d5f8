package discovery

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/topology"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// node makes a node with labels written "rack=a row=1".
func node(name, labels string) metav1.PartialObjectMetadata {
	n := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for label := range strings.FieldsSeq(labels) {
		key, value, _ := strings.Cut(label, "=")
		n.Labels[key] = value
	}
	return n
}

// text is HyperNodes as "rack=a: tier 1, Node n0 n1", each on a line, with names of members that are HyperNodes as
// their labels.
func text(hyperNodes []*topologyv1alpha1.HyperNode) string {
	called := map[string]string{}
	for _, h := range hyperNodes {
		for key, value := range h.Labels {
			if key != topologyv1alpha1.NetworkTopologySourceLabelKey {
				called[h.Name] = key + "=" + value
			}
		}
	}
	var lines []string
	for _, h := range hyperNodes {
		line := fmt.Sprintf("%s: tier %d %s,", called[h.Name], h.Spec.Tier, h.Spec.TierName)
		var members []string
		for _, m := range h.Spec.Members {
			name := m.Selector.ExactMatch.Name
			if m.Type == topologyv1alpha1.MemberTypeHyperNode {
				name = called[name]
			}
			members = append(members, fmt.Sprintf("%s %s", m.Type, name))
		}
		slices.Sort(members)
		lines = append(lines, line+" "+strings.Join(members, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var (
	rows  = []Topology{{Name: "rows", Labels: []string{"rack", "row"}}}
	mixed = []Topology{{Name: "flat", Labels: []string{"tor"}}, rows[0]}
)

func TestNodesWithTheSameLabelAreInOneHyperNode(t *testing.T) {
	for name, test := range map[string]struct {
		topologies []Topology
		nodes      []metav1.PartialObjectMetadata
		want       string
	}{
		"no nodes": {rows, nil, ""},
		"no label": {rows, []metav1.PartialObjectMetadata{node("n0", "zone=a")}, ""},
		"two tiers": {rows, []metav1.PartialObjectMetadata{node("n0", "rack=a row=1"), node("n1", "rack=a row=1"), node("n2", "rack=b row=1")},
			"rack=a: tier 1 rack, Node n0 Node n1\nrack=b: tier 1 rack, Node n2\nrow=1: tier 2 row, HyperNode rack=a HyperNode rack=b"},
		"what is above a label that is missing is not known": {rows, []metav1.PartialObjectMetadata{node("n0", "rack=a"), node("n1", "row=1")},
			"rack=a: tier 1 rack, Node n0"},
		"two kinds of network": {mixed, []metav1.PartialObjectMetadata{node("n0", "tor=a"), node("n1", "rack=a row=a")},
			"rack=a: tier 1 rack, Node n1\nrow=a: tier 2 row, HyperNode rack=a\ntor=a: tier 1 tor, Node n0"},
		"one rack in two rows is left out of one, which is said": {rows,
			[]metav1.PartialObjectMetadata{node("n0", "rack=a row=1"), node("n1", "rack=a row=2")},
			"rack=a: tier 1 rack, Node n0 Node n1\nrow=1: tier 2 row, HyperNode rack=a\nrow=2: tier 2 row, HyperNode rack=a"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, text(Discover(test.topologies, test.nodes, nil))); diff != "" {
				t.Errorf("discovered is (-want +got):\n%s", diff)
			}
		})
	}
}

// existing makes a HyperNode that exists, discovered if it has labels.
func existing(name, labels string) topologyv1alpha1.HyperNode {
	h := topologyv1alpha1.HyperNode{ObjectMeta: node(name, labels).ObjectMeta}
	if labels != "" {
		h.Labels[topologyv1alpha1.NetworkTopologySourceLabelKey] = SourceLabel
	}
	return h
}

func TestAHyperNodeThatWasDiscoveredKeepsItsName(t *testing.T) {
	one := []metav1.PartialObjectMetadata{node("n0", "rack=a")}
	fresh := Discover(rows, one, nil)[0].Name
	for name, test := range map[string]struct {
		existing []topologyv1alpha1.HyperNode
		want     string
	}{
		"by Volcano":                   {[]topologyv1alpha1.HyperNode{existing("hypernode-rows-tier1-x2x4b", "rack=a")}, "hypernode-rows-tier1-x2x4b"},
		"twice, the first stays":       {[]topologyv1alpha1.HyperNode{existing("hypernode-rows-tier1-y", "rack=a"), existing("hypernode-rows-tier1-x", "rack=a")}, "hypernode-rows-tier1-x"},
		"for another rack":             {[]topologyv1alpha1.HyperNode{existing("hypernode-rows-tier1-x", "rack=b")}, fresh},
		"on another tier":              {[]topologyv1alpha1.HyperNode{existing("hypernode-rows-tier11-x", "rack=a")}, fresh},
		"for another kind of network":  {[]topologyv1alpha1.HyperNode{existing("hypernode-flat-tier1-x", "rack=a")}, fresh},
		"by hand, under another name":  {[]topologyv1alpha1.HyperNode{existing("rack-a", "")}, fresh},
		"by hand, under the same name": {[]topologyv1alpha1.HyperNode{existing(fresh, "")}, "hypernode-rows-tier1-" + suffix("rack", "a", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Discover(rows, one, test.existing)[0].Name; got != test.want {
				t.Errorf("its name is %s, want %s", got, test.want)
			}
		})
	}
	if !strings.HasPrefix(fresh, "hypernode-rows-tier1-") {
		t.Errorf("a fresh name is %s", fresh)
	}
}

// applied is what exists after changes.
func applied(t interface{ Fatalf(string, ...any) }, before []topologyv1alpha1.HyperNode, changes []change) []topologyv1alpha1.HyperNode {
	byName := map[string]topologyv1alpha1.HyperNode{}
	for _, h := range before {
		byName[h.Name] = h
	}
	for _, c := range changes {
		if c.before != nil && !isDiscovered(c.before) {
			t.Fatalf("HyperNode %s is not ours and is changed", c.before.Name)
		}
		switch {
		case c.after == nil:
			delete(byName, c.before.Name)
		case c.before == nil && byName[c.after.Name].Name != "":
			t.Fatalf("HyperNode %s is made twice", c.after.Name)
		default:
			byName[c.after.Name] = *c.after.DeepCopy()
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b topologyv1alpha1.HyperNode) int { return strings.Compare(a.Name, b.Name) })
}

func TestOnlyWhatDiffersIsWritten(t *testing.T) {
	nodes := []metav1.PartialObjectMetadata{node("n0", "rack=a row=1"), node("n1", "rack=b row=1")}
	there := applied(t, []topologyv1alpha1.HyperNode{existing("by-hand", "")}, compare(Discover(rows, nodes, nil), nil))
	for name, test := range map[string]struct {
		edit func()
		want string // what is made +, changed ~ and deleted -, by label
	}{
		"nothing":                   {func() {}, ""},
		"a node changes its rack":   {func() { nodes[1] = node("n1", "rack=a row=1") }, "-rack=b ~rack=a ~row=1"},
		"a node comes":              {func() { nodes = append(nodes, node("n2", "rack=c row=1")) }, "~row=1 +rack=c"},
		"all nodes lose the labels": {func() { nodes = []metav1.PartialObjectMetadata{node("n0", ""), node("n1", "")} }, "-rack=a -rack=b -row=1"},
		"one is being deleted": {func() {
			of(there, "rack", "a").DeletionTimestamp = &metav1.Time{}
			nodes = nil
		}, "-rack=b -row=1"},
		"a user labels and annotates one": {func() {
			of(there, "rack", "a").Labels["mine"], of(there, "row", "1").Annotations = "yes", map[string]string{"mine": "too"}
		}, ""},
		"a user changes one": {func() { of(there, "rack", "a").Spec.Tier = 7 }, "~rack=a"},
	} {
		t.Run(name, func(t *testing.T) {
			keptNodes, keptThere := slices.Clone(nodes), make([]topologyv1alpha1.HyperNode, len(there))
			for i := range there {
				there[i].DeepCopyInto(&keptThere[i])
			}
			test.edit()
			changes := compare(Discover(rows, nodes, there), there)
			nodes, there = keptNodes, keptThere
			var said []string
			for _, c := range changes {
				sign, h := "~", c.after
				switch {
				case c.before == nil:
					sign = "+"
				case c.after == nil:
					sign, h = "-", c.before
				}
				said = append(said, sign+h.Spec.TierName+"="+h.Labels[h.Spec.TierName])
			}
			got := strings.Join(said, " ")
			if sorted(got) != sorted(test.want) {
				t.Errorf("written is %q, want %q", got, test.want)
			}
			if strings.Contains(got, "+") && strings.Contains(got, "-") && strings.LastIndex(got, "-") > strings.Index(got, "+") {
				t.Errorf("something is made before all is deleted: %s", got)
			}
		})
	}
}

// of finds the HyperNode that was discovered by a label.
func of(hyperNodes []topologyv1alpha1.HyperNode, key, value string) *topologyv1alpha1.HyperNode {
	return &hyperNodes[slices.IndexFunc(hyperNodes, func(h topologyv1alpha1.HyperNode) bool { return h.Labels[key] == value })]
}

func sorted(words string) string { return strings.Join(slices.Sorted(strings.FieldsSeq(words)), " ") }

// The invariants of the discovery, with any nodes and any existing HyperNodes.
func TestWhatIsDiscoveredFollowsFromTheLabels(t *testing.T) {
	values := rapid.SampledFrom([]string{"", "a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		var nodes []metav1.PartialObjectMetadata
		for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
			labels := ""
			for _, key := range []string{"rack", "row", "tor"} {
				if value := values.Draw(t, key); value != "" {
					labels += key + "=" + value + " "
				}
			}
			nodes = append(nodes, node(fmt.Sprint("n", i), labels))
		}
		before := []topologyv1alpha1.HyperNode{existing("by-hand", ""), existing("hypernode-rows-tier1-x", "rack=a"),
			existing("hypernode-rows-tier2-x", "row=b"), existing("hypernode-gone-tier1-x", "rack=b"),
			existing("hypernode-rows-tier1-"+suffix("rack", "b", 0), "")}
		before = before[:rapid.IntRange(0, len(before)).Draw(t, "existing")]

		wanted := Discover(mixed, nodes, before)
		after := applied(t, before, compare(wanted, before))
		if again := compare(Discover(mixed, nodes, after), after); len(again) > 0 {
			t.Fatalf("when all is done, more is to be done: %+v", again)
		}
		slices.Reverse(nodes)
		slices.Reverse(before)
		if diff := cmp.Diff(wanted, Discover(mixed, nodes, before)); diff != "" {
			t.Fatalf("the order of nodes and HyperNodes counts:\n%s", diff)
		}
		checkMembers(t, nodes, wanted)
	})
}

// checkMembers checks that each node is where its labels say, by means of the package that the scheduler asks.
func checkMembers(t *rapid.T, nodes []metav1.PartialObjectMetadata, wanted []*topologyv1alpha1.HyperNode) {
	tree := topology.New()
	for i, h := range wanted {
		h.UID = types.UID(fmt.Sprint(i))
		tree.Set(h)
	}
	for _, n := range nodes {
		tree.SetNode(n.Name, n.Labels)
	}
	tree.Settle()
	for _, h := range tree.HyperNodes() {
		if h.Tier != 1 || h.Problem != "" {
			continue
		}
		var want []string
		for _, n := range nodes {
			if n.Labels[h.TierName] == h.Object.Labels[h.TierName] {
				want = append(want, n.Name)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, h.Nodes); diff != "" {
			t.Fatalf("in %s are (-want +got):\n%s", h.Name, diff)
		}
	}
}
