package validation

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Bounds of a ClusterQueue or Cohort beyond those of the schema. They are Kueue's.
const (
	maxFlavors      = 256 // in all groups together
	maxResources    = 256 // in all groups together
	maxCombinations = 512 // of a flavor and a resource, in one group
)

var spec = field.NewPath("spec")

// ClusterQueue says what is wrong with a ClusterQueue.
func ClusterQueue(q *v1beta2.ClusterQueue) field.ErrorList {
	if problem := unreadable(q); problem != nil {
		return problem
	}
	s := &q.Spec
	problems := differ(nil, spec.Child("cohort"), s.Cohort, "cohortName", s.CohortName)
	if len(s.AdmissionChecks) > 0 && s.AdmissionChecksStrategy != nil && !sameChecks(s.AdmissionChecks, s.AdmissionChecksStrategy.AdmissionChecks) {
		problems = append(problems, field.Invalid(spec.Child("admissionChecks"), s.AdmissionChecks, "must not differ from admissionChecksStrategy"))
	}
	problems = append(problems, groups(s.ResourceGroups, limits{hasParent: s.CohortName != "" || s.Cohort != "", parent: "cohort", lendsOwnOnly: true})...)
	problems = append(problems, inOrder(metav1validation.ValidateLabelSelector(s.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{},
		spec.Child("namespaceSelector")))...)
	problems = append(problems, policies(s)...)
	return append(problems, weight(s.FairSharing)...)
}

// policies checks those of preemption and of the choice of a flavor. The schema has these rules as well.
func policies(s *v1beta2.ClusterQueueSpec) field.ErrorList {
	var problems field.ErrorList
	if p := s.Preemption; p != nil && isNever(p.ReclaimWithinCohort) && p.BorrowWithinCohort != nil && !isNever(p.BorrowWithinCohort.Policy) {
		problems = append(problems, field.Invalid(spec.Child("preemption", "borrowWithinCohort", "policy"), p.BorrowWithinCohort.Policy,
			"reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"))
	}
	if f := s.FlavorFungibility; f != nil && f.Preference != nil &&
		(f.WhenCanBorrow != v1beta2.TryNextFlavor || f.WhenCanPreempt != "" && f.WhenCanPreempt != v1beta2.TryNextFlavor) {
		problems = append(problems, field.Invalid(spec.Child("flavorFungibility", "preference"), *f.Preference,
			"preference can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor"))
	}
	return problems
}

func isNever(policy v1beta2.PreemptionPolicy) bool {
	return policy == "" || policy == v1beta2.PreemptNever
}

// Cohort says what is wrong with a Cohort.
func Cohort(c *v1beta2.Cohort) field.ErrorList {
	if problem := unreadable(c); problem != nil {
		return problem
	}
	var problems field.ErrorList
	if c.Spec.ParentName != "" && c.Spec.ParentName == c.Name {
		problems = append(problems, field.Invalid(spec.Child("parentName"), c.Spec.ParentName, "a cohort cannot be its own parent"))
	}
	problems = append(problems, groups(c.Spec.ResourceGroups, limits{hasParent: c.Spec.ParentName != "", parent: "parent"})...)
	return append(problems, weight(c.Spec.FairSharing)...)
}

// LocalQueue says what is wrong with a LocalQueue.
func LocalQueue(q *v1beta2.LocalQueue) field.ErrorList {
	if problem := unreadable(q); problem != nil {
		return problem
	}
	return weight(q.Spec.FairSharing)
}

// limits says what holds for the limits of quotas.
type limits struct {
	hasParent    bool
	parent       string // the field that names it, as Kueue's message calls it
	lendsOwnOnly bool   // lendingLimit is at most nominalQuota
}

func groups(of []v1beta2.ResourceGroup, l limits) field.ErrorList {
	path := spec.Child("resourceGroups")
	var problems field.ErrorList
	seenResources, seenFlavors := sets.New[corev1.ResourceName](), sets.New[string]()
	resources, flavors := 0, 0
	for i := range of {
		group, path := &of[i], path.Index(i)
		combinations := 0
		for j, name := range group.CoveredResources {
			if seenResources.Has(name) {
				problems = append(problems, field.Duplicate(path.Child("coveredResources").Index(j), name))
			}
			seenResources.Insert(name)
		}
		for j := range group.Flavors {
			flavor, path := &group.Flavors[j], path.Child("flavors").Index(j)
			if seenFlavors.Has(flavor.Name) {
				problems = append(problems, field.Duplicate(path.Child("name"), flavor.Name))
			}
			seenFlavors.Insert(flavor.Name)
			problems = append(problems, quotas(flavor, group.CoveredResources, l, path)...)
			combinations += len(flavor.Resources)
		}
		problems = append(problems, most(path, "flavors × resources in a group", combinations, maxCombinations)...)
		resources += len(group.CoveredResources)
		flavors += len(group.Flavors)
	}
	problems = append(problems, most(path, "flavors in all groups", flavors, maxFlavors)...)
	return append(problems, most(path, "resources in all groups", resources, maxResources)...)
}

func most(path *field.Path, what string, have, bound int) field.ErrorList {
	if have <= bound {
		return nil
	}
	return field.ErrorList{field.Invalid(path, have, fmt.Sprintf("the number of %s must be ≤ %d", what, bound))}
}

func quotas(flavor *v1beta2.FlavorQuotas, covered []corev1.ResourceName, l limits, path *field.Path) field.ErrorList {
	path = path.Child("resources")
	if len(flavor.Resources) != len(covered) {
		return field.ErrorList{field.Invalid(path, len(flavor.Resources), "flavors must have the same number of resources as the coveredResources")}
	}
	var problems field.ErrorList
	for i := range flavor.Resources {
		q, path := &flavor.Resources[i], path.Index(i)
		if q.Name != covered[i] {
			problems = append(problems, field.Invalid(path.Child("name"), q.Name, "must match the name in coveredResources"))
		}
		problems = append(problems, notNegative(&q.NominalQuota, path.Child("nominalQuota"))...)
		problems = append(problems, limit(q.BorrowingLimit, l, path.Child("borrowingLimit"))...)
		problems = append(problems, limit(q.LendingLimit, l, path.Child("lendingLimit"))...)
		if l.lendsOwnOnly && q.LendingLimit != nil && q.LendingLimit.Cmp(q.NominalQuota) > 0 {
			problems = append(problems, field.Invalid(path.Child("lendingLimit"), q.LendingLimit.String(), "must be less than or equal to the nominalQuota"))
		}
	}
	return problems
}

func limit(q *resource.Quantity, l limits, path *field.Path) field.ErrorList {
	if q == nil {
		return nil
	}
	problems := notNegative(q, path)
	if !l.hasParent {
		problems = append(problems, field.Invalid(path, q.String(), fmt.Sprintf("must be nil when %s is empty", l.parent)))
	}
	return problems
}

func notNegative(q *resource.Quantity, path *field.Path) field.ErrorList {
	if q.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, q.String(), "must be greater than or equal to 0")}
}

// leastWeight is a weight that is too small to divide by.
var leastWeight = resource.MustParse("1n")

func weight(sharing *v1beta2.FairSharing) field.ErrorList {
	if sharing == nil || sharing.Weight == nil {
		return nil
	}
	path, w := spec.Child("fairSharing", "weight"), sharing.Weight
	problems := notNegative(w, path)
	if w.Sign() > 0 && w.Cmp(leastWeight) <= 0 {
		problems = append(problems, field.Invalid(path, w.String(), "must be 0 or greater than 1e-9"))
	}
	return problems
}

// sameChecks reports whether the flat list of checks says what the rules say.
func sameChecks(flat []string, rules []v1beta2.AdmissionCheckStrategyRule) bool {
	if len(flat) != len(rules) {
		return false
	}
	names := sets.New(flat...)
	for _, rule := range rules {
		if len(rule.OnFlavors) > 0 || !names.Has(rule.Name) {
			return false
		}
	}
	return true
}

// inOrder sorts problems that the library has found in a map, in the order in which Go gives it.
func inOrder(problems field.ErrorList) field.ErrorList {
	slices.SortFunc(problems, func(a, b *field.Error) int { return cmp.Compare(a.Error(), b.Error()) })
	return problems
}

// differ appends that two spellings of one field have different values.
func differ(problems field.ErrorList, path *field.Path, value, other, otherValue string) field.ErrorList {
	if value == "" || otherValue == "" || value == otherValue {
		return problems
	}
	return append(problems, field.Invalid(path, value, fmt.Sprintf("must not differ from %s, which is %q", other, otherValue)))
}

// unreadable says that a stored object could not be decoded.
func unreadable(object metav1.Object) field.ErrorList {
	why, is := bounds.Unreadable(object)
	if !is {
		return nil
	}
	return field.ErrorList{field.Invalid(spec, field.OmitValueType{}, "cannot be read: "+why)}
}
