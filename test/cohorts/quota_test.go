package cohorts

import (
	"fmt"
	"math"
	"testing"
)

func TestWhatQueuesCanUse(t *testing.T) {
	cases(t, "quota.json", func(t *testing.T, c *theCase) {
		var expect struct{ Available, PotentialAvailable []queueAmounts }
		decode(t, c.Expect, &expect)
		m := build(t, c)
		for _, u := range c.Usage {
			m.byName[u.ClusterQueue].Charge(m.amounts(u.Amounts))
		}
		for _, e := range expect.Available {
			for _, a := range m.amounts(e.Amounts) {
				if got := max(0, m.byName[e.ClusterQueue].Available(a.FR)); got != a.Value {
					t.Errorf("queue %s can use %d more of %s/%s, want %d", e.ClusterQueue, got, m.index.FlavorOf(a.FR), m.index.ResourceOf(a.FR), a.Value)
				}
			}
		}
		for _, e := range expect.PotentialAvailable {
			for _, a := range m.amounts(e.Amounts) {
				if got := m.byName[e.ClusterQueue].Potential(a.FR); got != a.Value {
					t.Errorf("queue %s can use at most %d of %s/%s, want %d", e.ClusterQueue, got, m.index.FlavorOf(a.FR), m.index.ResourceOf(a.FR), a.Value)
				}
			}
		}
	})
}

func TestPublishedShares(t *testing.T) {
	cases(t, "share.json", func(t *testing.T, c *theCase) {
		var expect struct{ WeightedShare map[string]string }
		decode(t, c.Expect, &expect)
		m := build(t, c)
		for _, u := range c.Usage {
			m.byName[u.ClusterQueue].Charge(m.amounts(u.Amounts))
		}
		if len(c.Incoming) > 0 {
			var incoming []queueAmounts
			decode(t, c.Incoming, &incoming)
			for _, u := range incoming {
				m.byName[u.ClusterQueue].Charge(m.amounts(u.Amounts))
			}
		}
		for name, want := range expect.WeightedShare {
			n := m.nodes[name]
			if q := m.byName[name]; q != nil {
				n = &q.Node
			}
			if want == "infinite" {
				want = fmt.Sprint(int64(math.MaxInt64))
			}
			if got := fmt.Sprint(n.Share().Weighted()); got != want {
				t.Errorf("the share of %s is %s, want %s", name, got, want)
			}
		}
	})
}
