package cohorts

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// account is a node of the tree as rule C2 describes it, worked out from objects alone. It has one resource, the CPU of a flavor, in cores.
type account struct {
	name                 string
	nominal, borrowing   int64
	lending              int64
	canBorrow, lends     bool // whether the limits are set
	parent               *account
	children             []*account
	subtree, local, used int64
}

// accounts are those of a flavor, by the names of ClusterQueues, with what Workloads are charged.
func (w *walk) accounts(flavor string, instead *v1beta2.Workload) map[string]*account {
	cohorts, queues, parents := map[string]*account{}, map[string]*account{}, map[*account]string{}
	cohortOf := func(name string) *account {
		if cohorts[name] == nil {
			cohorts[name] = &account{name: name}
		}
		return cohorts[name]
	}
	for _, name := range w.Names("v1beta2.Cohort/") {
		o := w.Object(name).(*v1beta2.Cohort)
		s := settings.OfCohort(o)
		a := cohortOf(o.Name)
		a.set(s.Groups, flavor)
		parents[a] = s.Parent
	}
	for _, name := range w.Names("v1beta2.ClusterQueue/") {
		o := w.Object(name).(*v1beta2.ClusterQueue)
		s := settings.OfClusterQueue(o)
		a := &account{name: o.Name}
		a.set(s.Groups, flavor)
		queues[o.Name], parents[a] = a, s.Cohort
	}
	for _, a := range slices.Concat(slices.Collect(maps.Values(queues)), slices.Collect(maps.Values(cohorts))) {
		if name := parents[a]; name != "" && !inCircle(name, cohorts, parents) {
			a.parent = cohortOf(name)
			a.parent.children = append(a.parent.children, a)
		}
	}
	for _, o := range w.Workloads() {
		if instead != nil && o.Name == instead.Name {
			o = instead
		}
		if q := queues[heldBy(o)]; q != nil {
			q.used += chargedFor(o, flavor)
		}
	}
	return queues
}

func heldBy(o *v1beta2.Workload) string {
	if !conditions.Is(o, v1beta2.QuotaReserved) || conditions.Is(o, v1beta2.Finished) || o.Status.Admission == nil {
		return ""
	}
	return o.Status.Admission.ClusterQueue
}

func chargedFor(o *v1beta2.Workload, flavor string) (cores int64) {
	for i := range o.Status.Admission.PodSetAssignments {
		p := &o.Status.Admission.PodSetAssignments[i]
		if p.Flavors[corev1.ResourceCPU] != flavor {
			continue
		}
		all := int64(*p.Count)
		left := all
		for j := range o.Spec.PodSets {
			for _, r := range o.Status.ReclaimablePods {
				if r.Name == p.Name && o.Spec.PodSets[j].Name == p.Name {
					left = min(all, max(0, int64(o.Spec.PodSets[j].Count-r.Count)))
				}
			}
		}
		usage := p.ResourceUsage[corev1.ResourceCPU]
		if all > 0 {
			cores += usage.Value() / all * left
		}
	}
	return cores
}

func inCircle(name string, cohorts map[string]*account, parents map[*account]string) bool {
	for range len(cohorts) + 1 {
		if name == "" || cohorts[name] == nil {
			return false
		}
		name = parents[cohorts[name]]
	}
	return true
}

func (a *account) set(groups []settings.ResourceGroup, flavor string) {
	for _, g := range groups {
		for _, f := range g.Flavors {
			if f.Name != flavor {
				continue
			}
			q := &f.Quotas[0]
			a.nominal = q.Nominal.Value()
			if q.Borrowing != nil {
				a.borrowing, a.canBorrow = q.Borrowing.Value(), true
			}
			if q.Lending != nil {
				a.lending, a.lends = q.Lending.Value(), true
			}
		}
	}
}

// sum works out what is below an account.
func (a *account) sum() {
	a.subtree = a.nominal
	for _, child := range a.children {
		child.sum()
		a.subtree += child.subtree - child.local
		a.used += max(0, child.used-child.local)
	}
	if a.lends {
		a.local = max(0, a.subtree-a.lending)
	}
}

// available is what an account can still take (rule C2).
func (a *account) available() int64 {
	if a.parent == nil {
		return a.subtree - a.used
	}
	of := a.parent.available()
	if a.canBorrow {
		of = min(of, a.subtree-a.local-max(0, a.used-a.local)+a.borrowing)
	}
	return max(0, a.local-a.used) + of
}

// overdrawn says what a Workload takes that its ClusterQueue does not have.
func (w *walk) overdrawn(o *v1beta2.Workload) string {
	for _, flavor := range []string{"f0", "f1"} {
		if chargedFor(o, flavor) == 0 {
			continue
		}
		a := w.accounts(flavor, o)[heldBy(o)]
		if a == nil {
			return "its ClusterQueue does not exist"
		}
		root := a
		for root.parent != nil {
			root = root.parent
		}
		if root.sum(); a.available() < 0 {
			return fmt.Sprintf("%s then has %d of %s left", a.name, a.available(), flavor)
		}
	}
	return ""
}
