package queueing

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Totals are how many Workloads there are, and what they hold.
type Totals struct {
	Pending, Reserving, Admitted int32
	Inadmissible                 int32                          // of those that are pending
	reserved, used               map[string]corev1.ResourceList // by flavor
}

// Add adds a Workload. One that has finished counts no more.
func (t *Totals) Add(w *v1beta2.Workload) {
	isAdmitted := conditions.Is(w, v1beta2.Admitted)
	switch {
	case conditions.Is(w, v1beta2.Finished):
		return
	case !isAdmitted && (w.Spec.Active == nil || *w.Spec.Active):
		t.Pending++
		if c := conditions.Of(w, v1beta2.QuotaReserved); c != nil && c.Status == metav1.ConditionFalse && conditions.IsTried(c.Reason) {
			t.Inadmissible++
		}
	}
	if !conditions.Is(w, v1beta2.QuotaReserved) || w.Status.Admission == nil {
		return
	}
	t.Reserving++
	if t.reserved == nil {
		t.reserved, t.used = map[string]corev1.ResourceList{}, map[string]corev1.ResourceList{}
	}
	charge(t.reserved, w)
	if isAdmitted {
		t.Admitted++
		charge(t.used, w)
	}
}

// Reserved are what Workloads hold that have quota, of each flavor and resource that a ClusterQueue has quota for, in
// its order.
func (t *Totals) Reserved(q *settings.ClusterQueue) []v1beta2.FlavorUsage {
	return usages(q, t.reserved)
}

// Used are those of admitted Workloads.
func (t *Totals) Used(q *settings.ClusterQueue) []v1beta2.FlavorUsage { return usages(q, t.used) }

// charge adds what a workload holds: for the pods that it was admitted with, but for those that have ended.
func charge(totals map[string]corev1.ResourceList, w *v1beta2.Workload) {
	for i := range w.Status.Admission.PodSetAssignments {
		p := &w.Status.Admission.PodSetAssignments[i]
		all, left := settings.PodsLeft(w, p)
		for name, flavor := range p.Flavors {
			if totals[flavor] == nil {
				totals[flavor] = corev1.ResourceList{}
			}
			sum := totals[flavor][name]
			sum.Add(part(p.ResourceUsage[name], int64(left), int64(all)))
			totals[flavor][name] = sum
		}
	}
}

// part is what so many of all pods have of a quantity.
func part(q resource.Quantity, pods, all int64) resource.Quantity {
	if pods == all || all == 0 {
		return q
	}
	if value := q.Value(); value > math.MaxInt64/1000 { // thousandths of it would not fit
		return *resource.NewQuantity(value/all*pods, q.Format)
	}
	return *resource.NewMilliQuantity(q.MilliValue()/all*pods, q.Format)
}

// usages are what is held of each flavor and resource that a queue has quota for, in the order of the queue.
func usages(q *settings.ClusterQueue, held map[string]corev1.ResourceList) []v1beta2.FlavorUsage {
	if q == nil {
		return nil
	}
	var all []v1beta2.FlavorUsage
	for _, group := range q.Groups {
		for _, f := range group.Flavors {
			usage := v1beta2.FlavorUsage{Name: f.Name}
			for i, name := range group.Resources {
				total, borrowed := held[f.Name][name], resource.Quantity{}
				if q.Cohort != "" && total.Cmp(f.Quotas[i].Nominal) > 0 {
					borrowed = total.DeepCopy()
					borrowed.Sub(f.Quotas[i].Nominal)
				}
				usage.Resources = append(usage.Resources, v1beta2.ResourceUsage{Name: name, Total: total, Borrowed: &borrowed})
			}
			all = append(all, usage)
		}
	}
	return all
}
