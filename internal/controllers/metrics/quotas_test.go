package metrics

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestTheSeriesOfAClusterQueueAreThoseOfItsFlavors(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"kueue_cluster_queue_nominal_quota", "kueue_cluster_queue_borrowing_limit", "kueue_cluster_queue_resource_reservation",
		"kueue_pending_workloads", "kueue_cluster_queue_status", "kueue_evicted_workloads_total"}
	expect := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	q := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	q.Spec.CohortName = "c"
	q.Spec.ResourceGroups = []v1beta2.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []v1beta2.FlavorQuotas{{Name: "spot",
		Resources: []v1beta2.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("1500m"), BorrowingLimit: ptr.To(resource.MustParse("2"))}}}}}}
	q.Status = v1beta2.ClusterQueueStatus{PendingWorkloads: 3,
		FlavorsReservation: []v1beta2.FlavorUsage{{Name: "spot", Resources: []v1beta2.ResourceUsage{{Name: "cpu", Total: resource.MustParse("1")}}}}}
	read := settings.OfClusterQueue(q)
	m.ClusterQueue(q, &read, 2, true)
	m.WorkloadEvicted("a", types.NamespacedName{Namespace: "n", Name: "l"}, "Preempted")
	const labels = `{cluster_queue="a",cohort="c",flavor="spot",resource="cpu"}`
	expect(`# HELP kueue_cluster_queue_borrowing_limit How much may be borrowed; no series means no limit.
# TYPE kueue_cluster_queue_borrowing_limit gauge
kueue_cluster_queue_borrowing_limit` + labels + ` 2
# HELP kueue_cluster_queue_nominal_quota The nominal quota.
# TYPE kueue_cluster_queue_nominal_quota gauge
kueue_cluster_queue_nominal_quota` + labels + ` 1.5
# HELP kueue_cluster_queue_resource_reservation What workloads with reserved quota hold.
# TYPE kueue_cluster_queue_resource_reservation gauge
kueue_cluster_queue_resource_reservation` + labels + ` 1
# HELP kueue_cluster_queue_status 1 for the state that the ClusterQueue is in, 0 for the others.
# TYPE kueue_cluster_queue_status gauge
kueue_cluster_queue_status{cluster_queue="a",status="active"} 1
kueue_cluster_queue_status{cluster_queue="a",status="pending"} 0
kueue_cluster_queue_status{cluster_queue="a",status="terminating"} 0
# HELP kueue_evicted_workloads_total Workloads that were stopped, by the reason of their eviction.
# TYPE kueue_evicted_workloads_total counter
kueue_evicted_workloads_total{cluster_queue="a",reason="Preempted"} 1
# HELP kueue_pending_workloads Workloads that are not admitted: active ones are tried, inadmissible ones wait for a change.
# TYPE kueue_pending_workloads gauge
kueue_pending_workloads{cluster_queue="a",status="active"} 1
kueue_pending_workloads{cluster_queue="a",status="inadmissible"} 2
`)
	q.Spec.ResourceGroups[0].Flavors[0].Resources[0].BorrowingLimit = nil
	read = settings.OfClusterQueue(q)
	m.ClusterQueue(q, &read, 2, true)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "kueue_cluster_queue_borrowing_limit" {
			t.Error("a limit that is gone is shown")
		}
	}
	m.ClusterQueueGone("a")
	families, err = registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if slices.Contains(names, family.GetName()) {
			t.Errorf("%s of a queue that is gone is shown", family.GetName())
		}
	}
}
