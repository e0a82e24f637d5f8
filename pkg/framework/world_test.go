package framework_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

var now = fixture.Birth.Add(time.Hour)

// policyOf is a policy with these plugins, tier by tier. Those whose names are in off have the switch off.
func policyOf(t *testing.T, off map[string]conf.Switch, tiers ...[]framework.Plugin) *framework.Policy {
	t.Helper()
	configuration := &conf.Configuration{}
	var factories []framework.PluginFactory
	for _, tier := range tiers {
		var entries []conf.Plugin
		for _, plugin := range tier {
			factories = append(factories, framework.PluginFactory{Name: plugin.Name(),
				New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return plugin, nil }})
			entry := conf.Plugin{Name: plugin.Name()}
			if which, ok := off[plugin.Name()]; ok {
				entry.Switches = entry.Switches.With(which, false)
			}
			entries = append(entries, entry)
		}
		configuration.Tiers = append(configuration.Tiers, conf.Tier{Plugins: entries})
	}
	policy, err := framework.NewRegistry(nil, factories).Build(configuration)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// open opens a session on a model of these objects.
func open(policy *framework.Policy, objects ...runtime.Object) *framework.Session {
	c := cluster.New(cluster.Options{SchedulerNames: []string{"volcano"}})
	c.Apply(cluster.Set{Object: fixture.Queue("default")})
	for _, object := range objects {
		c.Apply(cluster.Set{Object: object})
	}
	return framework.Open(c, policy, nil, now)
}

// gangs are as many jobs of two pods each, j0 with j0-0 and j0-1 and so on, and two nodes.
func gangs(count int) []runtime.Object {
	objects := []runtime.Object{fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8")}
	for i := range count {
		name := fmt.Sprintf("j%d", i)
		objects = append(objects, fixture.Group(name, "default", 2))
		for k := range 2 {
			objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, k), fixture.In(name), fixture.As("worker", k)))
		}
	}
	return objects
}

// named is the part that all plugins here share.
type named string

func (n named) Name() string { return string(n) }

// door is a door keeper that always gives the same answer.
type door struct {
	named
	vote framework.Vote
}

func (d door) MayEnqueue(*cluster.Job) (framework.Vote, *verdict.Verdict) {
	if d.vote != framework.Reject {
		return d.vote, nil
	}
	return d.vote, refusal(d.Name())
}

func refusal(who string) *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.Refused, Subject: who, Help: verdict.HelpQueue}
}

// order puts jobs, tasks and queues in an order, by the sign of a number for each name.
type order struct {
	named
	rank map[string]int
}

func (o order) CompareJobs(a, b *cluster.Job) int {
	return o.rank[a.ID.Name] - o.rank[b.ID.Name]
}

func (o order) CompareQueues(a, b *cluster.Queue) int { return o.rank[a.Name] - o.rank[b.Name] }

func (o order) CompareTasks(a, b *cluster.Task) int {
	return o.rank[a.Key().Name] - o.rank[b.Key().Name]
}

// limit says no to everything, in its own name, unless it is lenient.
type limit struct {
	named
	lenient bool
}

func (l limit) answer() *verdict.Verdict {
	if l.lenient {
		return nil
	}
	return refusal(l.Name())
}

func (l limit) Overused(*cluster.Queue) *verdict.Verdict                   { return l.answer() }
func (l limit) MayAllocate(*cluster.Queue, *cluster.Task) *verdict.Verdict { return l.answer() }
func (l limit) ValidateJob(*cluster.Job) *verdict.Verdict                  { return l.answer() }
func (l limit) IsReady(*cluster.Job) bool                                  { return l.lenient }

// follower knows what is placed, from what it is told alone.
type follower struct {
	named
	placed map[string]string
	told   []string
}

func (f *follower) TaskPlaced(t *cluster.Task) {
	f.placed[t.Key().Name] = t.Node.Name
	f.told = append(f.told, "+"+t.Key().Name)
}

func (f *follower) TaskTakenBack(t *cluster.Task) {
	delete(f.placed, t.Key().Name)
	f.told = append(f.told, "-"+t.Key().Name)
}
