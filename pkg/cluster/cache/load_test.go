package cache_test

import (
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

func TestANodeIsAsBusyAsItWasFoundLast(t *testing.T) {
	at := func(minute int) time.Time { return fixture.Birth.Add(time.Duration(minute) * time.Minute) }
	for name, test := range map[string]struct {
		measured []cache.Measured
		want     cluster.Load
	}{
		"never measured": {nil, cluster.Load{}},
		"in parts":       {[]cache.Measured{{Node: "n", At: at(1), CPU: 250_000, Memory: 1}}, cluster.Load{CPU: 250_000, Memory: 1, At: at(1)}},
		"in amounts, against what can be allocated": {
			[]cache.Measured{{Node: "n", At: at(1), CPU: 1000, Memory: 2 << 30, Absolute: true}}, cluster.Load{CPU: 250_000, Memory: 500_000, At: at(1)}},
		"more than it has":             {[]cache.Measured{{Node: "n", At: at(1), CPU: 2_000_000, Memory: -1}}, cluster.Load{CPU: 1_000_000, At: at(1)}},
		"the last of several":          {[]cache.Measured{{Node: "n", At: at(1), CPU: 1}, {Node: "n", At: at(2), CPU: 2}}, cluster.Load{CPU: 2, At: at(2)}},
		"an older one that comes late": {[]cache.Measured{{Node: "n", At: at(2), CPU: 2}, {Node: "n", At: at(1), CPU: 1}}, cluster.Load{CPU: 2, At: at(2)}},
		"another node":                 {[]cache.Measured{{Node: "m", At: at(1), CPU: 1}}, cluster.Load{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
			c.Apply(cache.Set{Object: fixture.Node("n", "cpu=4 memory=4Gi")})
			before := c.Node("n").Generation
			for _, m := range test.measured {
				c.Apply(m)
			}
			if n := c.Node("n"); n.Load != test.want || n.Generation != before {
				t.Errorf("it is %+v, want %+v; its generation went from %d to %d", n.Load, test.want, before, n.Generation)
			}
			if c.Node("m") != nil {
				t.Error("a node that nobody has seen is known")
			}
			for _, problem := range c.Audit() {
				t.Error(problem)
			}
		})
	}
}

func TestANodeThatIsMadeAgainWasNotMeasuredYet(t *testing.T) {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	node := fixture.Node("n", "cpu=4")
	c.Apply(cache.Set{Object: node}, cache.Set{Object: fixture.Pod("keeps-its-name", fixture.On("n"))},
		cache.Measured{Node: "n", At: fixture.Birth, CPU: 1}, cache.Delete{Object: node})
	again := fixture.Node("n", "cpu=4")
	again.UID = "another"
	if c.Apply(cache.Set{Object: again}); c.Node("n").Load != (cluster.Load{}) {
		t.Errorf("it is %+v", c.Node("n").Load)
	}
}
