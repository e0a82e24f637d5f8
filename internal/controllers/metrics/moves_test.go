package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestWaitsAreMeasuredFromWhenAWorkloadWasQueued(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w", CreationTimestamp: metav1.NewTime(begin)}}
	w.Spec.QueueName = "q"
	step := func(edit func(w *v1beta2.Workload)) {
		before := w.DeepCopy()
		edit(w)
		m.WorkloadMoved(before, w)
	}
	reserve := func(at time.Duration) {
		step(func(w *v1beta2.Workload) {
			w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq"}
			conditions.Reserve(w, "cq", begin.Add(at))
		})
	}
	reserve(3 * time.Second)
	step(func(w *v1beta2.Workload) {
		w.Status.AdmissionChecks = []v1beta2.AdmissionCheckState{{Name: "budget"}}
		conditions.Admit(w, begin.Add(5*time.Second))
	})
	step(func(w *v1beta2.Workload) { // seen again, unchanged
		w.Labels = map[string]string{"a": "b"}
	})
	step(func(w *v1beta2.Workload) {
		at := begin.Add(100 * time.Second)
		conditions.Set(w, v1beta2.Preempted, true, v1beta2.ReasonInCohortReclamation, "… due to reclamation within the cohort; preemptor path: /all/team-a; preemptee path: /all/cq", at)
		conditions.Set(w, v1beta2.Evicted, true, v1beta2.Preempted, "", at)
		conditions.Set(w, v1beta2.QuotaReserved, false, "Pending", "", at)
		conditions.Set(w, v1beta2.Admitted, false, "NoReservation", "", at)
		w.Status.Admission = nil
	})
	reserve(110 * time.Second) // ten seconds after its eviction
	m.ClusterQueueShare("cq", "all", 250)
	m.ClusterQueueShare("cq", "other", 300)
	m.CohortShare("other", 0)
	const want = `
# HELP kueue_admitted_workloads_total Admissions.
# TYPE kueue_admitted_workloads_total counter
kueue_admitted_workloads_total{cluster_queue="cq"} 1
# HELP kueue_cluster_queue_weighted_share The weighted share of fair sharing, in thousandths.
# TYPE kueue_cluster_queue_weighted_share gauge
kueue_cluster_queue_weighted_share{cluster_queue="cq",cohort="other"} 300
# HELP kueue_local_queue_quota_reserved_workloads_total Reservations of quota.
# TYPE kueue_local_queue_quota_reserved_workloads_total counter
kueue_local_queue_quota_reserved_workloads_total{name="q",namespace="n"} 2
# HELP kueue_preempted_workloads_total Workloads that were preempted.
# TYPE kueue_preempted_workloads_total counter
kueue_preempted_workloads_total{preempting_cluster_queue="team-a",reason="InCohortReclamation"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "kueue_admitted_workloads_total", "kueue_cluster_queue_weighted_share",
		"kueue_local_queue_quota_reserved_workloads_total", "kueue_preempted_workloads_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		if h := f.Metric[0].GetHistogram(); h != nil {
			sums[f.GetName()] = h.GetSampleSum()
		}
	}
	for name, sum := range map[string]float64{"kueue_quota_reserved_wait_time_seconds": 13, "kueue_admission_wait_time_seconds": 5,
		"kueue_admission_checks_wait_time_seconds": 2, "kueue_local_queue_quota_reserved_wait_time_seconds": 13} {
		if sums[name] != sum {
			t.Errorf("%s sums up to %v, want %v", name, sums[name], sum)
		}
	}
}
