package podclass

import (
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// Table holds the classes that are in use.
type Table struct {
	// IsStale is set while pods that wait may have other classes than they would be given now: other labels matter, or other
	// resources are served as devices. The owner of the table gives every such pod its class anew, and clears it.
	IsStale bool

	index   *resources.Index
	served  *supplies.Served
	keys    *Keys
	terms   Terms
	classes map[string]*Class
}

// NewTable returns an empty table.
func NewTable(index *resources.Index, served *supplies.Served) *Table {
	return &Table{index: index, served: served, keys: &Keys{}, classes: map[string]*Class{}, terms: newTerms()}
}

// Keys returns what plugins have declared to read.
func (t *Table) Keys() *Keys { return t.keys }

// UseKeys has the classes go by other keys. Pods that have a class are for the caller to see to.
func (t *Table) UseKeys(keys *Keys) { t.keys = keys }

// Len is how many classes are in use.
func (t *Table) Len() int { return len(t.classes) }

// DependsOnPods reports whether the answer for a class may depend on pods elsewhere than on the node asked about: it has
// pod affinity or spread constraints, or another pod's affinity may speak of it.
func (t *Table) DependsOnPods(k *Class) bool {
	if k.HasTerms {
		return true
	}
	if k.matchedWhen != t.terms.generation {
		k.matched, k.matchedWhen = t.terms.match(k.Pod), t.terms.generation
	}
	return k.matched
}

// CountTerms counts the terms of a pod about other pods, if they matter, instead of those that were counted for it before, and
// returns under what they are counted now.
func (t *Table) CountTerms(before []string, pod *corev1.Pod, matter bool) []string {
	now, isStale := t.terms.replace(before, pod, matter)
	t.IsStale = t.IsStale || isStale
	return now
}

// Audit says what is wrong with the terms, "" if nothing is.
func (t *Table) Audit() string { return t.terms.audit() }
