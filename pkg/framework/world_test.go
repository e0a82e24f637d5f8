package framework_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

var now = fixture.Birth.Add(time.Hour)

// policyOf returns a policy with these plugins, tier by tier. Plugins whose names are in off have the switch off.
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
	s, _ := openCache(policy, objects...)
	return s
}

// openCache opens a session on a model of these objects, and returns what keeps the model too.
func openCache(policy *framework.Policy, objects ...runtime.Object) (*framework.Session, *cache.Cache) {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	c.Apply(cache.Set{Object: fixture.Queue("default")})
	for _, object := range objects {
		c.Apply(cache.Set{Object: object})
	}
	return framework.Open(c, policy, nil, now), c
}

// gangs are two nodes and so many jobs of two pods each: j0 with the pods j0-0 and j0-1, and so on.
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

// running makes j0 of gangs run on n0, so that its pods can be evicted.
func running(objects []runtime.Object) []runtime.Object {
	for _, object := range objects {
		if p, ok := object.(*corev1.Pod); ok && strings.HasPrefix(p.Name, "j0-") {
			fixture.On("n0")(p)
		}
	}
	return objects
}

// named is the name of a plugin.
type named string

func (n named) Name() string { return string(n) }

// enqueuer votes the same on the admission of every job.
type enqueuer struct {
	named
	vote framework.Vote
}

func (e enqueuer) MayEnqueue(*cluster.Job) (framework.Vote, *verdict.Verdict) {
	if e.vote != framework.Reject {
		return e.vote, nil
	}
	return e.vote, refusal(e.Name())
}

func refusal(who string) *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.Refused, Subject: who, Help: verdict.HelpQueue}
}

// order compares jobs, tasks and queues by the ranks of their names.
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

// limit refuses everything in its own name, unless it is lenient.
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

// observer knows from its calls alone which tasks count, and on which node.
type observer struct {
	named
	counts map[string]string
	told   []string
}

// counting returns the tasks of a model that count, with their nodes.
func counting(c *model.Cluster) map[string]string {
	counts := map[string]string{}
	for _, t := range tasks(c) {
		if t.Status.Counts() {
			counts[t.Key().Name] = t.Node.Name
		}
	}
	return counts
}

func (o *observer) OpenSession(s *framework.Session) { o.counts = counting(s.Cluster) }

func (o *observer) TaskMoved(t *cluster.Task) {
	delete(o.counts, t.Key().Name)
	if t.Status.Counts() {
		o.counts[t.Key().Name] = t.Node.Name
	}
	o.told = append(o.told, t.Key().Name+":"+t.Status.String())
}
