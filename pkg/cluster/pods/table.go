package pods

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Table makes pods of the objects of the API. Equal pods that come near one another, as those of one job do, share
// their templates, labels, annotations and owners.
type Table struct {
	// OwnsObjects says that the objects are used for nothing else: texts in their labels and annotations may be
	// replaced by equal texts of other pods.
	OwnsObjects bool

	slim  slimmer
	keys  keyMaker // of templates
	lists keyMaker // of amounts
	// The templates that were used lately, and those before them.
	young, old map[string]*lately
	texts      Texts
	amounts    map[string]corev1.ResourceList // those that templates have had lately
}

// lately is a template, and what the last pod that used it had besides.
type lately struct {
	template *Template
	last     *Pod
}

// generation is how many templates are young, and how many texts for each. A table knows twice as many: as many as
// there are jobs whose pods come at one time. That is some megabytes at most, whatever the pods are.
const generation = 1 << 11

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{young: map[string]*lately{}}
}

// New returns a pod that shares nothing with others.
func New(pod *corev1.Pod) *Pod {
	var s slimmer
	t := s.template(pod)
	return made(pod, t.clone(), nil)
}

// Of returns what is kept of a pod. before is its last known state, nil if there is none: what has not changed is
// shared with it.
func (t *Table) Of(pod *corev1.Pod, before *Pod) *Pod {
	if before != nil && before.UID != pod.UID {
		before = nil
	}
	// The API server counts changes of the spec in the generation, apart from the node.
	if before != nil && before.Generation == pod.Generation && pod.Generation != 0 && before.Template.sameResizes(&pod.Status, &t.slim) {
		return t.share(made(pod, before.Template, before), before)
	}
	slim := t.slim.template(pod)
	known := t.find(&slim)
	p := made(pod, known.template, before)
	if before == nil {
		before = known.last
	}
	p = t.share(p, before)
	known.last = p
	return p
}

// find returns the entry of a template, a new one if there is none.
func (t *Table) find(slim *Template) *lately {
	key := t.keys.key(slim)
	if known := t.young[string(key)]; known != nil {
		return known
	}
	known := t.old[string(key)]
	if known == nil {
		known = &lately{template: slim.clone()}
		t.shareAmounts(known.template.Spec.InitContainers)
		t.shareAmounts(known.template.Spec.Containers)
		if t.OwnsObjects {
			t.texts.share(&known.template.Spec)
		}
	}
	if len(t.young) >= generation {
		t.young, t.old = make(map[string]*lately, generation), t.young
	}
	t.young[string(key)] = known
	return known
}

// shareAmounts replaces the amounts of containers by equal ones of others. A map of two amounts is larger than all else
// that is kept of a container.
func (t *Table) shareAmounts(containers []corev1.Container) {
	for i := range containers {
		r := &containers[i].Resources
		r.Requests, r.Limits = t.oneList(r.Requests), t.oneList(r.Limits)
	}
}

func (t *Table) oneList(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	key := t.lists.ofList(list)
	if known := t.amounts[string(key)]; known != nil {
		return known
	}
	if t.amounts == nil || len(t.amounts) >= generation {
		t.amounts = map[string]corev1.ResourceList{}
	}
	t.amounts[string(key)] = list
	return list
}

// made returns a pod with a template.
func made(pod *corev1.Pod, template *Template, before *Pod) *Pod {
	p := &Pod{ObjectMeta: pod.ObjectMeta, Template: template, NodeName: pod.Spec.NodeName, Status: slimStatus(&pod.Status, before)}
	p.ManagedFields = nil
	if _, has := p.Annotations[corev1.LastAppliedConfigAnnotation]; has {
		p.Annotations = maps.Clone(p.Annotations)
		delete(p.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return p
}

// share replaces what a pod has in common with another, its last state or one with the same template, by that of the
// other.
func (t *Table) share(p, other *Pod) *Pod {
	if t.OwnsObjects {
		p.NodeName, p.Namespace = t.texts.One(p.NodeName), t.texts.One(p.Namespace)
		p.GenerateName = t.texts.One(p.GenerateName)
	}
	if other == nil {
		return p
	}
	if other.UID == p.UID && other.Name == p.Name {
		p.Name, p.UID = other.Name, other.UID
		if p.DeletionTimestamp != nil && other.DeletionTimestamp.Equal(p.DeletionTimestamp) {
			p.DeletionTimestamp = other.DeletionTimestamp
		}
	}
	p.Labels, p.Annotations = t.shareMap(p.Labels, other.Labels), t.shareMap(p.Annotations, other.Annotations)
	if slices.EqualFunc(p.OwnerReferences, other.OwnerReferences, isSameOwner) {
		p.OwnerReferences = other.OwnerReferences
	}
	if slices.Equal(p.Finalizers, other.Finalizers) {
		p.Finalizers = other.Finalizers
	}
	return p
}

func isSameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion &&
		ptr.Equal(a.Controller, b.Controller) && ptr.Equal(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func (t *Table) shareMap(own, other map[string]string) map[string]string {
	if maps.Equal(own, other) {
		return other
	}
	if t.OwnsObjects {
		for key, value := range other {
			// An assignment replaces the text of the key too.
			switch mine, has := own[key]; {
			case has && mine == value:
				own[key] = value
			case has:
				own[key] = mine
			}
		}
	}
	return own
}
