package harness

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// TB is what tests, benchmarks and property tests have in common.
type TB interface {
	Helper()
	Errorf(format string, arguments ...any)
	Fatalf(format string, arguments ...any)
}

// Start is the time at which a model begins: an hour after its objects were created.
var Start = fixture.Birth.Add(time.Hour)

// ClusterOptions are those of every model: it schedules the pods of "volcano".
func ClusterOptions() cache.Options {
	return cache.Options{SchedulerNames: []string{"volcano"}}
}

// Model is a cluster with a policy and a clock.
type Model struct {
	*cache.Cache
	Policy *framework.Policy
	// Now is the time of the next session.
	Now time.Time
	// Engine and Outlook place pods on what is free and on what will be free. They are nil without [Model.Placing].
	Engine, Outlook *placement.Engine
	// Planned are the plans that the last [Model.Run] made, "a-0 for b" of each: the pods to evict, and for which job.
	Planned []string

	tb TB
}

// On is a model on a cluster that exists.
func On(tb TB, c *cache.Cache, policy *framework.Policy) *Model {
	return &Model{Cache: c, Policy: policy, Now: Start, tb: tb}
}

// ForPolicy is an empty model under a policy.
func ForPolicy(tb TB, policy *framework.Policy) *Model {
	m := On(tb, cache.New(ClusterOptions()), policy)
	m.UseKeys(&policy.Keys)
	return m
}

// ForPlugin is an empty model under one plugin, with these arguments, a YAML mapping or "", and these switches on
// in addition to those that are on anyway.
func ForPlugin(tb TB, factory framework.PluginFactory, arguments string, on ...conf.Switch) *Model {
	tb.Helper()
	return ForPlugins(tb, Entry{Factory: factory, Arguments: arguments, On: on})
}

// Entry is a plugin as a configuration names it.
type Entry struct {
	Factory   framework.PluginFactory
	Arguments string        // a YAML mapping, or ""
	On        []conf.Switch // that are on in addition to those that are on anyway
}

// ForPlugins is an empty model under plugins in one tier.
func ForPlugins(tb TB, entries ...Entry) *Model {
	tb.Helper()
	tier := conf.Tier{}
	var factories []framework.PluginFactory
	for _, e := range entries {
		parsed, err := conf.ParseArguments([]byte(e.Arguments), e.Factory.Spec)
		if err != nil {
			tb.Fatalf("%v", err)
		}
		plugin := conf.Plugin{Name: e.Factory.Name, Arguments: parsed}
		for _, which := range e.On {
			plugin.Switches = plugin.Switches.With(which, true)
		}
		tier.Plugins = append(tier.Plugins, plugin)
		factories = append(factories, e.Factory)
	}
	return ForPolicy(tb, Build(tb, &conf.Configuration{Tiers: []conf.Tier{tier}}, nil, factories...))
}

// ForActions is a model under these actions and these plugins in one tier, with the queue default and with placement.
func ForActions(tb TB, actions []framework.ActionFactory, plugins ...framework.Plugin) *Model {
	tb.Helper()
	configuration := &conf.Configuration{Tiers: []conf.Tier{{}}, ActionArguments: map[string]conf.Arguments{}}
	for _, factory := range actions {
		configuration.Actions = append(configuration.Actions, factory.Name)
		configuration.ActionArguments[factory.Name] = factory.Spec.Defaults()
	}
	var factories []framework.PluginFactory
	for _, plugin := range plugins {
		factories = append(factories, Made(plugin))
		configuration.Tiers[0].Plugins = append(configuration.Tiers[0].Plugins, conf.Plugin{Name: plugin.Name()})
	}
	return ForPolicy(tb, Build(tb, configuration, actions, factories...)).Placing().Set(fixture.Queue("default"))
}

// Made is the factory of a plugin that is made already.
func Made(plugin framework.Plugin) framework.PluginFactory {
	return framework.PluginFactory{Name: plugin.Name(),
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return plugin, nil }}
}

// Build makes a policy of a configuration.
func Build(tb TB, configuration *conf.Configuration, actions []framework.ActionFactory, plugins ...framework.PluginFactory) *framework.Policy {
	tb.Helper()
	policy, err := framework.NewRegistry(actions, plugins).Build(configuration)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return policy
}

// Use sets the compatibility switches.
func (m *Model) Use(c conf.Compatibility) *Model {
	m.Policy.Configuration.Compatibility = c
	return m
}

// Placing adds the placement engines.
func (m *Model) Placing() *Model {
	m.tb.Helper()
	var err error
	if m.Engine, err = placer.New(m.Cluster, m.Policy); err != nil {
		m.tb.Fatalf("%v", err)
	}
	if m.Outlook, err = placer.NewOutlook(m.Cluster, m.Policy); err != nil {
		m.tb.Fatalf("%v", err)
	}
	return m
}

// Set shows objects to the scheduler as a watch would; each thing is an object or a list of them.
func (m *Model) Set(things ...any) *Model {
	m.tb.Helper()
	for _, thing := range things {
		switch thing := thing.(type) {
		case runtime.Object:
			m.Apply(cache.Set{Object: thing})
		case []runtime.Object:
			for _, object := range thing {
				m.Apply(cache.Set{Object: object})
			}
		case []any:
			m.Set(thing...)
		default:
			m.tb.Fatalf("a %T is no object", thing)
		}
	}
	return m
}

// Remove deletes objects.
func (m *Model) Remove(objects ...runtime.Object) *Model {
	for _, object := range objects {
		m.Apply(cache.Delete{Object: object})
	}
	return m
}

// Measure shows how busy a node is, in percent.
func (m *Model) Measure(node string, at time.Time, cpu, memory float64) *Model {
	const perPercent = 10_000 // loads are in millionths
	m.Apply(cache.Measured{Node: node, At: at, CPU: int64(cpu * perPercent), Memory: int64(memory * perPercent)})
	return m
}

// Gang adds a PodGroup that was admitted, with as many pods, of which a minimum must start together.
func (m *Model) Gang(name, queue string, minimum, size int, request string) *Model {
	return m.Set(fixture.Gang(name, queue, minimum, size, fixture.Asks(request)))
}

// Terminate begins to delete pods, with thirty seconds to end.
func (m *Model) Terminate(names ...string) *Model {
	m.tb.Helper()
	for _, name := range names {
		p := m.PodNamed(name)
		end := metav1.NewTime(m.Now.Add(30 * time.Second))
		p.DeletionTimestamp = &end
		m.Set(p)
	}
	return m
}

// RemovePods removes pods.
func (m *Model) RemovePods(names ...string) *Model {
	m.tb.Helper()
	for _, name := range names {
		m.Remove(m.PodNamed(name))
	}
	return m
}

// StartPods makes pods run that were bound.
func (m *Model) StartPods(binds []decision.Bind) *Model {
	m.tb.Helper()
	for _, b := range binds {
		p := m.PodNamed(b.Pod.Name)
		p.Spec.NodeName, p.Status.Phase = b.Node, corev1.PodRunning
		m.Set(p)
	}
	return m
}

// JobNamed returns a job, which must exist.
func (m *Model) JobNamed(name string) *cluster.Job {
	m.tb.Helper()
	j := m.Job(cluster.GroupID(fixture.Key(name)))
	if j == nil {
		m.tb.Fatalf("there is no job %s", name)
	}
	return j
}

// TaskNamed returns a task, which must exist.
func (m *Model) TaskNamed(name string) *cluster.Task {
	m.tb.Helper()
	t := m.Task(fixture.Key(name))
	if t == nil {
		m.tb.Fatalf("there is no task %s", name)
	}
	return t
}

// NodeNamed returns a node, which must exist.
func (m *Model) NodeNamed(name string) *cluster.Node {
	m.tb.Helper()
	n := m.Node(name)
	if n == nil {
		m.tb.Fatalf("there is no node %s", name)
	}
	return n
}

// PodNamed returns a copy of a pod, which must exist.
func (m *Model) PodNamed(name string) *corev1.Pod {
	m.tb.Helper()
	return m.TaskNamed(name).Pod.DeepCopy()
}

// Verdict returns why a job waits, nil if nothing prevents it.
func (m *Model) Verdict(name string) *verdict.Verdict {
	m.tb.Helper()
	return m.JobNamed(name).Verdict
}

// Code returns the code of the verdict, "" if there is none.
func (m *Model) Code(name string) verdict.Code {
	m.tb.Helper()
	if v := m.Verdict(name); v != nil {
		return v.Code
	}
	return ""
}

// Why returns the code and the sentence of the verdict, "" if there is none.
func (m *Model) Why(name string) string {
	m.tb.Helper()
	if v := m.Verdict(name); v != nil {
		return string(v.Code) + ": " + v.Sentence()
	}
	return ""
}

// Check fails the test if the totals of the model are wrong.
func (m *Model) Check() *Model {
	m.tb.Helper()
	for _, problem := range m.Audit() {
		m.tb.Errorf("audit: %s", problem)
	}
	return m
}

// Describe writes a verdict in its parts, and not as the sentence that users read: "OverCapability q: cpu: needs 2, has
// 1, short by 1; detail". Nil is "".
func Describe(v *verdict.Verdict) string {
	if v == nil {
		return ""
	}
	parts := []string{strings.TrimSpace(string(v.Code) + " " + v.Subject)}
	for _, s := range v.Shortages {
		parts = append(parts, s.String())
	}
	text := strings.Join(parts, ": ")
	if v.Detail != "" {
		text += "; " + v.Detail
	}
	return text
}

// Dump lists what the model has of nodes, queues and jobs, for comparing a model with itself later.
func (m *Model) Dump() string {
	var b strings.Builder
	for _, n := range m.Nodes() {
		fmt.Fprintf(&b, "node %s used %v releasing %v promised %v\n", n.Name, n.Used, n.Releasing, n.Promised)
	}
	for _, q := range m.Queues() {
		fmt.Fprintf(&b, "queue %s %v %v\n", q.Name, q.Own, q.Subtree)
	}
	for _, j := range m.Jobs() {
		fmt.Fprintf(&b, "job %s %s %v plan %v\n", j.ID.Name, j.Phase, j.Usage, j.Plan)
		for _, t := range j.Tasks() {
			node := ""
			if t.Node != nil {
				node = t.Node.Name
			}
			fmt.Fprintf(&b, "  %s %s %s\n", t.Pod.Name, t.Status, node)
		}
	}
	return b.String()
}
