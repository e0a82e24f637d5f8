package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/internal/edge/plans"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/verdict"
)

// shown returns what a scrape shows under names with a prefix.
func shown(t *testing.T, m *Metrics, prefix string) map[string]string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("%d: %s", recorder.Code, recorder.Body)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for line := range strings.Lines(recorder.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, prefix) {
			values[name] = value
		}
	}
	return values
}

func expect(t *testing.T, m *Metrics, prefix string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, shown(t, m, prefix)); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

func list(cpu, memory, gpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		"example.com/gpu": resource.MustParse(gpu)}
}

// small is a queue with a job of which one pod runs and another waits.
func small() *cache.Cache {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, UID: "1"}
	}
	queue := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q", UID: "1"}, Spec: schedulingv1beta1.QueueSpec{
		Weight: 3, Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
	}}
	group := &schedulingv1beta1.PodGroup{ObjectMeta: meta("job"), Spec: schedulingv1beta1.PodGroupSpec{MinMember: 1, Queue: "q"}}
	c.Apply(cache.Set{Object: queue}, cache.Set{Object: group}, cache.Set{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "1"},
		Status: corev1.NodeStatus{Allocatable: list("8", "8Gi", "8")}}})
	for name, node := range map[string]string{"runs": "node", "waits": ""} {
		pod := &corev1.Pod{ObjectMeta: meta(name), Spec: corev1.PodSpec{SchedulerName: "volcano", NodeName: node,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("500m", "1Gi", "2")}}}}}
		pod.Annotations = map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: "job"}
		c.Apply(cache.Set{Object: pod})
	}
	c.Settle()
	return c
}

func TestVictimsOfAQueueThatIsGoneHaveNoSeries(t *testing.T) {
	m, c := New(), small()
	victim := cluster.JobID{Namespace: "default", Name: "job"}
	m.Plans(c.Cluster, []decision.PlanStart{{Evictions: []decision.Eviction{{VictimJob: victim, Rule: "J1"}, {VictimJob: cluster.JobID{Name: "gone"}, Rule: "J1"}}}}, nil)
	m.Totals(c.Cluster, nil)
	expect(t, m, "hekla_evictions_by_rule_total", map[string]string{
		`hekla_evictions_by_rule_total{queue="q",rule="J1"}`: "1", `hekla_evictions_by_rule_total{queue="",rule="J1"}`: "1"})
	c.Apply(cache.Delete{Object: c.Queue("q").Object})
	c.Settle()
	m.Totals(c.Cluster, nil)
	expect(t, m, "hekla_evictions_by_rule_total", map[string]string{`hekla_evictions_by_rule_total{queue="",rule="J1"}`: "1"})
}

// TestAResourceThatARequestInventsMakesNoSeriesOfOtherQueues makes a pod ask for a resource that no node and no queue
// names.
func TestAResourceThatARequestInventsMakesNoSeriesOfOtherQueues(t *testing.T) {
	m, c := New(), small()
	hostile := c.Task(types.NamespacedName{Namespace: "default", Name: "waits"}).Pod.Object()
	hostile.Name, hostile.UID = "hostile", "2"
	hostile.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/invented": resource.MustParse("3")}}}}
	c.Apply(cache.Set{Object: hostile}, cache.Set{Object: &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "2"}}})
	c.Settle()
	m.Totals(c.Cluster, nil)
	found := map[string]string{}
	for series, value := range shown(t, m, "volcano_queue_") {
		if strings.Contains(series, "example.com/invented") {
			found[series] = value
		}
	}
	if diff := cmp.Diff(map[string]string{`volcano_queue_request_scalar_resources{queue_name="q",resource="example.com/invented"}`: "3"}, found); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

func TestTotalsAreShownUnderVolcanosNames(t *testing.T) {
	m, c := New(), small()
	c.SetVerdict(c.Jobs()[0], &verdict.Verdict{Code: verdict.NotEnoughResources})
	m.Totals(c.Cluster, nil)
	expect(t, m, "volcano_queue_", map[string]string{
		`volcano_queue_allocated_milli_cpu{queue_name="q"}`:                                   "500",
		`volcano_queue_allocated_memory_bytes{queue_name="q"}`:                                "1.073741824e+09",
		`volcano_queue_allocated_scalar_resources{queue_name="q",resource="example.com/gpu"}`: "2",
		`volcano_queue_allocated_scalar_resources{queue_name="q",resource="pods"}`:            "1",
		`volcano_queue_capacity_milli_cpu{queue_name="q"}`:                                    "8000",
		`volcano_queue_request_milli_cpu{queue_name="q"}`:                                     "1000",
		`volcano_queue_request_memory_bytes{queue_name="q"}`:                                  "2.147483648e+09",
		`volcano_queue_request_scalar_resources{queue_name="q",resource="example.com/gpu"}`:   "4",
		`volcano_queue_request_scalar_resources{queue_name="q",resource="pods"}`:              "2",
		`volcano_queue_inqueue_milli_cpu{queue_name="q"}`:                                     "0",
		`volcano_queue_inqueue_memory_bytes{queue_name="q"}`:                                  "0",
		`volcano_queue_inqueue_scalar_resources{queue_name="q",resource="example.com/gpu"}`:   "0",
		`volcano_queue_inqueue_scalar_resources{queue_name="q",resource="pods"}`:              "0",
		`volcano_queue_weight{queue_name="q"}`:                                                "3",
	})
	expect(t, m, "volcano_unschedule_", map[string]string{
		`volcano_unschedule_job_count`:                        "1",
		`volcano_unschedule_task_count{job_id="default/job"}`: "1",
	})
}

func TestWhatIsGoneIsNotShownAnyMore(t *testing.T) {
	m, c := New(), small()
	m.Totals(c.Cluster, nil)
	c.Apply(cache.Delete{Object: c.Queue("q").Object})
	c.Settle()
	m.Totals(c.Cluster, nil)
	expect(t, m, "volcano_queue_", map[string]string{})
}

func TestBindingsAreCountedByResult(t *testing.T) {
	m := New()
	created := time.Now().Add(-time.Minute)
	for _, result := range []binder.Result{binder.Bound, binder.Bound, binder.Refused} {
		m.Bind(binder.Outcome{Result: result, Created: created, Prepared: time.Second, Took: 3 * time.Second})
	}
	m.Cycle(false, 7)
	expect(t, m, "hekla_binds_total", map[string]string{
		`hekla_binds_total{result="bound"}`: "2", `hekla_binds_total{result="refused"}`: "1", `hekla_binds_total{result="gone"}`: "0",
		`hekla_binds_total{result="elsewhere"}`: "0", `hekla_binds_total{result="unsent"}`: "0",
	})
	expect(t, m, "volcano_schedule_attempts_total", map[string]string{
		`volcano_schedule_attempts_total{result="scheduled"}`: "2", `volcano_schedule_attempts_total{result="error"}`: "1",
		`volcano_schedule_attempts_total{result="unschedulable"}`: "7",
	})
	expect(t, m, "volcano_scheduling_stage_duration_milliseconds_sum", map[string]string{
		`volcano_scheduling_stage_duration_milliseconds_sum{stage="PreBind"}`: "2000",
		`volcano_scheduling_stage_duration_milliseconds_sum{stage="Bind"}`:    "4000",
	})
}

func TestThePartsOfACycleAreTimed(t *testing.T) {
	m := New()
	for _, part := range [][2]string{{"cycle", ""}, {"open", ""}, {"action", "allocate"}, {"action", "allocate"}, {"plugin", "drf"},
		{"close", ""}} {
		m.Observe(part[0], part[1])()
	}
	for name, want := range map[string]string{
		"volcano_e2e_scheduling_latency_milliseconds_count":                                            "1",
		"volcano_open_session_duration_milliseconds_count":                                             "1",
		`volcano_plugin_scheduling_latency_milliseconds_count{OnSession="OnSessionOpen",plugin="drf"}`: "1",
		`volcano_action_scheduling_latency_milliseconds_count{action="allocate"}`:                      "2",
	} {
		if got := shown(t, m, name)[name]; got != want {
			t.Errorf("%s is %q, want %s", name, got, want)
		}
	}
}

func TestTheEdgeIsReadWhenAsked(t *testing.T) {
	m := New()
	waiting := 1
	m.Watch(func() intake.Stats { return intake.Stats{Waiting: waiting, Coalesced: 2} },
		func() edge.OutboxStats { return edge.OutboxStats{Waiting: 3, InFlight: 4, StatusesWaiting: 5} })
	for _, want := range []string{"1", "7"} {
		if got := shown(t, m, "hekla_inbox_objects")["hekla_inbox_objects"]; got != want {
			t.Errorf("%s objects wait, want %s", got, want)
		}
		waiting = 7
	}
	expect(t, m, "hekla_outbox_binds_", map[string]string{"hekla_outbox_binds_waiting": "3", "hekla_outbox_binds_in_flight": "4"})
}

func TestConfigurationsAreCounted(t *testing.T) {
	m := New()
	m.ConfigurationUsed()
	expect(t, m, "hekla_configuration_valid", map[string]string{"hekla_configuration_valid": "1"})
	m.ConfigurationRefused()
	expect(t, m, "hekla_configuration_", map[string]string{
		"hekla_configuration_valid": "0", "hekla_configuration_reload_failures_total": "1",
	})
}

func TestPlansAndEvictionsAreCounted(t *testing.T) {
	m, job := New(), cluster.JobID{Namespace: "default", Name: "job"}
	c, _ := model.New(nil)
	m.Plans(c, []decision.PlanStart{
		{Job: job, Action: "preempt", Scope: decision.BetweenJobs, Evictions: make([]decision.Eviction, 5)},
		{Job: job, Action: "example.com/reclaim", Scope: decision.BetweenQueues, Evictions: make([]decision.Eviction, 2)},
		{Job: job, Action: "preempt", Scope: decision.BetweenJobs},
		{Action: "shuffle", Evictions: make([]decision.Eviction, 3)},
	}, []decision.PlanEnd{{}})
	m.Eviction(plans.EvictionSent)
	expect(t, m, "volcano_pod_preemption_victims", map[string]string{"volcano_pod_preemption_victims": "2"})
	expect(t, m, "volcano_total_preemption_attempts", map[string]string{"volcano_total_preemption_attempts": "2"})
	expect(t, m, "volcano_eviction_transactions_total", map[string]string{
		`volcano_eviction_transactions_total{action="preempt"}`: "1", `volcano_eviction_transactions_total{action="example.com/reclaim"}`: "1",
		`volcano_eviction_transactions_total{action="shuffle"}`: "1",
	})
	expect(t, m, "volcano_total_reclaim_attempts", map[string]string{"volcano_total_reclaim_attempts": "1"})
	expect(t, m, "volcano_pod_reclaim_victims_sum", map[string]string{"volcano_pod_reclaim_victims_sum": "2"})
	expect(t, m, "hekla_plans_", map[string]string{"hekla_plans_started_total": "4", "hekla_plans_cancelled_total": "1"})
	if got := shown(t, m, "hekla_evictions_total"); got[`hekla_evictions_total{result="evicted"}`] != "1" || len(got) != len(plans.EvictionResults) {
		t.Errorf("shown: %v", got)
	}
}
