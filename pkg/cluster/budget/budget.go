package budget

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Budget is a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string

	object   *policyv1.PodDisruptionBudget
	selector labels.Selector
	spent    int // evictions that were decided and that the API server does not show yet
}

// Covers reports whether the budget is about a pod.
func (b *Budget) Covers(pod *corev1.Pod) bool {
	if pod.Namespace != b.Namespace || !b.selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	// What the API server has counted as disrupted is not counted twice.
	_, isDisrupted := b.object.Status.DisruptedPods[pod.Name]
	return !isDisrupted
}

// Left is how many more evictions the budget allows, those that were decided taken off. It may be negative.
func (b *Budget) Left() int { return int(b.object.Status.DisruptionsAllowed) - b.spent }

// Allowed is how many evictions the API server says it allows.
func (b *Budget) Allowed() int { return int(b.object.Status.DisruptionsAllowed) }

// Spent is how many evictions under the budget were decided and are not shown yet.
func (b *Budget) Spent() int { return b.spent }

// Spend notes that an eviction under the budget was decided, or with -1 that it is no longer under way.
func (b *Budget) Spend(sign int) { b.spent += sign }

// Set is the budgets that are there.
type Set struct {
	byNamespace map[string][]*Budget // sorted by name
	generation  uint64               // grows when a budget comes, changes what it covers, or goes
}

// NewSet returns no budgets.
func NewSet() Set { return Set{byNamespace: map[string][]*Budget{}} }

// Found remembers which budgets cover a pod. The zero value remembers nothing, and must take its place when the pod changes.
type Found struct {
	budgets []*Budget
	when    uint64 // the generation of the set, 0 if they were never looked up
}

// Of returns the budgets that cover a pod, by name. The caller must not change the slice.
func (s *Set) Of(pod *corev1.Pod, found *Found) []*Budget {
	all := s.byNamespace[pod.Namespace]
	if len(all) == 0 {
		return nil
	}
	if found.when != s.generation {
		found.when, found.budgets = s.generation, nil
		for _, b := range all {
			if b.Covers(pod) {
				found.budgets = append(found.budgets, b)
			}
		}
	}
	return found.budgets
}

// In returns the budgets of a namespace, by name. The caller must not change the slice.
func (s *Set) In(namespace string) []*Budget { return s.byNamespace[namespace] }

// Change is what is different after an object was shown or has gone.
type Change struct {
	// Concerns says of which pods an eviction may be answered otherwise than before, nil: of none.
	Concerns func(*corev1.Pod) bool
	// IsFreed is set if more evictions may be allowed than before.
	IsFreed bool
	// IsOther is set if budgets cover other pods: all those of the namespace have spent nothing now, and evictions under way are to be
	// counted again.
	IsOther bool
}

// Put takes in a budget as the API server shows it.
func (s *Set) Put(object *policyv1.PodDisruptionBudget) Change {
	list := s.byNamespace[object.Namespace]
	i, found := slices.BinarySearchFunc(list, object.Name, func(b *Budget, name string) int { return cmp.Compare(b.Name, name) })
	if found && equality.Semantic.DeepEqual(list[i].object.Spec, object.Spec) &&
		equality.Semantic.DeepEqual(list[i].object.Status.DisruptedPods, object.Status.DisruptedPods) {
		// It covers what it did: most updates are of its counts.
		b := list[i]
		before, now := b.object.Status.DisruptionsAllowed, object.Status.DisruptionsAllowed
		b.object = object
		if now == before {
			return Change{}
		}
		return Change{Concerns: b.Covers, IsFreed: now > before}
	}
	// A selector that cannot be read covers nothing; the API server admits none.
	selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	b, change := &Budget{Namespace: object.Namespace, Name: object.Name, object: object, selector: selector}, Change{IsOther: true}
	if found {
		change.Concerns, change.IsFreed = list[i].Covers, true
		list[i] = b
	} else {
		s.byNamespace[object.Namespace] = slices.Insert(list, i, b)
	}
	s.reset(object.Namespace)
	return change
}

// Delete drops a budget that is gone.
func (s *Set) Delete(object *policyv1.PodDisruptionBudget) Change {
	before := s.byNamespace[object.Namespace]
	after := slices.DeleteFunc(slices.Clone(before), func(b *Budget) bool {
		return b.Name == object.Name && b.object.UID == object.UID
	})
	switch len(after) {
	case len(before):
		return Change{}
	case 0:
		delete(s.byNamespace, object.Namespace)
	default:
		s.byNamespace[object.Namespace] = after
	}
	s.reset(object.Namespace)
	return Change{Concerns: func(pod *corev1.Pod) bool { return pod.Namespace == object.Namespace }, IsFreed: true, IsOther: true}
}

func (s *Set) reset(namespace string) {
	s.generation++
	for _, b := range s.byNamespace[namespace] {
		b.spent = 0
	}
}
