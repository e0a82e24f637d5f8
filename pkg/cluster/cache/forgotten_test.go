package cache

import (
	"slices"
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// forgottenNames takes what was forgotten and returns its names.
func forgottenNames(c *Cache) []string {
	var names []string
	forgotten := c.TakeForgotten()
	for _, j := range forgotten.Jobs {
		names = append(names, "job "+j.ID.Name)
	}
	for _, q := range forgotten.Queues {
		names = append(names, "queue "+q.Name)
	}
	for _, t := range forgotten.Tasks {
		names = append(names, "pod "+t.Key().Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestTheModelForgetsWhatIsGone(t *testing.T) {
	later := func(g *schedulingv1beta1.PodGroup) { g.UID = "later" }
	again := func(q *schedulingv1beta1.Queue) { q.UID = "later" }
	for name, test := range map[string]struct {
		events     []Event
		want       []string
		isReported bool // of job g
	}{
		"nothing happens":                {nil, nil, true},
		"the objects are shown again":    {[]Event{Set{group("g", "q")}, Set{pod("p", in("g"))}, Set{queue("q", "")}}, nil, true},
		"the PodGroup is another one":    {[]Event{Set{group("g", "q", later)}}, []string{"job g"}, false},
		"the PodGroup is gone":           {[]Event{Delete{group("g", "q")}}, []string{"job g"}, false},
		"another PodGroup is gone":       {[]Event{Delete{group("g", "q", later)}}, nil, true},
		"the job goes to another":        {[]Event{Set{group("g", "q", belongsTo("other"))}}, []string{"job g"}, false},
		"the pod is another one":         {[]Event{Set{pod("p", in("g"), uid("new"))}}, []string{"pod p"}, true},
		"the pod is gone":                {[]Event{Delete{pod("p", in("g"))}}, []string{"pod p"}, true},
		"the last pod of no PodGroup":    {[]Event{Delete{pod("x", in("none"))}}, []string{"job none", "pod x"}, true},
		"the queue is another one":       {[]Event{Set{queue("q", "", again)}}, []string{"queue q"}, true},
		"the queue is gone":              {[]Event{Delete{queue("q", "")}}, []string{"queue q"}, true},
		"the object of the root is gone": {[]Event{Delete{queue("root", "")}}, []string{"queue root"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{queue("root", "")}, Set{queue("q", "")}, Set{group("g", "q")}, Set{pod("p", in("g"))}, Set{pod("x", in("none"))})
			c.TakeForgotten()
			c.Job(jobID("g")).IsReported = true
			c.Apply(test.events...)
			c.Settle()
			if got := forgottenNames(c); !slices.Equal(got, test.want) {
				t.Errorf("forgotten are %v, want %v", got, test.want)
			}
			if again := forgottenNames(c); len(again) > 0 {
				t.Errorf("%v are told twice", again)
			}
			if j := c.Job(jobID("g")); j != nil && j.IsReported != test.isReported {
				t.Errorf("a status of it was decided: %t, want %t", j.IsReported, test.isReported)
			}
		})
	}
}

func TestWhatWasOnlySupposedIsNotForgotten(t *testing.T) {
	c := newCluster(Set{queue("q", "")}, Set{group("g", "q")})
	c.TakeForgotten()
	c.Apply(Set{pod("p", in("g"))}, Delete{pod("p", in("g"))})
	if err := c.Suppose(group("new", "q"), nil, func() {}, func(*cluster.Job) {}); err != nil {
		t.Fatal(err)
	}
	if got := forgottenNames(c); !slices.Equal(got, []string{"pod p"}) {
		t.Errorf("forgotten are %v, want the pod that was gone before", got)
	}
}
