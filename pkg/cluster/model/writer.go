package model

import (
	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"

	policyv1 "k8s.io/api/policy/v1"

	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Writer changes what the model knows of the world outside. What it does is not logged and stands at once; it keeps every total.
// A model has one, which [New] returns: code that was given only the [Cluster] cannot use it.
type Writer struct {
	Nodes NodeWriter
	Tasks TaskWriter
	Jobs  JobWriter

	c *Cluster
}

// Classes returns the table of the classes of pods.
func (w *Writer) Classes() *podclass.Table { return w.c.classes }

// Served returns the resources that DeviceClasses stand for.
func (w *Writer) Served() *supplies.Served { return w.c.served }

// IsInTransaction reports whether something is logged that was neither undone nor kept.
func (w *Writer) IsInTransaction() bool { return len(w.c.log) > 0 }

// SettleShares tells the jobs that wait what has changed for them since what queues share was worked out last: who was refused
// after a pod had been placed where no other can go was refused by what it was before.
func (w *Writer) SettleShares() {
	if w.c.sharesMore {
		w.c.sharesMore = false
		w.c.world.Note(wake.ShareChanged)
	}
}

// Queue returns a queue, a placeholder if its object is not known yet.
func (w *Writer) Queue(name string) *cluster.Queue {
	q := w.c.queues[name]
	if q == nil {
		q = &cluster.Queue{Node: quota.Node{Name: name}}
		w.c.queues[name] = q
	}
	return q
}

// DropQueue forgets a queue.
func (w *Writer) DropQueue(q *cluster.Queue) { delete(w.c.queues, q.Name) }

// SetNamespace says what a namespace looks like, nil that it is gone.
func (w *Writer) SetNamespace(name string, object *corev1.Namespace) {
	if object == nil {
		delete(w.c.namespaces, name)
	} else {
		w.c.namespaces[name] = object
	}
}

// RenewNamespaces has the generation of the namespaces grow.
func (w *Writer) RenewNamespaces() {
	w.c.namespacesGeneration++
	w.c.world.Note(wake.NamespaceShown)
}

// SetPriorityClass says what a PriorityClass looks like, nil that it is gone.
func (w *Writer) SetPriorityClass(name string, object *schedulingv1.PriorityClass) {
	if object == nil {
		delete(w.c.priorities, name)
	} else {
		w.c.priorities[name] = object
	}
}

// PriorityClasses returns the PriorityClasses by name. The caller must not change the map.
func (w *Writer) PriorityClasses() map[string]*schedulingv1.PriorityClass { return w.c.priorities }

// SetQuotas says which ResourceQuotas a namespace has, sorted by name.
func (w *Writer) SetQuotas(namespace string, quotas []*corev1.ResourceQuota) {
	if len(quotas) == 0 {
		delete(w.c.quotas, namespace)
	} else {
		w.c.quotas[namespace] = quotas
	}
	w.c.world.Note(wake.QuotaShown)
}

// SetBudget says what a disruption budget looks like. It returns what has changed by that.
func (w *Writer) SetBudget(object *policyv1.PodDisruptionBudget) budget.Change {
	return w.budgetChanged(object.Namespace, w.c.budgets.Put(object))
}

// DeleteBudget says that a disruption budget is gone. It returns what has changed by that.
func (w *Writer) DeleteBudget(object *policyv1.PodDisruptionBudget) budget.Change {
	return w.budgetChanged(object.Namespace, w.c.budgets.Delete(object))
}

func (w *Writer) budgetChanged(namespace string, change budget.Change) budget.Change {
	if change.IsFreed {
		w.c.world.Note(wake.BudgetFreed)
	}
	if change.IsOther {
		for _, t := range w.c.leaving {
			if t.Status == cluster.Evicting && t.Pod.Namespace == namespace {
				w.c.spend(t, +1)
			}
		}
	}
	return change
}
