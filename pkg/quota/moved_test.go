package quota_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// moved is how the bounds of a tree differ between two sizes of the cluster.
func moved(t *quota.Tree, p quota.Policy, before, now resources.Vector) (was, is *quota.View, m quota.Moved) {
	was, is = quota.NewBounded(t, p, index(), before), quota.NewBounded(t, p, index(), now)
	return was, is, is.Since(was, t)
}

// Whatever a queue could not do in the session before, and can in this one, is told.
func TestAQueueCanDoMoreOnlyIfItsBoundsHaveMoved(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := drawForest(r, false)
		tree, nodes := f.tree(inOrder(len(f.terms)))
		bookSome(r, tree, nodes)
		n, request := rapid.SampledFrom(nodes).Draw(r, "node"), drawAmounts(r, "request").vector()
		for _, m := range nodes {
			tree.Book(m, quota.Request, m.Own.Allocated, +1)
		}
		tree.Book(n, quota.Request, request, +1)
		p := quota.Policy{Flat: rapid.Bool().Draw(r, "flat"), Strict: rapid.Bool().Draw(r, "strict"), Levels: rapid.IntRange(0, 2).Draw(r, "levels")}
		was, is, m := moved(tree, p, drawAmounts(r, "before").vector(), drawAmounts(r, "now").vector())
		isGrown := slices.ContainsFunc(m.Grown, func(g *quota.Node) bool { return g.Contains(n) })
		if was.Ground(n, request) == quota.NoGround && is.Ground(n, request) != quota.NoGround && !isGrown {
			r.Fatalf("%s may reclaim %v, and its share is not told to have grown", n.Name, request)
		}
		if !was.Fits(n, quota.ToPlace(request)) && is.Fits(n, quota.ToPlace(request)) && !isGrown {
			r.Fatalf("%s may hold %v more, and its ceiling is not told to have grown", n.Name, request)
		}
		leaving := drawAmounts(r, "leaving").vector()
		if !was.IsSurplus(n, leaving, request) && is.IsSurplus(n, leaving, request) && !m.Exposes {
			r.Fatalf("%s may give %v, and none is told to deserve less", n.Name, leaving)
		}
	})
}

func TestBoundsThatMove(t *testing.T) {
	for name, test := range map[string]struct {
		held, wanted, before, now amounts
		isGrown, exposes          bool
	}{
		"the same cluster": {amounts{"cpu": 4}, amounts{"cpu": 4}, amounts{"cpu": 4}, amounts{"cpu": 4}, false, false},
		"a smaller one that leaves the share what it was": {amounts{"cpu": 4}, amounts{"cpu": 4}, amounts{"cpu": 9}, amounts{"cpu": 8}, false, false},
		"a smaller one of which less is held":             {amounts{"cpu": 1}, amounts{"cpu": 4}, amounts{"cpu": 4}, amounts{"cpu": 3}, false, false},
		"a smaller one of which as much is held":          {amounts{"cpu": 3}, amounts{"cpu": 4}, amounts{"cpu": 4}, amounts{"cpu": 3}, false, false},
		"a smaller one of which more is held":             {amounts{"cpu": 4}, amounts{"cpu": 4}, amounts{"cpu": 4}, amounts{"cpu": 3}, false, true},
		"fewer pods":                                      {amounts{"pods": 4}, amounts{"cpu": 4}, amounts{"pods": 4}, amounts{"pods": 3}, false, false},
		"a larger one":                                    {amounts{"cpu": 1}, amounts{"cpu": 4}, amounts{"cpu": 2}, amounts{"cpu": 3}, true, false},
		"more of one resource and less of another":        {amounts{"memory": 4}, amounts{"cpu": 4}, amounts{"cpu": 2, "memory": 4}, amounts{"cpu": 3, "memory": 2}, true, true},
		"a resource comes":                                {amounts{}, amounts{"cpu": 4}, amounts{"memory": 4}, amounts{"cpu": 1, "memory": 4}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := &quota.Node{Name: "q", Terms: quota.Terms{Deserved: amounts{"cpu": 4, "memory": 4, "pods": 4}.limits(), Capability: amounts{"cpu": 4, "memory": 4, "pods": 4}.limits()}}
			tree := grow([]*quota.Node{{Name: "root"}, n}, []int{0, 0})
			tree.Book(n, quota.Allocated, test.held.vector(), +1)
			tree.Book(n, quota.Request, test.wanted.vector(), +1)
			_, _, m := moved(tree, quota.Policy{Flat: true}, test.before.vector(), test.now.vector())
			if isGrown := slices.Contains(m.Grown, n); isGrown != test.isGrown || m.Exposes != test.exposes {
				t.Errorf("grown: %t, less is deserved than is held: %t", isGrown, m.Exposes)
			}
		})
	}
}
