package budget

import (
	"cmp"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hekla.sh/hekla/pkg/cluster/pods"
)

// Budget is a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string

	object   *policyv1.PodDisruptionBudget
	selector labels.Selector
	spent    int // evictions that were decided and do not show in the API yet
}

// Covers reports whether the budget selects a pod.
func (b *Budget) Covers(pod *pods.Pod) bool {
	if pod.Namespace != b.Namespace || !b.selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	// A pod that the API server counts as disrupted must not count twice.
	_, isDisrupted := b.object.Status.DisruptedPods[pod.Name]
	return !isDisrupted
}

// Left is how many more evictions the budget allows, less those that were decided. It may be negative.
func (b *Budget) Left() int { return int(b.object.Status.DisruptionsAllowed) - b.spent }

// Allowed is status.disruptionsAllowed.
func (b *Budget) Allowed() int { return int(b.object.Status.DisruptionsAllowed) }

// Spent is the number of evictions that were decided and do not show in the API yet.
func (b *Budget) Spent() int { return b.spent }

// Spend counts an eviction that was decided, or with -1 one that has ended or shows in the API.
func (b *Budget) Spend(sign int) { b.spent += sign }

// Set holds all budgets.
type Set struct {
	byNamespace map[string][]*Budget // sorted by name
	generation  uint64               // grows when a budget is added, removed or selects other pods
}

// NewSet returns an empty set.
func NewSet() Set { return Set{byNamespace: map[string][]*Budget{}} }

// Found caches which budgets cover a pod. The zero value caches nothing, and must replace it when the pod changes.
type Found struct {
	budgets []*Budget
	when    uint64 // the generation of the set, 0 if nothing is cached
}

// Of returns the budgets that cover a pod, by name. The caller must not change the slice.
func (s *Set) Of(pod *pods.Pod, found *Found) []*Budget {
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

// Change is what has changed with an object.
type Change struct {
	// Concerns says for which pods the answer to an eviction may have changed. Nil means none.
	Concerns func(*pods.Pod) bool
	// IsFreed is set if more evictions may be allowed.
	IsFreed bool
	// IsOther is set if budgets select other pods. All budgets of the namespace then have spent nothing, and the caller
	// must count the evictions under way again.
	IsOther bool
}

// Put adds or updates a budget from the API.
func (s *Set) Put(object *policyv1.PodDisruptionBudget) Change {
	list := s.byNamespace[object.Namespace]
	i, found := slices.BinarySearchFunc(list, object.Name, func(b *Budget, name string) int { return cmp.Compare(b.Name, name) })
	if found && equality.Semantic.DeepEqual(list[i].object.Spec, object.Spec) &&
		equality.Semantic.DeepEqual(list[i].object.Status.DisruptedPods, object.Status.DisruptedPods) {
		// It selects the same pods: most updates change its counts.
		b := list[i]
		before, now := b.object.Status.DisruptionsAllowed, object.Status.DisruptionsAllowed
		b.object = object
		if now == before {
			return Change{}
		}
		return Change{Concerns: b.Covers, IsFreed: now > before}
	}
	// A selector that cannot be read selects nothing. The API server accepts none.
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

// Delete removes a budget.
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
	return Change{Concerns: func(pod *pods.Pod) bool { return pod.Namespace == object.Namespace }, IsFreed: true, IsOther: true}
}

func (s *Set) reset(namespace string) {
	s.generation++
	for _, b := range s.byNamespace[namespace] {
		b.spent = 0
	}
}
