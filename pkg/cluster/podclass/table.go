package podclass

import (
	"cmp"

	"hekla.sh/hekla/internal/recent"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// Table holds all classes in use.
type Table struct {
	// IsStale is set while pending pods may need other classes: other labels matter, or other resources come from
	// devices. The owner of the table assigns every such pod its class again, and clears it.
	IsStale bool

	index    *resources.Index
	served   *supplies.Served
	keys     *Keys
	terms    Terms
	classes  map[string]*Class
	amounts  recent.Map[*pods.Template, amounts]
	selected labelCounts // of nodes, by the classes that select by them

	revealed int // resources, when the amounts were read
}

// NewTable returns an empty table.
func NewTable(index *resources.Index, served *supplies.Served) *Table {
	return &Table{index: index, served: served, keys: &Keys{}, classes: map[string]*Class{}, selected: labelCounts{}, terms: newTerms()}
}

// Keys returns the keys that plugins have declared.
func (t *Table) Keys() *Keys { return t.keys }

// UseKeys sets other keys. The caller must assign the classes of existing pods again.
func (t *Table) UseKeys(keys *Keys) { t.keys = keys }

// Len is the number of classes in use.
func (t *Table) Len() int { return len(t.classes) }

// TakeRevealed reports whether resources have come to be known since it was last called. Then the requests of pods that
// ask for [resources.Further] are others now.
func (t *Table) TakeRevealed() bool {
	now := t.index.Revealed()
	if t.revealed == now {
		return false
	}
	t.revealed = now
	t.amounts.Clear()
	return true
}

// DependsOnPods reports whether the answer for a class may depend on pods on other nodes: its pods have affinity or
// spread, or the affinity of another pod may select them.
func (t *Table) DependsOnPods(k *Class) bool {
	if k.HasTerms {
		return true
	}
	if k.matchedWhen != t.terms.generation {
		k.matched, k.matchedWhen = t.terms.match(k.Pod.Namespace, k.Pod.Labels), t.terms.generation
	}
	return k.matched
}

// CountTerms replaces the affinity terms that were counted for a pod. It counts none if they do not matter. It returns
// their keys.
func (t *Table) CountTerms(before []string, pod *pods.Pod, matter bool) []string {
	now, isStale := t.terms.replace(before, pod, matter)
	t.IsStale = t.IsStale || isStale
	return now
}

// Audit says what is wrong with the counts of terms and labels, "" if nothing is.
func (t *Table) Audit() string { return cmp.Or(t.terms.audit(), t.selected.audit(t.classes)) }
