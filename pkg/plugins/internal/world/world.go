package world

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// World is a model and a policy of one plugin.
type World struct {
	*cluster.Cluster
	tb     testing.TB
	policy *framework.Policy
}

// New returns a world in which a plugin has these arguments, a YAML mapping or "", and these switches on beside those
// that are on anyway.
func New(tb testing.TB, factory framework.PluginFactory, arguments string, on ...conf.Switch) *World {
	tb.Helper()
	parsed, err := conf.ParseArguments([]byte(arguments), factory.Spec)
	if err != nil {
		tb.Fatal(err)
	}
	entry := conf.Plugin{Name: factory.Name, Arguments: parsed}
	for _, which := range on {
		entry.Switches = entry.Switches.With(which, true)
	}
	registry := framework.NewRegistry(nil, []framework.PluginFactory{factory})
	policy, err := registry.Build(&conf.Configuration{Tiers: []conf.Tier{{Plugins: []conf.Plugin{entry}}}})
	if err != nil {
		tb.Fatal(err)
	}
	w := &World{Cluster: cluster.New(cluster.Options{SchedulerNames: []string{"volcano"}}), tb: tb, policy: policy}
	w.UseKeys(&policy.Keys)
	return w
}

// Switch sets the compatibility switches, and returns the world.
func (w *World) Switch(c conf.Compatibility) *World {
	w.policy.Configuration.Compatibility = c
	return w
}

// Set applies objects, and returns the world.
func (w *World) Set(objects ...runtime.Object) *World {
	for _, object := range objects {
		w.Apply(cluster.Set{Object: object})
	}
	return w
}

// Remove deletes an object.
func (w *World) Remove(object runtime.Object) { w.Apply(cluster.Delete{Object: object}) }

// Open opens a session, with nobody to find nodes.
func (w *World) Open() *framework.Session {
	return framework.Open(w.Cluster, w.policy, nil, fixture.Birth.Add(time.Hour))
}

// JobNamed returns a job, which must exist.
func (w *World) JobNamed(name string) *cluster.Job {
	w.tb.Helper()
	j := w.Job(fixture.Key(name))
	if j == nil {
		w.tb.Fatalf("there is no job %s", name)
	}
	return j
}

// TaskNamed returns a task, which must exist.
func (w *World) TaskNamed(name string) *cluster.Task {
	w.tb.Helper()
	t := w.Task(fixture.Key(name))
	if t == nil {
		w.tb.Fatalf("there is no task %s", name)
	}
	return t
}

// Tell says what a verdict says, as its parts and not as the sentence users read: "OverCapability q: cpu: needs 2, has 1,
// short by 1; detail". Nil is "".
func Tell(v *verdict.Verdict) string {
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

// Check fails the test if the totals of the model are wrong.
func (w *World) Check() {
	w.tb.Helper()
	for _, problem := range w.Audit() {
		w.tb.Error(problem)
	}
}
