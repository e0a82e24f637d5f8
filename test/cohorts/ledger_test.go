package cohorts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/cohorts/world"
)

// account is a node of the tree as rule C2 describes it, worked out from objects alone. It has one resource, the CPU of
// a flavor, in cores.
type account struct {
	name                 string
	nominal, borrowing   int64
	lending              int64
	canBorrow, lends     bool // whether the limits are set
	parent               *account
	children             []*account
	subtree, local, used int64
}

// accounts are those of a flavor, by the names of ClusterQueues, with what Workloads hold but those that have left.
func (w *walk) accounts(flavor string, instead *v1beta2.Workload, left map[string]bool) map[string]*account {
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
		} else if left[o.Name] {
			continue
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

// left is what an account can still take, after all has been added up.
func (a *account) left() int64 {
	root := a
	for root.parent != nil {
		root = root.parent
	}
	root.sum()
	return a.available()
}

// plan is the record of one, as far as it is read here.
type plan struct {
	Admission v1beta2.Admission
	WaitsFor  []struct{ Name string }
}

func planOf(o *v1beta2.Workload) (p plan, is bool) {
	return p, json.Unmarshal([]byte(o.Annotations[v1beta2.PlanAnnotation]), &p) == nil
}

// leaving are the Workloads that leave for others, and those that are told to leave in this step, as when their nodes
// are gone. Pods of others get the nodes of both at once.
func (w *walk) leaving() map[string]bool {
	leave := map[string]bool{}
	for i := range w.Decided {
		if s := &w.Decided[i]; s.Evict != nil {
			leave[s.Workload.Name] = true
		}
	}
	for _, o := range w.Workloads() {
		if p, is := planOf(o); is {
			for _, victim := range p.WaitsFor {
				leave[victim.Name] = true
			}
		}
	}
	return leave
}

// planned is a Workload as its plan has it.
func planned(o *v1beta2.Workload) *v1beta2.Workload {
	p, is := planOf(o)
	if !is {
		return o
	}
	o = o.DeepCopy()
	o.Status.Admission = &p.Admission
	conditions.Reserve(o, string(p.Admission.ClusterQueue), o.CreationTimestamp.Time)
	return o
}

// promised is a Workload without quota as it is admitted in this step, or as its plan has it. Statuses are written one
// after another, and one that is written later may end a plan that is still recorded.
func (w *walk) promised(o *v1beta2.Workload) *v1beta2.Workload {
	for i := range w.Decided {
		if s := &w.Decided[i]; s.Workload.Name == o.Name && s.Reserve != nil {
			if after := o.DeepCopy(); s.Apply(after) {
				return after
			}
		}
	}
	return planned(o)
}

// holders says who holds how many cores where, by the objects.
func (w *walk) holders(instead *v1beta2.Workload) (text string) {
	for _, o := range w.Workloads() {
		if o.Name == instead.Name {
			o = instead
		}
		if plan, is := planOf(o); is && heldBy(o) == "" {
			text += fmt.Sprintf("planned, waits for %v: ", plan.WaitsFor)
			o = w.promised(o)
		}
		if queue := heldBy(o); queue != "" {
			text += fmt.Sprintf("%s in %s: %d and %d (evicted %t, deleted %t); ", o.Name, queue, chargedFor(o, "f0"), chargedFor(o, "f1"),
				conditions.Is(o, v1beta2.Evicted), o.DeletionTimestamp != nil)
		}
	}
	return text
}

// isHeldAlready reports whether a Workload has had all that it is admitted with since an earlier step, in which there
// may have been more.
func isHeldAlready(before, after *v1beta2.Workload) bool {
	return heldBy(before) != "" && heldBy(before) == heldBy(after) &&
		chargedFor(before, "f0") >= chargedFor(after, "f0") && chargedFor(before, "f1") >= chargedFor(after, "f1")
}

// overdrawn says what a Workload takes that its ClusterQueue does not have.
func (w *walk) overdrawn(o *v1beta2.Workload, left map[string]bool) string {
	for _, flavor := range []string{"f0", "f1"} {
		if chargedFor(o, flavor) == 0 {
			continue
		}
		a := w.accounts(flavor, o, left)[heldBy(o)]
		if a == nil {
			return "its ClusterQueue does not exist"
		}
		if left := a.left(); left < 0 {
			return fmt.Sprintf("%s then has %d of %s left besides %s", a.name, left, flavor, w.holders(o))
		}
	}
	return ""
}

func TestWhatAWorkloadIsPromised(t *testing.T) {
	const plan = `{"admission": {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "count": 2, "resourceUsage": {"cpu": "4"}}]}}`
	count := int32(1)
	fewer := &v1beta2.Admission{ClusterQueue: "q", PodSetAssignments: []v1beta2.PodSetAssignment{{Name: "main", Count: &count,
		ResourceUsage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
	for name, test := range map[string]struct {
		reserve *v1beta2.Admission
		want    int64
	}{
		"what its plan says": {nil, 4},
		"what it is admitted with in this step, and no more": {fewer, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := &walk{World: world.New(t, world.Configuration(""))}
			w.Apply(workloadOf("a", "q", 0, 2, "2"))
			o := w.Workload("a").DeepCopy()
			o.Annotations = map[string]string{v1beta2.PlanAnnotation: plan}
			w.Decided = []decision.WorkloadStatus{{Workload: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, UID: o.UID, Reserve: test.reserve}}
			if cores := w.held(w.promised(o)); cores != test.want {
				t.Errorf("it is promised %d cores, want %d", cores, test.want)
			}
		})
	}
}
