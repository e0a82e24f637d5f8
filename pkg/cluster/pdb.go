package cluster

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hekla.sh/hekla/pkg/cluster/wake"
)

// Budget is a PodDisruptionBudget: how many of the pods it covers may be evicted.
type Budget struct {
	Namespace, Name string

	object   *policyv1.PodDisruptionBudget
	selector labels.Selector
	spent    int // evictions that were decided and that the API does not show yet
}

// Covers reports whether the budget is about a task's pod.
func (b *Budget) Covers(t *Task) bool {
	if t.Pod.Namespace != b.Namespace || !b.selector.Matches(labels.Set(t.Pod.Labels)) {
		return false
	}
	// What the API server has counted as disrupted is not counted twice.
	_, isDisrupted := b.object.Status.DisruptedPods[t.Pod.Name]
	return !isDisrupted
}

// Left is how many more evictions the budget allows, those that were decided taken off. It may be negative.
func (b *Budget) Left() int { return int(b.object.Status.DisruptionsAllowed) - b.spent }

// Budgets returns the budgets that cover a task's pod, by name. The caller must not change the slice.
func (c *Cluster) Budgets(t *Task) []*Budget {
	all := c.budgets[t.Pod.Namespace]
	if len(all) == 0 {
		return nil
	}
	if t.budgetsWhen != c.budgetsGeneration {
		t.budgetsWhen = c.budgetsGeneration
		t.budgets = nil
		for _, b := range all {
			if b.Covers(t) {
				t.budgets = append(t.budgets, b)
			}
		}
	}
	return t.budgets
}

// spend notes that an eviction under a budget was decided, or is no longer under way.
func (c *Cluster) spend(t *Task, decided bool) {
	for _, b := range c.Budgets(t) {
		if decided {
			b.spent++
		} else {
			b.spent--
		}
	}
}

func (c *Cluster) setBudget(object *policyv1.PodDisruptionBudget) {
	list := c.budgets[object.Namespace]
	i, found := slices.BinarySearchFunc(list, object.Name, func(b *Budget, name string) int { return cmp.Compare(b.Name, name) })
	if found && equality.Semantic.DeepEqual(list[i].object.Spec, object.Spec) &&
		equality.Semantic.DeepEqual(list[i].object.Status.DisruptedPods, object.Status.DisruptedPods) {
		// It covers what it did: most updates are of its counts.
		b := list[i]
		before := b.object
		b.object = object
		if object.Status.DisruptionsAllowed > before.Status.DisruptionsAllowed {
			c.world.Note(wake.BudgetFreed)
		}
		if object.Status.DisruptionsAllowed != before.Status.DisruptionsAllowed {
			c.reconsider(b.Covers)
		}
		return
	}
	// A selector that cannot be read covers nothing; the API server admits none.
	selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	b := &Budget{Namespace: object.Namespace, Name: object.Name, object: object, selector: selector}
	if found {
		c.reconsider(list[i].Covers)
		list[i] = b
		c.world.Note(wake.BudgetFreed)
	} else {
		c.budgets[object.Namespace] = slices.Insert(list, i, b)
	}
	c.recount(object.Namespace)
}

func (c *Cluster) dropBudget(object *policyv1.PodDisruptionBudget) {
	before := c.budgets[object.Namespace]
	after := slices.DeleteFunc(slices.Clone(before), func(b *Budget) bool {
		return b.Name == object.Name && b.object.UID == object.UID
	})
	switch len(after) {
	case len(before):
		return
	case 0:
		delete(c.budgets, object.Namespace)
	default:
		c.budgets[object.Namespace] = after
	}
	c.world.Note(wake.BudgetFreed)
	c.reconsider(func(t *Task) bool { return t.Pod.Namespace == object.Namespace })
	c.recount(object.Namespace)
}

// recount finds out anew which budgets cover which tasks, and counts the evictions under way.
func (c *Cluster) recount(namespace string) {
	c.budgetsGeneration++
	for _, b := range c.budgets[namespace] {
		b.spent = 0
	}
	for _, t := range c.leaving {
		if t.Status == Evicting && t.Pod.Namespace == namespace {
			c.spend(t, true)
		}
	}
}

// Quotas returns the ResourceQuotas of a namespace, by name. The caller must not change them.
func (c *Cluster) Quotas(namespace string) []*corev1.ResourceQuota { return c.quotas[namespace] }

func (c *Cluster) setQuota(object *corev1.ResourceQuota) {
	list := c.quotas[object.Namespace]
	i, found := slices.BinarySearchFunc(list, object.Name, func(q *corev1.ResourceQuota, name string) int { return cmp.Compare(q.Name, name) })
	rationed := speaksOfClasses(object)
	switch {
	case !found:
		c.quotas[object.Namespace] = slices.Insert(list, i, object)
	case equality.Semantic.DeepEqual(list[i].Spec, object.Spec) && equality.Semantic.DeepEqual(list[i].Status, object.Status):
		list[i] = object
		return
	default:
		rationed = !rationsAlike(list[i], object)
		list[i] = object
	}
	c.world.Note(wake.QuotaShown)
	if rationed {
		c.requoted[object.Namespace] = struct{}{}
	}
}

func (c *Cluster) dropQuota(object *corev1.ResourceQuota) {
	before := c.quotas[object.Namespace]
	after := slices.DeleteFunc(slices.Clone(before), func(q *corev1.ResourceQuota) bool {
		return q.Name == object.Name && q.UID == object.UID
	})
	switch len(after) {
	case len(before):
		return
	case 0:
		delete(c.quotas, object.Namespace)
	default:
		c.quotas[object.Namespace] = after
	}
	c.world.Note(wake.QuotaShown)
	c.requoted[object.Namespace] = struct{}{}
}
