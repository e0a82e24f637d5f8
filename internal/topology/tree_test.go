package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/topology"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

// younger makes a HyperNode a minute younger than the others.
func younger(h *topologyv1alpha1.HyperNode) *topologyv1alpha1.HyperNode {
	h.CreationTimestamp = metav1.NewTime(h.CreationTimestamp.Add(time.Minute))
	return h
}

// picture shows every HyperNode with its nodes, or its problem.
func picture(t *topology.Tree) map[string]string {
	shown := map[string]string{}
	for _, h := range t.HyperNodes() {
		shown[h.Name] = strings.Join(h.Nodes, " ")
		if h.Problem != "" {
			shown[h.Name] = "! " + h.Problem
		}
	}
	return shown
}

func TestWhoIsInWhat(t *testing.T) {
	for name, test := range map[string]struct {
		hyperNodes []*topologyv1alpha1.HyperNode
		want       map[string]string
	}{
		"nodes by name, those that exist": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 1, "n0", "n1", "n9")},
			map[string]string{"s0": "n0 n1"},
		},
		"nodes by a part of their name": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 1, "~[01]"), fixture.HyperNode("s1", 1, "~^n[2-3]$")},
			map[string]string{"s0": "n0 n1", "s1": "n2 n3"},
		},
		"nodes by label": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 1, "rack=a"), fixture.HyperNode("s1", 1, "rack=b")},
			map[string]string{"s0": "n0 n1", "s1": "n2 n3"},
		},
		"an empty selector selects nothing": {
			[]*topologyv1alpha1.HyperNode{{ObjectMeta: metav1.ObjectMeta{Name: "s0"}, Spec: topologyv1alpha1.HyperNodeSpec{Tier: 1,
				Members: []topologyv1alpha1.MemberSpec{{Type: topologyv1alpha1.MemberTypeNode,
					Selector: topologyv1alpha1.MemberSelector{LabelMatch: &metav1.LabelSelector{}}}}}}},
			map[string]string{"s0": ""},
		},
		"what is in a member is in what it is a member of": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("spine", 2, "@s0", "@s1", "@absent"), fixture.HyperNode("s0", 1, "n0", "n1"),
				fixture.HyperNode("s1", 1, "n2")},
			map[string]string{"s0": "n0 n1", "s1": "n2", "spine": "n0 n1 n2"},
		},
		"a tier may be made of nodes alone": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("spine", 2, "~n"), fixture.HyperNode("s0", 1, "n0", "n1")},
			map[string]string{"s0": "n0 n1", "spine": "n0 n1 n2 n3"},
		},
		"a tier may be passed over": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("core", 3, "@s0", "@spine"), fixture.HyperNode("spine", 2, "@s1"),
				fixture.HyperNode("s0", 1, "n0"), fixture.HyperNode("s1", 1, "n1")},
			map[string]string{"s0": "n0", "s1": "n1", "spine": "n1", "core": "n0 n1"},
		},
		"of two that select one node the older keeps it": {
			[]*topologyv1alpha1.HyperNode{younger(fixture.HyperNode("a", 1, "n1", "n2")), fixture.HyperNode("b", 1, "n0", "n1")},
			map[string]string{"a": "! node n1 is in HyperNode b, which has tier 1 too", "b": "n0 n1"},
		},
		"a member has one place on a tier": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 1, "n9"), fixture.HyperNode("x", 2, "@s0"), younger(fixture.HyperNode("a", 2, "@s0", "n3"))},
			map[string]string{"s0": "", "x": "", "a": "! its member HyperNode s0 is a member of HyperNode x, which has tier 2 too"},
		},
		"a member is of a lower tier": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 2, "n0"), fixture.HyperNode("s1", 2, "@s0", "n1")},
			map[string]string{"s0": "n0", "s1": "! its member HyperNode s0 has tier 2, and members must be of lower tiers than 2"},
		},
		"nothing is a member of itself": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 2, "@s0", "n0")},
			map[string]string{"s0": "! it is a member of itself"},
		},
		"a circle is broken where a member is not of a lower tier": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 1, "@core", "n0"), fixture.HyperNode("spine", 2, "@s0", "n1"),
				fixture.HyperNode("core", 3, "@spine", "n2")},
			map[string]string{"s0": "! it is a member of itself, by way of core, spine", "spine": "n1", "core": "n1 n2"},
		},
		"a bad expression stops nobody else": {
			[]*topologyv1alpha1.HyperNode{fixture.HyperNode("s0", 1, "~("), fixture.HyperNode("s1", 1, "n1"), fixture.HyperNode("spine", 2, "@s0", "@s1")},
			map[string]string{"s1": "n1", "spine": "n1", "s0": "! spec.members[0].selector.regexMatch.pattern: Invalid value: \"(\": member regexMatch pattern is invalid: " +
				"error parsing regexp: missing closing ): `(`"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := topology.New()
			for i := range 4 {
				tree.SetNode(fmt.Sprintf("n%d", i), map[string]string{"rack": string(rune('a' + i/2))})
			}
			for _, h := range test.hyperNodes {
				tree.Set(h)
			}
			tree.Settle()
			if diff := cmp.Diff(test.want, picture(tree)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAChainRunsFromTheLowestTierUp(t *testing.T) {
	tree := topology.New()
	tree.SetNode("n0", nil)
	for _, h := range []*topologyv1alpha1.HyperNode{fixture.HyperNode("a", 3, "@b"), fixture.HyperNode("b", 2, "@c"), fixture.HyperNode("c", 1, "n0")} {
		tree.Set(h)
	}
	tree.Settle()
	var names []string
	for _, h := range tree.Chain("n0") {
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "c b a" {
		t.Errorf("the chain is %s", got)
	}
	if tree.Settle() {
		t.Error("nothing has happened, and something is said to have changed")
	}
	tree.SetNode("n1", nil)
	if tree.Settle() {
		t.Error("a node that is in nothing has changed something")
	}
	tree.DeleteNode("n0")
	if !tree.Settle() || tree.Chain("n0") != nil {
		t.Error("a node that is gone is in a HyperNode still")
	}
}

// anyTree draws HyperNodes, good and bad, and nodes.
func anyTree(t *rapid.T) (hyperNodes []*topologyv1alpha1.HyperNode, nodes map[string]map[string]string) {
	nodes = map[string]map[string]string{}
	for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
		nodes[fmt.Sprintf("n%d", i)] = map[string]string{"rack": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "rack")}
	}
	members := []string{"n0", "n1", "n2", "n3", "n4", "~n[0-2]", "~[34]", "~(", "rack=a", "rack=b", "@h0", "@h1", "@h2", "@h3"}
	for i := range rapid.IntRange(0, 5).Draw(t, "hypernodes") {
		h := fixture.HyperNode(fmt.Sprintf("h%d", i), rapid.IntRange(1, 3).Draw(t, "tier"),
			rapid.SliceOfN(rapid.SampledFrom(members), 0, 3).Draw(t, "members")...)
		if rapid.Bool().Draw(t, "younger") {
			h = younger(h)
		}
		hyperNodes = append(hyperNodes, h)
	}
	return hyperNodes, nodes
}

func TestTheResultDependsOnTheObjectsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hyperNodes, nodes := anyTree(t)
		fresh, other := topology.New(), topology.New()
		for name, labels := range nodes {
			fresh.SetNode(name, labels)
		}
		for _, h := range hyperNodes {
			fresh.Set(h)
		}
		fresh.Settle()
		// The same by detours: other objects under these names before, in another order, and settled in between.
		other.SetNode("n0", map[string]string{"rack": "b"})
		other.SetNode("gone", map[string]string{"rack": "a"})
		other.Set(fixture.HyperNode("gone", 1, "~n"))
		other.Set(fixture.HyperNode("h1", 2, "@h0", "n2"))
		for _, h := range rapid.Permutation(hyperNodes).Draw(t, "order") {
			other.Set(h)
			other.Settle()
		}
		other.Delete("gone")
		other.DeleteNode("gone")
		for _, name := range []string{"n0"} {
			if nodes[name] == nil {
				other.DeleteNode(name)
			}
		}
		if !slices.ContainsFunc(hyperNodes, func(h *topologyv1alpha1.HyperNode) bool { return h.Name == "h1" }) {
			other.Delete("h1")
		}
		for name, labels := range nodes {
			other.SetNode(name, labels)
		}
		other.Settle()
		if diff := cmp.Diff(picture(fresh), picture(other)); diff != "" {
			t.Fatalf("(-at once +by detours):\n%s", diff)
		}
		for name := range nodes {
			last := -1
			for _, h := range fresh.Chain(name) {
				if h.Problem != "" || h.Tier <= last || !slices.Contains(h.Nodes, name) {
					t.Fatalf("the chain of %s holds %s of tier %d", name, h.Name, h.Tier)
				}
				last = h.Tier
			}
		}
	})
}
