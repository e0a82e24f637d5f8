package settings

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/kueue/validation"
)

// ClusterQueue is what a ClusterQueue says.
type ClusterQueue struct {
	Name   string
	Cohort string // "" if the queue shares with none
	Queue  string // the Volcano Queue that the tree hangs below, "" for the root; without a cohort only

	Groups     []ResourceGroup
	StrictFIFO bool
	Namespaces labels.Selector // labels.Nothing() if no namespace is named

	WhenCanBorrow  v1beta2.FlavorFungibilityPolicy // MayStopSearch or TryNextFlavor
	WhenCanPreempt v1beta2.FlavorFungibilityPolicy // MayStopSearch or TryNextFlavor
	Preference     v1beta2.FlavorFungibilityPreference

	WithinClusterQueue   v1beta2.PreemptionPolicy
	ReclaimWithinCohort  v1beta2.PreemptionPolicy
	BorrowWithinCohort   v1beta2.PreemptionPolicy
	MaxPriorityThreshold *int32 // nil: no limit

	Checks      []Check
	Stop        v1beta2.StopPolicy
	WeightNanos int64 // the weight in thousand-millionths: 1 is 1,000,000,000

	Problem string // why the object counts as inactive, "" if it does not
}

// ResourceGroup is a group of resources that a podset gets from one flavor.
type ResourceGroup struct {
	Resources []corev1.ResourceName
	Flavors   []Flavors
}

// Flavors is the quota of one flavor, by the resources of the group and in their order.
type Flavors struct {
	Name   string
	Quotas []Quota
}

// Quota is what may be held of one resource of a flavor.
type Quota struct {
	Nominal   resource.Quantity
	Borrowing *resource.Quantity // nil: no limit
	Lending   *resource.Quantity // nil: all of Nominal is lent
}

// Check is an AdmissionCheck of a queue.
type Check struct {
	Name    string
	Flavors []string // the flavors that need it; none: all
}

// Needed reports whether a workload with these flavors must pass the check.
func (c Check) Needed(flavors []string) bool {
	return len(c.Flavors) == 0 || slices.ContainsFunc(c.Flavors, func(f string) bool { return slices.Contains(flavors, f) })
}

// OfClusterQueue reads a ClusterQueue.
func OfClusterQueue(object *v1beta2.ClusterQueue) ClusterQueue {
	spec := &object.Spec
	q := ClusterQueue{
		Name:       object.Name,
		Cohort:     either(spec.CohortName, spec.Cohort),
		Groups:     groups(spec.ResourceGroups),
		StrictFIFO: spec.QueueingStrategy == v1beta2.StrictFIFO,

		WhenCanBorrow: v1beta2.MayStopSearch, WhenCanPreempt: v1beta2.TryNextFlavor, Preference: v1beta2.BorrowingOverPreemption,
		WithinClusterQueue: v1beta2.PreemptNever, ReclaimWithinCohort: v1beta2.PreemptNever, BorrowWithinCohort: v1beta2.PreemptNever,

		Checks:      checks(spec),
		Stop:        stop(spec.StopPolicy),
		WeightNanos: weight(spec.FairSharing),
	}
	if q.Cohort == "" {
		q.Queue = object.Annotations[v1beta2.QueueAnnotation]
	}
	// A selector that cannot be read is a problem, which validation tells; it selects nothing.
	q.Namespaces = labels.Nothing()
	if selector, err := metav1.LabelSelectorAsSelector(spec.NamespaceSelector); err == nil {
		q.Namespaces = selector
	}
	if f := spec.FlavorFungibility; f != nil {
		q.WhenCanBorrow = fungibility(f.WhenCanBorrow, q.WhenCanBorrow)
		q.WhenCanPreempt = fungibility(f.WhenCanPreempt, q.WhenCanPreempt)
		if f.Preference != nil {
			q.Preference = *f.Preference
		}
	}
	if p := spec.Preemption; p != nil {
		q.WithinClusterQueue = either(p.WithinClusterQueue, q.WithinClusterQueue)
		q.ReclaimWithinCohort = either(p.ReclaimWithinCohort, q.ReclaimWithinCohort)
		if b := p.BorrowWithinCohort; b != nil {
			q.BorrowWithinCohort = either(b.Policy, q.BorrowWithinCohort)
			q.MaxPriorityThreshold = b.MaxPriorityThreshold
		}
	}
	q.Problem = joined(validation.ClusterQueueNotServed(object), validation.ClusterQueue(object))
	return q
}

// Cohort is what a Cohort says.
type Cohort struct {
	Name        string
	Parent      string // "" for a root
	Queue       string // the Volcano Queue that the tree hangs below, "" for the root; without a parent only
	Groups      []ResourceGroup
	WeightNanos int64  // the weight in thousand-millionths: 1 is 1,000,000,000
	Problem     string // why the object counts as inactive, "" if it does not
}

// OfCohort reads a Cohort.
func OfCohort(object *v1beta2.Cohort) Cohort {
	c := Cohort{
		Name: object.Name, Parent: object.Spec.ParentName, Groups: groups(object.Spec.ResourceGroups),
		WeightNanos: weight(object.Spec.FairSharing), Problem: joined(nil, validation.Cohort(object)),
	}
	if c.Parent == "" {
		c.Queue = object.Annotations[v1beta2.QueueAnnotation]
	}
	return c
}

// LocalQueue is what a LocalQueue says.
type LocalQueue struct {
	Namespace, Name string
	ClusterQueue    string
	Stop            v1beta2.StopPolicy
	Problem         string // why the object counts as inactive, "" if it does not
}

// OfLocalQueue reads a LocalQueue.
func OfLocalQueue(object *v1beta2.LocalQueue) LocalQueue {
	return LocalQueue{
		Namespace: object.Namespace, Name: object.Name,
		ClusterQueue: object.Spec.ClusterQueue,
		Stop:         stop(object.Spec.StopPolicy),
		Problem:      joined(validation.LocalQueueNotServed(object), validation.LocalQueue(object)),
	}
}

// Flavor is what a ResourceFlavor says.
type Flavor struct {
	Name        string
	NodeLabels  map[string]string
	NodeTaints  []corev1.Taint
	Tolerations []corev1.Toleration
	Problem     string // why the ClusterQueues of the flavor count as inactive, "" if they do not
}

// OfFlavor reads a ResourceFlavor.
func OfFlavor(object *v1beta2.ResourceFlavor) Flavor {
	return Flavor{
		Name: object.Name, NodeLabels: object.Spec.NodeLabels, NodeTaints: object.Spec.NodeTaints, Tolerations: object.Spec.Tolerations,
		Problem: joined(validation.ResourceFlavorNotServed(object), validation.ResourceFlavor(object)),
	}
}

// AdmissionCheck is what an AdmissionCheck says.
type AdmissionCheck struct {
	Name     string
	IsActive bool // its controller looks after it
	// NotServed says that the controller is one of those that Hekla does not serve, "" if it is not.
	NotServed string
}

// OfCheck reads an AdmissionCheck.
func OfCheck(object *v1beta2.AdmissionCheck) AdmissionCheck {
	c := AdmissionCheck{Name: object.Name, NotServed: joined(validation.AdmissionCheckNotServed(object), nil)}
	for i := range object.Status.Conditions {
		condition := &object.Status.Conditions[i]
		c.IsActive = c.IsActive || condition.Type == v1beta2.ActiveCondition && condition.Status == metav1.ConditionTrue
	}
	return c
}

func groups(of []v1beta2.ResourceGroup) []ResourceGroup {
	read := make([]ResourceGroup, len(of))
	for i, group := range of {
		read[i] = ResourceGroup{Resources: group.CoveredResources, Flavors: make([]Flavors, len(group.Flavors))}
		for j, flavor := range group.Flavors {
			read[i].Flavors[j] = Flavors{Name: flavor.Name, Quotas: quotas(group.CoveredResources, flavor.Resources)}
		}
	}
	return read
}

// quotas are those of the covered resources, in their order. A resource without a quota has none; that is a problem
// which validation tells.
func quotas(covered []corev1.ResourceName, of []v1beta2.ResourceQuota) []Quota {
	read := make([]Quota, len(covered))
	for i, name := range covered {
		if at := slices.IndexFunc(of, func(q v1beta2.ResourceQuota) bool { return q.Name == name }); at >= 0 {
			read[i] = Quota{Nominal: of[at].NominalQuota, Borrowing: of[at].BorrowingLimit, Lending: of[at].LendingLimit}
		}
	}
	return read
}

func checks(spec *v1beta2.ClusterQueueSpec) []Check {
	var read []Check
	for _, name := range spec.AdmissionChecks {
		read = append(read, Check{Name: name})
	}
	if len(read) == 0 && spec.AdmissionChecksStrategy != nil {
		for _, rule := range spec.AdmissionChecksStrategy.AdmissionChecks {
			read = append(read, Check{Name: rule.Name, Flavors: rule.OnFlavors})
		}
	}
	return read
}

func fungibility(policy, fallback v1beta2.FlavorFungibilityPolicy) v1beta2.FlavorFungibilityPolicy {
	switch policy {
	case "":
		return fallback
	case v1beta2.Borrow, v1beta2.Preempt:
		return v1beta2.MayStopSearch
	}
	return policy
}

func stop(policy *v1beta2.StopPolicy) v1beta2.StopPolicy {
	if policy == nil || *policy == "" {
		return v1beta2.StopNone
	}
	return *policy
}

// nanos is one in thousand-millionths, the smallest unit of a quantity.
const nanos = 1_000_000_000

func weight(sharing *v1beta2.FairSharing) int64 {
	if sharing == nil || sharing.Weight == nil {
		return nanos
	}
	if largest := resource.NewScaledQuantity(math.MaxInt64, resource.Nano); sharing.Weight.Cmp(*largest) >= 0 {
		return math.MaxInt64
	}
	return max(sharing.Weight.ScaledValue(resource.Nano), 0)
}

// either is the first of two values, or the second if the first is empty.
func either[T ~string](first, second T) T {
	if first == "" {
		return second
	}
	return first
}

// joined is the text of problems: fields that are not served before values that are wrong.
func joined(notServed []string, problems field.ErrorList) string {
	texts := slices.Clone(notServed)
	for _, p := range problems {
		texts = append(texts, p.Error())
	}
	return strings.Join(texts, ", ")
}
