package victims

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Each case is more important by one part and less important by all parts after it.
func TestImportanceIsComparedPartByPart(t *testing.T) {
	for name, test := range map[string]struct{ more, less importance }{
		"the priority of the queue": {importance{priority: priority{1, 0, 0}, start: noon.Add(1), uid: "b"}, importance{priority: priority{0, 9, 9}, endsJob: true, start: noon, uid: "a"}},
		"then that of the job":      {importance{priority: priority{1, 1, 0}, start: noon.Add(1), uid: "b"}, importance{priority: priority{1, 0, 9}, endsJob: true, start: noon, uid: "a"}},
		"then that of the task":     {importance{priority: priority{1, 1, 1}, start: noon.Add(1), uid: "b"}, importance{priority: priority{1, 1, 0}, endsJob: true, start: noon, uid: "a"}},
		"then the end of the job":   {importance{endsJob: true, start: noon.Add(1), uid: "b"}, importance{start: noon, uid: "a"}},
		"then the earlier start":    {importance{start: noon, uid: "b"}, importance{start: noon.Add(1), uid: "a"}},
		"then the smaller UID":      {importance{start: noon, uid: "a"}, importance{start: noon, uid: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.more.compare(&test.less) <= 0 || test.less.compare(&test.more) >= 0 || test.more.compare(&test.more) != 0 {
				t.Errorf("%+v is not more important than %+v", test.more, test.less)
			}
		})
	}
}

// Each case costs less by one part and more by all parts after it (rule K3).
func TestCostsAreComparedPartByPart(t *testing.T) {
	now, before := framework.EvictionRules{Budgets: true, Ends: true, Starts: true}, framework.EvictionRules{}
	ratio := func(num int64) resources.Ratio { return resources.Ratio{Num: num, Den: 4} }
	// worst is more than any cost below in each part that a case does not set.
	worst := Cost{violations: 9, LastQueue: LastQueue{queue: 9, share: ratio(0)}, top: priority{9}, endedJobs: 9, sum: [3]int64{9, 9, 9}, victims: 9, start: noon, rank: 9}
	with := func(change func(c *Cost)) Cost {
		c := worst
		change(&c)
		return c
	}
	for name, test := range map[string]struct {
		less, more Cost
		rules      framework.EvictionRules
	}{
		"no victims at all":              {with(func(c *Cost) { c.victims = 0 }), Cost{victims: 1}, now},
		"fewer violations of budgets":    {with(func(c *Cost) { c.violations = 1 }), Cost{violations: 2, victims: 1}, now},
		"a queue of lower priority":      {with(func(c *Cost) { c.violations, c.queue = 0, 1 }), Cost{LastQueue: LastQueue{queue: 2}, victims: 1}, now},
		"a queue further above":          {with(func(c *Cost) { c.violations, c.queue, c.share = 0, 0, ratio(6) }), Cost{LastQueue: LastQueue{share: ratio(5)}, victims: 1}, now},
		"a lower top priority":           {with(func(c *Cost) { c.violations, c.queue, c.share, c.top = 0, 0, ratio(4), priority{0, 1} }), Cost{LastQueue: LastQueue{share: ratio(4)}, top: priority{0, 2}, victims: 1}, now},
		"fewer jobs that end":            {Cost{endedJobs: 1, sum: [3]int64{9, 9, 9}, victims: 9, start: noon, rank: 9}, Cost{endedJobs: 2, victims: 1, start: noon.Add(1)}, now},
		"a smaller sum of queues":        {Cost{sum: [3]int64{1, 9, 9}, victims: 9, start: noon, rank: 9}, Cost{sum: [3]int64{2, 0, 0}, victims: 1, start: noon.Add(1)}, now},
		"a smaller sum of jobs":          {Cost{sum: [3]int64{0, 1, 9}, victims: 9, start: noon, rank: 9}, Cost{sum: [3]int64{0, 2, 0}, victims: 1, start: noon.Add(1)}, now},
		"fewer victims":                  {Cost{victims: 1, start: noon, rank: 9}, Cost{victims: 2, start: noon.Add(1)}, now},
		"a later start":                  {Cost{victims: 1, start: noon.Add(1), rank: 9}, Cost{victims: 1, start: noon}, now},
		"the first node":                 {Cost{victims: 1, rank: 1}, Cost{victims: 1, rank: 2}, now},
		"kube-1.8 counts no ended jobs":  {Cost{endedJobs: 2, victims: 1}, Cost{endedJobs: 1, victims: 2}, before},
		"kube-1.8 looks at no starts":    {Cost{victims: 1, start: noon, rank: 1}, Cost{victims: 1, start: noon.Add(1), rank: 2}, before},
		"with victims, the cost decides": {Cost{victims: 5, rank: 1}, Cost{victims: 5, violations: 1}, now},
	} {
		t.Run(name, func(t *testing.T) {
			if test.less.Compare(&test.more, &test.rules) >= 0 || test.more.Compare(&test.less, &test.rules) <= 0 {
				t.Errorf("%+v does not cost less than %+v", test.less, test.more)
			}
		})
	}
}

func TestACostIsTheSameHoweverItIsAddedUp(t *testing.T) {
	all := []importance{{priority: priority{0, 5, 1}, start: noon}, {priority: priority{0, 5, 1}, start: noon.Add(-time.Hour)},
		{priority: priority{0, -7, 0}, start: noon.Add(-time.Hour * 2)}}
	var sum, gang, merged Cost
	for i := range all {
		sum.add(&all[i])
	}
	gang.add(&all[1])
	gang.add(&all[2])
	merged.add(&all[0])
	if merged.merge(&gang); merged != sum {
		t.Errorf("one by one it is %+v, with a gang at once %+v", sum, merged)
	}
	if sum.victims != 3 || sum.top != (priority{0, 5, 1}) || !sum.start.Equal(noon.Add(-time.Hour)) {
		t.Errorf("the most important of them is not what counts: %+v", sum)
	}
	var one Cost
	one.add(&all[2])
	two := one
	two.add(&all[2])
	if rules := (framework.EvictionRules{Ends: true, Starts: true}); one.Compare(&two, &rules) >= 0 {
		t.Error("two victims of negative priority cost no more than one")
	}
}

// Bounds are compared as the costs that they stand for, whatever the parts in which they differ.
func TestBoundsAreComparedAsTheirCosts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		number := func(name string) int { return rapid.IntRange(0, 2).Draw(r, name) }
		draw := func() bound {
			o := offer{cost: Cost{marks: int64(number("marks")), violations: number("violations"), LastQueue: LastQueue{queue: int64(number("queue"))},
				top: priority{0, int64(number("top"))}, endedJobs: number("ended"), sum: [3]int64{0, int64(number("sum"))}, victims: 1 + number("victims"),
				start: noon.Add(time.Duration(number("start"))), rank: number("rank")}}
			of := &nodeOffers{offers: []offer{o}, least: [3]int64{0, int64(number("least"))}}
			return bound{of: of, offer: int32(number("offer") - 1), more: int32(number("more")), ended: int32(number("ending")), rank: int32(number("place"))}
		}
		a, b := draw(), draw()
		a.offer, b.offer = min(a.offer, 0), min(b.offer, 0)
		for _, action := range []framework.EvictionRules{{}, {Ends: true}, {Starts: true}, {Ends: true, Starts: true}} {
			s := Selector{rules: &rules.Rules{Action: &rules.Action{EvictionRules: action}}}
			c, d := a.cost(), b.cost()
			if got, want := s.compareBounds(a, b), c.Compare(&d, &action); got != want {
				r.Fatalf("%+v and %+v compare as %d, want %d", c, d, got, want)
			}
		}
	})
}
