package loop

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// Loop is a scheduler on a model.
type Loop struct {
	*harness.Model
	Scheduler *scheduler.Scheduler
	// Result is what the last cycle came to.
	Result scheduler.Result
	// Groups are the statuses of PodGroups as decided last.
	Groups map[cluster.JobID]decision.GroupStatus

	tb harness.TB
}

// New returns a loop under a configuration, a YAML text; "" is the default one. The queue default exists.
func New(tb harness.TB, configuration string, extensions ...scheduler.Extension) *Loop {
	tb.Helper()
	return NewWith(tb, harness.ClusterOptions(), configuration, extensions...).Set(fixture.Queue("default"))
}

// NewWith returns a loop on an empty cluster with options.
func NewWith(tb harness.TB, options cache.Options, configuration string, extensions ...scheduler.Extension) *Loop {
	tb.Helper()
	s := scheduler.New(scheduler.Options{Cluster: options})
	l := &Loop{Model: harness.On(tb, s.Cache(), nil), Scheduler: s, Groups: map[cluster.JobID]decision.GroupStatus{}, tb: tb}
	return l.Configure(configuration, extensions...)
}

// Policy is the policy of a configuration, a YAML text; "" is the default one.
func Policy(configuration string, extensions ...scheduler.Extension) (*framework.Policy, error) {
	registry := scheduler.NewRegistry(extensions...)
	if configuration == "" {
		return registry.Build(conf.Default(registry.Catalogue()))
	}
	parsed, err := conf.Parse([]byte(configuration), registry.Catalogue())
	if err != nil {
		return nil, err
	}
	return registry.Build(parsed)
}

// Events returns the events that show objects.
func Events(objects []runtime.Object) []cache.Event {
	events := make([]cache.Event, len(objects))
	for i, o := range objects {
		events[i] = cache.Set{Object: o}
	}
	return events
}

// Configure puts a configuration in force from the next cycle on.
func (l *Loop) Configure(configuration string, extensions ...scheduler.Extension) *Loop {
	l.tb.Helper()
	policy, err := Policy(configuration, extensions...)
	if err != nil {
		l.tb.Fatalf("%v", err)
	}
	if err := l.Scheduler.Use(policy); err != nil {
		l.tb.Fatalf("%v", err)
	}
	l.Model.Policy = policy
	return l
}

// Set shows objects to the scheduler; each thing is an object or a list of them.
func (l *Loop) Set(things ...any) *Loop {
	l.tb.Helper()
	l.Model.Set(things...)
	return l
}

// Remove deletes objects.
func (l *Loop) Remove(objects ...runtime.Object) *Loop {
	l.Model.Remove(objects...)
	return l
}

// Terminate begins to delete pods.
func (l *Loop) Terminate(names ...string) *Loop {
	l.tb.Helper()
	l.Model.Terminate(names...)
	return l
}

// RemovePods removes pods.
func (l *Loop) RemovePods(names ...string) *Loop {
	l.tb.Helper()
	l.Model.RemovePods(names...)
	return l
}

// StartBound makes pods run that the last cycle bound.
func (l *Loop) StartBound() *Loop {
	l.tb.Helper()
	l.StartPods(l.Result.Decisions.Binds)
	return l
}

// Cycle runs a cycle a second after the one before, and returns what it decides.
func (l *Loop) Cycle() *decision.Decisions {
	l.tb.Helper()
	return l.CycleAfter(time.Second)
}

// CycleAfter runs a cycle so long after the one before.
func (l *Loop) CycleAfter(pause time.Duration) *decision.Decisions {
	l.tb.Helper()
	l.Now = l.Now.Add(pause)
	l.Result = l.Scheduler.Cycle(l.Now, nil)
	if l.Result.Panic != "" {
		l.tb.Fatalf("%s", l.Result.Panic)
	}
	l.Check()
	for _, g := range l.Result.Decisions.Groups {
		l.Groups[g.Job] = g
	}
	return &l.Result.Decisions
}

// CycleFor runs cycles until so much time has passed.
func (l *Loop) CycleFor(duration time.Duration) *Loop {
	l.tb.Helper()
	for began := l.Now; l.Now.Sub(began) <= duration; {
		l.Cycle()
	}
	return l
}

// Bind runs a cycle, starts the pods that it binds, and returns the node of each.
func (l *Loop) Bind() map[string]string {
	l.tb.Helper()
	bound := map[string]string{}
	for _, b := range l.Cycle().Binds {
		bound[b.Pod.Name] = b.Node
	}
	l.StartBound()
	return bound
}

// Rest runs cycles, and starts the pods that they bind, until two in a row decide nothing of pods.
func (l *Loop) Rest() *Loop {
	l.tb.Helper()
	const most = 50
	for quiet, cycles := 0, 0; quiet < 2; cycles++ {
		if d := l.Cycle(); len(d.Binds)+len(d.Plans)+len(d.Ended) > 0 {
			quiet = 0
		} else {
			quiet++
		}
		l.StartBound()
		if cycles > most {
			l.tb.Fatalf("after %d cycles there is no rest", most)
		}
	}
	return l
}

// Expect runs a cycle that must decide just this, as [Describe] writes it.
func (l *Loop) Expect(want string) *Loop {
	l.tb.Helper()
	if got := Describe(l.Cycle()); got != want {
		l.tb.Errorf("the cycle decides\n\t%s\nshould\n\t%s", got, want)
	}
	return l
}

// Condition returns the first condition that was decided of a job, "" if none was.
func (l *Loop) Condition(name string) (reason, message string) {
	for _, c := range l.Groups[cluster.GroupID(fixture.Key(name))].Status.Conditions {
		return c.Reason, c.Message
	}
	return "", ""
}

// Describe lists the decisions about pods, such as "t-0 is bound to n1", "the plan for t ends: why, v-0 stays, t-0
// waits", "v-0 leaves n1 for t by J1", "t-0 is nominated to n1".
func Describe(d *decision.Decisions) string {
	var parts []string
	say := func(format string, arguments ...any) { parts = append(parts, fmt.Sprintf(format, arguments...)) }
	for _, b := range d.Binds {
		say("%s is bound to %s", b.Pod.Name, b.Node)
	}
	for _, p := range d.Ended {
		text := fmt.Sprintf("the plan for %s ends: %s", p.Job.Name, p.Why)
		for _, s := range p.Spared {
			text += ", " + s.Pod.Name + " stays"
		}
		for _, n := range p.Nominations {
			text += ", " + n.Pod.Name + " waits"
		}
		parts = append(parts, text)
	}
	for _, p := range d.Plans {
		for _, e := range p.Evictions {
			past := ""
			if e.PastBudget {
				past = " past its budget"
			}
			say("%s leaves %s for %s by %s%s", e.Pod.Name, e.Node, e.For.Name, e.Rule, past)
		}
		for _, n := range p.Nominations {
			say("%s is nominated to %s", n.Pod.Name, n.Node)
		}
	}
	return strings.Join(parts, "; ")
}
