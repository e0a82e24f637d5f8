package stage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// Stage is a model, a policy and an engine.
type Stage struct {
	*cluster.Cluster
	tb      testing.TB
	policy  *framework.Policy
	actions map[string]framework.Action
	// Planned are the plans that the last Run made, "a-0 for b" of each: the pods that leave, and for which job.
	Planned []string
	placer  framework.Placer
	outlook framework.Outlook
}

// New returns a stage with these actions in the pipeline and these plugins in one tier.
func New(tb testing.TB, actions []framework.ActionFactory, plugins ...framework.Plugin) *Stage {
	tb.Helper()
	s := &Stage{Cluster: cluster.New(cluster.Options{SchedulerNames: []string{"volcano"}}), tb: tb, actions: map[string]framework.Action{}}
	configuration := &conf.Configuration{Tiers: []conf.Tier{{}}, ActionArguments: map[string]conf.Arguments{}}
	for _, factory := range actions {
		configuration.Actions = append(configuration.Actions, factory.Name)
		configuration.ActionArguments[factory.Name] = factory.Spec.Defaults()
	}
	var factories []framework.PluginFactory
	for _, plugin := range plugins {
		factories = append(factories, framework.PluginFactory{Name: plugin.Name(),
			New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return plugin, nil }})
		configuration.Tiers[0].Plugins = append(configuration.Tiers[0].Plugins, conf.Plugin{Name: plugin.Name()})
	}
	var err error
	if s.policy, err = framework.NewRegistry(actions, factories).Build(configuration); err != nil {
		tb.Fatal(err)
	}
	for _, action := range s.policy.Actions {
		s.actions[action.Name()] = action
	}
	if s.placer, err = placement.New(s.Cluster, s.policy); err != nil {
		tb.Fatal(err)
	}
	if s.outlook, err = placement.NewOutlook(s.Cluster, s.policy); err != nil {
		tb.Fatal(err)
	}
	return s.Set(fixture.Queue("default"))
}

// Set applies objects, and returns the stage.
func (s *Stage) Set(objects ...runtime.Object) *Stage {
	for _, object := range objects {
		s.Apply(cluster.Set{Object: object})
	}
	return s
}

// Gang adds a PodGroup that was admitted, with as many pods, of which minimum must start together.
func (s *Stage) Gang(name, queue string, minimum, size int, asks string) *Stage {
	s.Set(fixture.Group(name, queue, int32(minimum)))
	for i := range size {
		s.Set(fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i), fixture.Asks(asks)))
	}
	return s
}

// Run runs actions in a session of their own and returns the names of the pods that they bind, in order. The totals of the
// model must be right afterwards, and no transaction open.
func (s *Stage) Run(names ...string) []string {
	s.tb.Helper()
	session := framework.NewSession(s.Cluster, s.policy, s.placer, fixture.Birth.Add(time.Hour))
	session.Outlook = s.outlook
	session.Open()
	s.Planned = nil
	for _, name := range names {
		session.Run(s.actions[name])
	}
	if s.Mark() != 0 || session.Begin().Placed() != 0 {
		s.tb.Error("a transaction is left open")
	}
	for _, problem := range s.Audit() {
		s.tb.Error(problem)
	}
	for _, planned := range session.Plans {
		s.Planned = append(s.Planned, tell(planned))
	}
	var bound []string
	for _, b := range session.Binds {
		bound = append(bound, b.Pod.Name)
	}
	return bound
}

func tell(planned *framework.Planned) string {
	var words []string
	for _, e := range planned.Evictions {
		words = append(words, e.Pod.Name)
	}
	if j := planned.Plan.Job; j != nil {
		words = append(words, "for", j.ID.Name)
	}
	return strings.Join(words, " ")
}

// Verdict returns why a job waits, nil if nothing stands in its way.
func (s *Stage) Verdict(name string) *verdict.Verdict {
	s.tb.Helper()
	j := s.Job(fixture.Key(name))
	if j == nil {
		s.tb.Fatalf("there is no job %s", name)
	}
	return j.Verdict
}

// Code returns the code of the verdict, "" if there is none.
func (s *Stage) Code(name string) verdict.Code {
	s.tb.Helper()
	if v := s.Verdict(name); v != nil {
		return v.Code
	}
	return ""
}

// Gang starts a job once its minimum is placed, as every configuration in use has it.
type Gang struct{}

// Name is the name in the configuration.
func (Gang) Name() string { return "gang" }

// IsReady reports whether the minimum is placed.
func (Gang) IsReady(j *cluster.Job) bool { return j.Lacks() == 0 }

// Limits keeps queues within numbers of pods, and orders queues and jobs by name, backwards if asked.
type Limits struct {
	Pods            map[string]int // what each queue may hold; absent means any number
	Overuses        map[string]int // from how many on a queue has enough
	AdmissionLimits map[string]int // how many pods a queue lets in by minResources, beside what is booked
	Backwards       bool
	Asked           []string // which jobs knocked
}

// Name is the name in the configuration.
func (*Limits) Name() string { return "limits" }

func held(q *cluster.Queue) int {
	return int(q.Own.Allocated.At(resources.Pods))
}

func refusal(q *cluster.Queue, code verdict.Code) *verdict.Verdict {
	return &verdict.Verdict{Code: code, Subject: q.Name, Help: verdict.HelpQueue}
}

// MayAllocate refuses what is beyond Pods.
func (l *Limits) MayAllocate(q *cluster.Queue, _ *cluster.Task) *verdict.Verdict {
	if limit, ok := l.Pods[q.Name]; ok && held(q) >= limit {
		return refusal(q, verdict.OverCapability)
	}
	return nil
}

// Overused refuses what is beyond Overuses.
func (l *Limits) Overused(q *cluster.Queue) *verdict.Verdict {
	if limit, ok := l.Overuses[q.Name]; ok && held(q) >= limit {
		return refusal(q, verdict.OverShare)
	}
	return nil
}

// MayEnqueue refuses what is beyond AdmissionLimits.
func (l *Limits) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	l.Asked = append(l.Asked, j.ID.Name)
	limit, ok := l.AdmissionLimits[j.Queue.Name]
	if ok && j.MinResources.At(resources.Pods)+j.Queue.Own.Inqueue.At(resources.Pods) > int64(limit) {
		return framework.Reject, refusal(j.Queue, verdict.OverCommitted)
	}
	return framework.Permit, nil
}

// CompareJobs orders by name.
func (l *Limits) CompareJobs(a, b *cluster.Job) int {
	return l.sign() * cluster.CompareNames(a.ID, b.ID)
}

// CompareQueues orders by how much a queue holds, then by name.
func (l *Limits) CompareQueues(a, b *cluster.Queue) int {
	if c := held(a) - held(b); c != 0 {
		return c
	}
	return l.sign() * cluster.CompareQueues(a, b)
}

func (l *Limits) sign() int {
	if l.Backwards {
		return -1
	}
	return 1
}
