package metrics

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// policyOf is the policy of a configuration.
func policyOf(t *testing.T, text string) *framework.Policy {
	t.Helper()
	registry := scheduler.NewRegistry()
	configuration, err := conf.Parse([]byte(text), registry.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := registry.Build(configuration)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// running is a scheduler under a policy in a cluster of one node, and its metrics, which time what it times.
type running struct {
	*testing.T
	*Metrics
	scheduler *scheduler.Scheduler
	now       time.Time
}

func run(t *testing.T, plugins ...string) *running {
	t.Helper()
	m := New()
	r := &running{T: t, Metrics: m, now: fixture.Birth.Add(time.Hour), scheduler: scheduler.New(scheduler.Options{
		Cluster: cache.Options{SchedulerNames: []string{"volcano"}}, Observe: m.Observe})}
	text := "actions: enqueue, allocate, backfill\ntiers:\n- plugins:\n"
	for _, plugin := range append([]string{"priority", "gang", "predicates"}, plugins...) {
		text += fmt.Sprintf("  - name: %s\n", plugin)
	}
	if err := r.scheduler.Use(policyOf(t, text)); err != nil {
		t.Fatal(err)
	}
	return r
}

// cycle does what the program does around a cycle a second later.
func (r *running) cycle(events ...cache.Event) {
	r.Helper()
	r.now = r.now.Add(time.Second)
	result := r.scheduler.Cycle(r.now, events)
	if result.Panic != "" {
		r.Fatal(result.Panic)
	}
	r.Placed(r.scheduler.Cluster(), result.Decisions.Binds, r.now)
	r.Cycle(false, result.Unplaced)
	r.Totals(r.scheduler.Cluster(), r.scheduler.Policy())
	reader, err := r.scheduler.Reader()
	if err != nil {
		r.Fatal(err)
	}
	r.PendingWorkloads(reader)
}

func (r *running) expect(prefix string, want map[string]string) {
	r.Helper()
	expect(r.T, r.Metrics, prefix, want)
}

func TestAJobIsTimedFromItsPodGroupUntilItsPodsHaveNodes(t *testing.T) {
	r := run(t)
	group := fixture.Group("sim", "q", 2)
	created := group.CreationTimestamp.Time
	pod := func(name string) cache.Event {
		return cache.Set{Object: fixture.Pod(name, fixture.In("sim"), fixture.Asks("cpu=1"))}
	}
	r.cycle(cache.Set{Object: fixture.Queue("q")}, cache.Set{Object: fixture.Node("n", "cpu=8 memory=8Gi")}, cache.Set{Object: group})
	const duration, of = "volcano_e2e_job_scheduling_duration", `{job_name="sim",job_namespace="work",queue="q"}`
	r.expect("volcano_e2e_job_scheduling_start_time", map[string]string{"volcano_e2e_job_scheduling_start_time" + of: exposed(created.Unix())})
	r.expect("volcano_e2e_job_scheduling_last_time", map[string]string{})
	r.expect(duration, map[string]string{})

	r.cycle(pod("a"), pod("b"))
	first := r.now.Sub(created).Milliseconds()
	r.expect(duration, map[string]string{duration + of: exposed(first)})
	r.expect("volcano_e2e_job_scheduling_latency_milliseconds_sum", map[string]string{
		"volcano_e2e_job_scheduling_latency_milliseconds_sum": exposed(first),
	})
	assumed := `volcano_task_scheduling_latency_milliseconds_count{stage="Assumed"}`
	r.expect("volcano_task_scheduling_latency_milliseconds_count", map[string]string{assumed: "2"})

	// What comes later moves the end, and is no start.
	r.cycle(pod("c"))
	r.expect(duration, map[string]string{"volcano_e2e_job_scheduling_duration" + of: exposed(first + 1000)})
	const timed = "volcano_e2e_job_scheduling_latency_milliseconds_count"
	r.expect(timed, map[string]string{timed: "1"})

	r.cycle(cache.Delete{Object: group})
	r.expect("volcano_e2e_job_scheduling_start_time", map[string]string{})
	r.expect(duration, map[string]string{})
	if len(r.jobs.placed) > 0 {
		t.Errorf("the job is gone, and %v is still remembered", r.jobs.placed)
	}
}

// exposed is how Prometheus writes a number.
func exposed(number int64) string { return strconv.FormatFloat(float64(number), 'g', -1, 64) }

func TestAJobThatStartedBeforeTheProcessIsNotTimed(t *testing.T) {
	r := run(t)
	r.cycle(cache.Set{Object: fixture.Queue("q")}, cache.Set{Object: fixture.Node("n", "cpu=8 memory=8Gi")},
		cache.Set{Object: fixture.Group("sim", "q", 1)}, cache.Set{Object: fixture.Pod("a", fixture.In("sim"), fixture.On("n"))},
		cache.Set{Object: fixture.Pod("b", fixture.In("sim"))})
	const timed = "volcano_e2e_job_scheduling_latency_milliseconds_count"
	r.expect(timed, map[string]string{timed: "0"})
}

func TestAttemptsInVainAreCountedOncePerLook(t *testing.T) {
	r := run(t)
	r.cycle(cache.Set{Object: fixture.Queue("q")}, cache.Set{Object: fixture.Node("n", "cpu=1 memory=8Gi")},
		cache.Set{Object: fixture.Group("sim", "q", 2)},
		cache.Set{Object: fixture.Pod("a", fixture.In("sim"), fixture.Asks("cpu=1"))},
		cache.Set{Object: fixture.Pod("b", fixture.In("sim"), fixture.Asks("cpu=1"))})
	want := map[string]string{`volcano_job_retry_counts{job_id="work/sim"}`: "1"}
	attempts := map[string]string{`volcano_schedule_attempts_total{result="unschedulable"}`: "2"}
	r.expect("volcano_job_retry_counts", want)
	r.expect("volcano_schedule_attempts_total", attempts)
	r.cycle() // nothing has happened that could help, so the job is not tried
	r.expect("volcano_job_retry_counts", want)
	r.expect("volcano_schedule_attempts_total", attempts)
	r.cycle(cache.Set{Object: fixture.Node("m", "cpu=500m memory=8Gi")}) // nor could so small a node
	r.expect("volcano_job_retry_counts", want)
	r.cycle(cache.Set{Object: fixture.Pod("b", fixture.In("sim"), fixture.Asks("cpu=800m"))})
	r.expect("volcano_job_retry_counts", map[string]string{`volcano_job_retry_counts{job_id="work/sim"}`: "2"})
	r.expect("volcano_schedule_attempts_total", map[string]string{`volcano_schedule_attempts_total{result="unschedulable"}`: "4"})
}

func TestSharesOfJobsAreShownIfTheyAreAsked(t *testing.T) {
	for plugin, want := range map[string]map[string]string{
		"drf":     {`volcano_job_share{job_id="sim",job_ns="work"}`: "0.25"},
		"binpack": {},
	} {
		r := run(t, plugin)
		r.cycle(cache.Set{Object: fixture.Queue("q")}, cache.Set{Object: fixture.Node("n", "cpu=8 memory=8Gi")},
			cache.Set{Object: fixture.Group("sim", "q", 1)},
			cache.Set{Object: fixture.Pod("a", fixture.In("sim"), fixture.On("n"), fixture.Asks("cpu=2 memory=1Gi"))})
		r.expect("volcano_job_share", want)
	}
}

func TestAQueueIsOverusedWhenItHasAllThatItDeserves(t *testing.T) {
	r := run(t, "capacity")
	queue := fixture.Queue("q")
	queue.Spec.Deserved, queue.Spec.Guarantee.Resource = fixture.List("cpu=2"), fixture.List("cpu=1")
	other := fixture.Queue("other")
	other.Spec.Guarantee.Resource = fixture.List("cpu=3")
	pod := func(name string) cache.Event {
		return cache.Set{Object: fixture.Pod(name, fixture.In("sim"), fixture.On("n"), fixture.Asks("cpu=1"))}
	}
	r.cycle(cache.Set{Object: queue}, cache.Set{Object: other}, cache.Set{Object: fixture.Node("n", "cpu=8 memory=8Gi")},
		cache.Set{Object: fixture.Group("sim", "q", 1)}, pod("a"))
	overused := func() string {
		return shown(t, r.Metrics, "volcano_queue_overused")[`volcano_queue_overused{queue_name="q"}`]
	}
	if overused() != "0" {
		t.Errorf("half of what the queue deserves is overuse: %s", overused())
	}
	r.cycle(pod("b"))
	if overused() != "1" {
		t.Errorf("all that the queue deserves is no overuse: %s", overused())
	}
	// Eight, of which three are kept for the other.
	const room = `volcano_queue_real_capacity_milli_cpu{queue_name="q"}`
	if got := shown(t, r.Metrics, room)[room]; got != "5000" {
		t.Errorf("the queue may have %s thousandths of a CPU, want 5000", got)
	}
}
