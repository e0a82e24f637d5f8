package cache

import (
	"fmt"
	"slices"
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func namesIn(c *Cache, d *cluster.Domain) []string {
	var names []string
	for _, n := range c.NodesIn(d) {
		names = append(names, n.Name)
	}
	return names
}

// TestASelectionFollowsItsNodes adds, changes and removes nodes, and compares selections and what they have in common
// with what a pass over all nodes finds.
func TestASelectionFollowsItsNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Options{})
		labelled := func(key string) *cluster.Selection {
			return cluster.NewSelection(func(n *corev1.Node) bool { return n.Labels[key] != "" })
		}
		selections := map[string]*cluster.Selection{"a": labelled("a"), "b": labelled("b")}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fmt.Sprintf("n%03d", rapid.IntRange(0, 150).Draw(t, "node"))
			if n := c.Node(name); n != nil && rapid.IntRange(0, 3).Draw(t, "goes") == 0 {
				c.Apply(Delete{Object: n.Object})
			} else {
				object := node(name, "cpu=4")
				object.ResourceVersion, object.Labels = fmt.Sprint(step), map[string]string{}
				for key := range selections {
					if rapid.Bool().Draw(t, key) {
						object.Labels[key] = "yes"
					}
				}
				c.Apply(Set{Object: object})
			}
			if rapid.Bool().Draw(t, "more") {
				continue // several changes are followed at once
			}
			c.Settle()
			want := map[string][]string{}
			for _, n := range c.Nodes() {
				for key := range selections {
					if n.Object.Labels[key] != "" {
						want[key] = append(want[key], n.Name)
					}
				}
				if n.Object.Labels["a"] != "" && n.Object.Labels["b"] != "" {
					want["both"] = append(want["both"], n.Name)
				}
			}
			a, b := selections["a"].Domain(c.Cluster), selections["b"].Domain(c.Cluster)
			for key, d := range map[string]*cluster.Domain{"a": a, "b": b, "both": a.Intersect(b)} {
				if got := namesIn(c, d); !slices.Equal(got, want[key]) {
					t.Fatalf("%s is %v, want %v", key, got, want[key])
				}
				for _, n := range c.Nodes() {
					if d.Holds(n) != slices.Contains(want[key], n.Name) {
						t.Fatalf("%s says %t of %s, it is %v", key, d.Holds(n), n.Name, want[key])
					}
				}
			}
			if a != selections["a"].Domain(c.Cluster) {
				t.Fatal("nothing has changed, and the set is another")
			}
			if (len(want["both"]) == len(want["a"])) != a.IsWithin(b) || (a.Intersect(b) == a) != a.IsWithin(b) {
				t.Fatalf("a is within b: %t; a is %v, b %v", a.IsWithin(b), want["a"], want["b"])
			}
		}
	})
}

// TestDomainsIntersect tries the axioms of sets on sets of nodes whose slots are far apart.
func TestDomainsIntersect(t *testing.T) {
	nodes := make([]*cluster.Node, 300)
	for i := range nodes {
		nodes[i] = &cluster.Node{Name: fmt.Sprintf("n%03d", i), Slot: i * 7 % 300}
	}
	names := func(d *cluster.Domain) (names []string) {
		held := nodes
		if d != nil {
			held = d.Nodes()
		}
		for _, n := range held {
			names = append(names, n.Name)
		}
		return names
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *cluster.Domain {
			if rapid.IntRange(0, 9).Draw(t, name+" is all") == 0 {
				return nil
			}
			return cluster.NewDomain(rapid.SliceOfN(rapid.SampledFrom(nodes), 0, 100).Draw(t, name))
		}
		a, b := draw("a"), draw("b")
		both := a.Intersect(b)
		var want []string
		for _, n := range nodes {
			if a.Holds(n) && b.Holds(n) {
				want = append(want, n.Name)
			}
		}
		if got := names(both); !slices.Equal(got, want) {
			t.Fatalf("both hold %v, want %v", got, want)
		}
		if got := names(b.Intersect(a)); !slices.Equal(got, want) {
			t.Fatalf("the other way round both hold %v, want %v", got, want)
		}
		if !both.IsWithin(a) || !both.IsWithin(b) || !a.IsWithin(nil) || (a != nil && len(want) > 0 && (*cluster.Domain)(nil).IsWithin(a)) {
			t.Fatal("what both hold is not within both")
		}
	})
}

func TestADomainKnowsTheLowestHyperNodeItLiesIn(t *testing.T) {
	nodes := []*cluster.Node{{Name: "n0"}, {Name: "n1", Slot: 1}, {Name: "n2", Slot: 2}}
	low, high := &cluster.HyperNode{Name: "low", Tier: 1}, &cluster.HyperNode{Name: "high", Tier: 2}
	low.Domain, high.Domain = cluster.NewDomain(nodes[:2]).In(low), cluster.NewDomain(nodes).In(high)
	picked, wide := cluster.NewDomain(nodes[1:]), cluster.NewDomain(nodes)
	for name, test := range map[string]struct {
		got  *cluster.Domain
		want *cluster.HyperNode
	}{
		"a HyperNode":              {low.Domain, low},
		"of two the lower":         {high.Domain.Intersect(low.Domain), low},
		"a part of one":            {picked.Intersect(low.Domain), low},
		"a set that one holds":     {picked.Intersect(high.Domain), high},
		"one that another set has": {high.Domain.Intersect(wide), high},
		"a part of a part":         {picked.Intersect(high.Domain).Intersect(low.Domain), low},
		"all nodes":                {nil, nil},
		"a set of no HyperNode":    {picked, nil},
	} {
		if h := test.got.HyperNode(); h != test.want {
			t.Errorf("%s lies in %v, want %v", name, h, test.want)
		}
	}
	if low.Domain.Intersect(high.Domain) != low.Domain || low.Domain.Intersect(nil) != low.Domain || (*cluster.Domain)(nil).Intersect(low.Domain) != low.Domain {
		t.Error("one set is within the other, and both hold another than that")
	}
}
