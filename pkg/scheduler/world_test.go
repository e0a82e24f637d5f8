package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/test/fixture"
)

// world is a scheduler in front of a make-believe cluster: what it binds runs at once.
type world struct {
	tb        testing.TB
	scheduler *Scheduler
	now       time.Time
	groups    map[cluster.JobID]cluster.GroupStatus // as decided last
}

// newWorld returns a world with a configuration; "" is the default one.
func newWorld(tb testing.TB, configuration string, objects ...runtime.Object) *world {
	tb.Helper()
	w := &world{tb: tb, now: fixture.Birth.Add(time.Hour), groups: map[cluster.JobID]cluster.GroupStatus{}}
	w.scheduler = New(Options{Cluster: cluster.Options{SchedulerNames: []string{"volcano"}}})
	w.use(configuration)
	w.apply(fixture.Queue("default"))
	w.apply(objects...)
	return w
}

func (w *world) use(configuration string) {
	w.tb.Helper()
	registry := NewRegistry()
	parsed := conf.Default(registry.Catalogue())
	if configuration != "" {
		var err error
		if parsed, err = conf.Parse([]byte(configuration), registry.Catalogue()); err != nil {
			w.tb.Fatal(err)
		}
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		w.tb.Fatal(err)
	}
	if err := w.scheduler.Use(policy); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *world) apply(objects ...runtime.Object) {
	for _, object := range objects {
		w.scheduler.Cluster().Apply(cluster.Set{Object: object})
	}
}

// cycle runs one cycle and audits the model.
func (w *world) cycle() cluster.Decisions {
	w.tb.Helper()
	w.now = w.now.Add(time.Second)
	result := w.scheduler.Cycle(w.now, nil)
	if result.Panic != "" {
		w.tb.Fatal(result.Panic)
	}
	for _, problem := range w.scheduler.Cluster().Audit() {
		w.tb.Errorf("audit: %s", problem)
	}
	for _, g := range result.Decisions.Groups {
		w.groups[g.Job] = g
	}
	return result.Decisions
}

// settle runs cycles until pods that have not come by now are missed.
func (w *world) settle() {
	w.tb.Helper()
	for began := w.now; w.now.Sub(began) <= arrivalPause; {
		w.cycle()
	}
}

// run runs a cycle, lets what it binds run, and returns pod → node.
func (w *world) run() map[string]string {
	w.tb.Helper()
	bound := map[string]string{}
	for _, b := range w.cycle().Binds {
		bound[b.Pod.Name] = b.Node
		pod := w.scheduler.Cluster().Task(b.Pod).Pod.DeepCopy()
		pod.Spec.NodeName, pod.Status.Phase = b.Node, corev1.PodRunning
		w.apply(pod)
	}
	return bound
}

// condition returns what is stated of a job, "" if nothing is.
func (w *world) condition(name string) (reason, message string) {
	for _, c := range w.groups[fixture.Key(name)].Status.Conditions {
		return c.Reason, c.Message
	}
	return "", ""
}
