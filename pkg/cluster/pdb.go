package cluster

import (
	policyv1 "k8s.io/api/policy/v1"

	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// Budget is described at [budget.Budget].
type Budget = budget.Budget

// Budgets returns the budgets that cover a task's pod, by name. The caller must not change the slice.
func (c *Cluster) Budgets(t *Task) []*Budget { return c.budgets.Of(t.Pod, &t.budgets) }

// spend notes that an eviction was decided, or is no longer under way.
func (c *Cluster) spend(t *Task, sign int) {
	for _, b := range c.Budgets(t) {
		b.Spend(sign)
	}
}

func (c *Cluster) setBudget(object *policyv1.PodDisruptionBudget) {
	c.budgetChanged(object.Namespace, c.budgets.Put(object))
}

func (c *Cluster) dropBudget(object *policyv1.PodDisruptionBudget) {
	c.budgetChanged(object.Namespace, c.budgets.Delete(object))
}

func (c *Cluster) budgetChanged(namespace string, change budget.Change) {
	if change.IsFreed {
		c.world.Note(wake.BudgetFreed)
	}
	if change.Concerns != nil {
		c.reconsider(func(t *Task) bool { return change.Concerns(t.Pod) })
	}
	if !change.IsOther {
		return
	}
	for _, t := range c.leaving {
		if t.Status == Evicting && t.Pod.Namespace == namespace {
			c.spend(t, +1)
		}
	}
}
