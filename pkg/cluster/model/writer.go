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

// Writer applies changes of the cluster to the model. Its changes are not logged, and cannot be undone. It keeps all
// totals. A model has one, which [New] returns: code that has only the [Cluster] cannot use it.
type Writer struct {
	Nodes NodeWriter
	Tasks TaskWriter
	Jobs  JobWriter

	c *Cluster
}

// Classes returns the table of the classes of pods.
func (w *Writer) Classes() *podclass.Table { return w.c.classes }

// Served returns the extended resources of DeviceClasses.
func (w *Writer) Served() *supplies.Served { return w.c.served }

// IsInTransaction reports whether logged operations are neither undone nor kept.
func (w *Writer) IsInTransaction() bool { return len(w.c.log) > 0 }

// RequireNoTransaction panics if it is called inside a transaction; what says what must not happen there.
func (w *Writer) RequireNoTransaction(what string) {
	invariant(!w.IsInTransaction(), "%s inside a transaction", what)
}

// SettleShares notes a cause if what queues share has changed since it was last settled. A node changes it, or a pod
// that is in no queue, or one on a node that is not usable.
func (w *Writer) SettleShares() {
	if w.c.settleShared() {
		w.c.world.Note(wake.ShareChanged)
	}
}

// Queue returns a queue by name. It makes a placeholder if the object is not known yet.
func (w *Writer) Queue(name string) *cluster.Queue {
	q := w.c.queues[name]
	if q == nil {
		q = &cluster.Queue{Node: quota.Node{Name: name}}
		w.c.queues[name] = q
	}
	return q
}

// DropQueue removes a queue.
func (w *Writer) DropQueue(q *cluster.Queue) { delete(w.c.queues, q.Name) }

// SetNamespace adds or updates a namespace. Nil removes it.
func (w *Writer) SetNamespace(name string, object *corev1.Namespace) {
	if object == nil {
		delete(w.c.namespaces, name)
	} else {
		w.c.namespaces[name] = object
	}
}

// RenewNamespaces increases the generation of the namespaces.
func (w *Writer) RenewNamespaces() {
	w.c.namespacesGeneration++
	w.c.world.Note(wake.NamespaceShown)
}

// SetPriorityClass adds or updates a PriorityClass. Nil removes it.
func (w *Writer) SetPriorityClass(name string, object *schedulingv1.PriorityClass) {
	if object == nil {
		delete(w.c.priorities, name)
	} else {
		w.c.priorities[name] = object
	}
}

// PriorityClasses returns the PriorityClasses by name. The caller must not change the map.
func (w *Writer) PriorityClasses() map[string]*schedulingv1.PriorityClass { return w.c.priorities }

// SetQuotas sets the ResourceQuotas of a namespace, which must be sorted by name.
func (w *Writer) SetQuotas(namespace string, quotas []*corev1.ResourceQuota) {
	if len(quotas) == 0 {
		delete(w.c.quotas, namespace)
	} else {
		w.c.quotas[namespace] = quotas
	}
	w.c.world.Note(wake.QuotaShown)
}

// SetBudget adds or updates a disruption budget. It returns what has changed.
func (w *Writer) SetBudget(object *policyv1.PodDisruptionBudget) budget.Change {
	return w.budgetChanged(object.Namespace, w.c.budgets.Put(object))
}

// DeleteBudget removes a disruption budget. It returns what has changed.
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
