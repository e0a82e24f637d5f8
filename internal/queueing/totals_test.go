package queueing

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/fixture"
)

func TestPodsThatHaveEndedHoldNothing(t *testing.T) {
	huge := resource.NewQuantity(math.MaxInt64/4*4, resource.BinarySI)
	w := &v1beta2.Workload{Spec: v1beta2.WorkloadSpec{PodSets: []v1beta2.PodSet{{Name: "main", Count: 4}}}}
	w.Status.Admission = &v1beta2.Admission{ClusterQueue: "q", PodSetAssignments: []v1beta2.PodSetAssignment{{Name: "main", Count: ptr.To(int32(4)),
		Flavors:       map[corev1.ResourceName]string{"cpu": "f", "memory": "f"},
		ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": *huge}}}}
	conditions.Reserve(w, "q", fixture.Birth)
	w.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "main", Count: 3}}
	var sum Totals
	sum.Add(w)
	q := &settings.ClusterQueue{Groups: []settings.ResourceGroup{{Resources: []corev1.ResourceName{"cpu", "memory"},
		Flavors: []settings.Flavors{{Name: "f", Quotas: make([]settings.Quota, 2)}}}}}
	held := sum.Reserved(q)[0].Resources
	if cpu, memory := held[0].Total, held[1].Total; cpu.String() != "500m" || memory.Value() != math.MaxInt64/4 {
		t.Errorf("one of four pods holds %s and %s", cpu.String(), memory.String())
	}
	if used := sum.Used(q)[0].Resources[0].Total; !used.IsZero() || sum.Pending != 1 || sum.Reserving != 1 || sum.Admitted != 0 {
		t.Errorf("before it is admitted it uses %s, and the counts are %+v", used.String(), sum)
	}
}
