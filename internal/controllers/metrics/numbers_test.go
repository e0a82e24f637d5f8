package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// values are the series of a registry, those of a histogram by the number of what was observed.
func values(t *testing.T, registry *prometheus.Registry, names ...string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, name := range names {
			if family.GetName() != name {
				continue
			}
			for _, m := range family.GetMetric() {
				got[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return got
}

func TestTheNumbersOfQueuesAreShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	q := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	q.Spec.CohortName = "c"
	q.Spec.ResourceGroups = []v1beta2.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []v1beta2.FlavorQuotas{{Name: "spot",
		Resources: []v1beta2.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("5"), LendingLimit: ptr.To(resource.MustParse("4"))}}}}}}
	q.Status = v1beta2.ClusterQueueStatus{ReservingWorkloads: 3, AdmittedWorkloads: 2,
		FlavorsUsage: []v1beta2.FlavorUsage{{Name: "spot", Resources: []v1beta2.ResourceUsage{{Name: "cpu", Total: resource.MustParse("1500m")}}}}}
	read := settings.OfClusterQueue(q)
	m.ClusterQueue(q, &read, 0, true)
	l := &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "l"},
		Status: v1beta2.LocalQueueStatus{PendingWorkloads: 7, ReservingWorkloads: 6, AdmittedWorkloads: 5,
			FlavorsReservation: usageOf("4"), FlavorsUsage: usageOf("3")}}
	m.LocalQueue(l, 3)
	of := types.NamespacedName{Namespace: "lab", Name: "l"}
	m.WorkloadFinished("a", of)
	m.WorkloadEvicted("a", of, "Preempted")
	m.CohortShare("c", 250)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "w", CreationTimestamp: metav1.NewTime(begin)}}
	before.Spec.QueueName = "l"
	now := before.DeepCopy()
	now.Status = v1beta2.WorkloadStatus{Admission: &v1beta2.Admission{ClusterQueue: "a"}, AdmissionChecks: []v1beta2.AdmissionCheckState{{Name: "budget"}}}
	conditions.Reserve(now, "a", begin.Add(time.Second))
	conditions.Admit(now, begin.Add(2*time.Second))
	m.WorkloadMoved(before, now)
	ready := now.DeepCopy()
	conditions.Set(ready, v1beta2.PodsReady, true, "Started", "", begin.Add(5*time.Second))
	m.WorkloadMoved(now, ready)
	stopped := ready.DeepCopy()
	conditions.Set(stopped, v1beta2.Evicted, true, v1beta2.ReasonPodsReadyTimeout, "", begin.Add(9*time.Second))
	m.WorkloadMoved(ready, stopped)
	again := stopped.DeepCopy()
	conditions.Set(again, v1beta2.Evicted, false, v1beta2.ReasonPodsReadyTimeout, "", begin.Add(10*time.Second))
	m.WorkloadMoved(stopped, again)
	m.WorkloadMoved(again, stopped) // it is not the first time
	want := map[string]float64{
		"kueue_cluster_queue_lending_limit": 4, "kueue_cluster_queue_resource_usage": 1.5, "kueue_reserving_active_workloads": 3,
		"kueue_admitted_active_workloads": 2, "kueue_finished_workloads_total": 1, "kueue_cohort_weighted_share": 250,
		"kueue_quota_reserved_workloads_total": 1, "kueue_local_queue_pending_workloads": 7, "kueue_local_queue_reserving_active_workloads": 6,
		"kueue_local_queue_admitted_active_workloads": 5, "kueue_local_queue_quota_reserved_workloads_total": 1,
		"kueue_local_queue_admitted_workloads_total": 1, "kueue_local_queue_admission_wait_time_seconds": 1,
		"kueue_local_queue_admission_checks_wait_time_seconds": 1, "kueue_local_queue_resource_reservation": 4, "kueue_local_queue_resource_usage": 3,
		"kueue_local_queue_status": 1, "kueue_local_queue_finished_workloads_total": 1, "kueue_local_queue_evicted_workloads_total": 1,
		"kueue_ready_wait_time_seconds": 1, "kueue_admitted_until_ready_wait_time_seconds": 1, "kueue_local_queue_ready_wait_time_seconds": 1,
		"kueue_local_queue_admitted_until_ready_wait_time_seconds": 1, "kueue_evicted_workloads_once_total": 1,
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	if diff := cmp.Diff(want, values(t, registry, names...)); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	m.LocalQueueGone(client.ObjectKeyFromObject(l))
	for name, value := range values(t, registry, names...) {
		if strings.HasPrefix(name, "kueue_local_queue") {
			t.Errorf("%s of a LocalQueue that is gone is %v", name, value)
		}
	}
}

func usageOf(cpus string) []v1beta2.FlavorUsage {
	return []v1beta2.FlavorUsage{{Name: "spot", Resources: []v1beta2.ResourceUsage{{Name: "cpu", Total: resource.MustParse(cpus)}}}}
}
