package mistakes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/similar"
	"hekla.sh/hekla/pkg/apis/podspec"
)

// Mistake is a name in a job that nothing in the cluster has.
type Mistake struct {
	// Name is as the job has it, Meant the name that is there and most like it, "" if none is like it.
	Name  string `json:"name"`
	Meant string `json:"meant,omitempty"`
	// Message is a sentence with both.
	Message string `json:"message"`
}

// Of says that there is no such thing of a name, and which of the known names may have been meant.
func Of(there, name string, known []string) Mistake {
	m := Mistake{Name: name, Meant: similar.Nearest(name, known), Message: there}
	if m.Meant != "" {
		m.Message += fmt.Sprintf("; did you mean %s?", m.Meant)
	}
	return m
}

// MaxValues is how many values of a label, and how many keys, are kept. A name that is not among those kept is no
// mistake.
const MaxValues = 1000

// names are distinct names. Once there are more than MaxValues, further ones are not known.
type names struct {
	of     map[string]bool
	isFull bool
}

func (n *names) add(name string) {
	if n.of == nil {
		n.of = map[string]bool{}
	}
	if !n.of[name] && len(n.of) >= MaxValues {
		n.isFull = true
		return
	}
	n.of[name] = true
}

// lacks reports whether a name is certainly not there.
func (n *names) lacks(name string) bool { return n == nil || !n.isFull && !n.of[name] }

func (n *names) list() []string {
	if n == nil {
		return nil
	}
	return slices.Collect(maps.Keys(n.of))
}

// Inventory is what nodes have that jobs name.
type Inventory struct {
	resources names
	nodes     names
	keys      names             // of labels
	values    map[string]*names // of labels, by key
	taints    map[corev1.Taint]bool
	count     int
}

// NewInventory reads nodes.
func NewInventory(nodes func(yield func(*corev1.Node) bool)) *Inventory {
	i := &Inventory{values: map[string]*names{}, taints: map[corev1.Taint]bool{}}
	for node := range nodes {
		i.count++
		i.nodes.add(node.Name)
		for name, quantity := range node.Status.Allocatable {
			if !quantity.IsZero() {
				i.resources.add(string(name))
			}
		}
		for key, value := range node.Labels {
			if i.keys.add(key); i.keys.lacks(key) || !i.keys.of[key] {
				continue
			}
			if i.values[key] == nil {
				i.values[key] = &names{}
			}
			i.values[key].add(value)
		}
		for _, taint := range node.Spec.Taints {
			if taint.TimeAdded = nil; taint.Effect != corev1.TaintEffectPreferNoSchedule && len(i.taints) < MaxValues {
				i.taints[taint] = true
			}
		}
	}
	return i
}

// Spec returns the mistakes of the spec of a pod or of a template, in the order of the spec's fields.
func (i *Inventory) Spec(spec *corev1.PodSpec) []Mistake {
	if i.count == 0 {
		return nil // there is nothing to compare with
	}
	found := i.ofSelector(spec.NodeSelector)
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		found = append(found, i.ofTerms(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)...)
	}
	found = append(found, i.ofTopology(spec)...)
	found = append(found, i.ofTolerations(spec.Tolerations)...)
	return append(found, i.Resources(podspec.Requests(spec))...)
}

// Resources returns the resources among those requested that no node offers. Names of quotas, such as count/pods, which
// minResources of a PodGroup has too, are not asked of nodes.
func (i *Inventory) Resources(requests corev1.ResourceList) (found []Mistake) {
	if i.count == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		quantity := requests[name]
		if quantity.IsZero() || isOfQuota(name) || !i.resources.lacks(string(name)) {
			continue
		}
		found = append(found, Of("no node offers "+string(name), string(name), i.resources.list()))
	}
	return found
}

func isOfQuota(name corev1.ResourceName) bool {
	return slices.ContainsFunc([]string{"requests.", "limits.", "count/"}, func(prefix string) bool { return strings.HasPrefix(string(name), prefix) })
}

func (i *Inventory) ofSelector(selector map[string]string) (found []Mistake) {
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if m, is := i.ofLabel(key, selector[key]); is {
			found = append(found, m)
		}
	}
	return found
}

// ofLabel looks for a label that a node must have, with one of some values or with any.
func (i *Inventory) ofLabel(key string, values ...string) (Mistake, bool) {
	if i.keys.lacks(key) {
		return Of("no node has the label "+key, key, i.keys.list()), true
	}
	there := i.values[key]
	if there == nil || len(values) == 0 || slices.ContainsFunc(values, func(value string) bool { return !there.lacks(value) }) {
		return Mistake{}, false
	}
	m := Of(fmt.Sprintf("no node has the label %s=%s", key, strings.Join(values, "|")), values[0], there.list())
	if m.Meant == "" && len(there.of) <= 5 {
		m.Message += ", only " + strings.Join(slices.Sorted(maps.Keys(there.of)), ", ")
	}
	return m, true
}

// ofTerms returns the mistakes of the first term, if all have some: one without may be right.
func (i *Inventory) ofTerms(terms []corev1.NodeSelectorTerm) (first []Mistake) {
	for n := range terms {
		found := i.ofTerm(&terms[n])
		if len(found) == 0 {
			return nil
		}
		if first == nil {
			first = found
		}
	}
	return first
}

func (i *Inventory) ofTerm(term *corev1.NodeSelectorTerm) (found []Mistake) {
	for _, e := range term.MatchExpressions {
		var m Mistake
		is := false
		switch e.Operator {
		case corev1.NodeSelectorOpIn:
			m, is = i.ofLabel(e.Key, e.Values...)
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			m, is = i.ofLabel(e.Key)
		}
		if is {
			found = append(found, m)
		}
	}
	for _, e := range term.MatchFields {
		if e.Key == "metadata.name" && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) > 0 &&
			!slices.ContainsFunc(e.Values, func(name string) bool { return !i.nodes.lacks(name) }) {
			found = append(found, Of("there is no node "+strings.Join(e.Values, "|"), e.Values[0], i.nodes.list()))
		}
	}
	return found
}

// ofTopology looks for the keys by which pods are next to or apart from others.
func (i *Inventory) ofTopology(spec *corev1.PodSpec) (found []Mistake) {
	check := func(key string) {
		if m, is := i.ofLabel(key); is && !slices.Contains(found, m) {
			found = append(found, m)
		}
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		for n := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			check(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[n].TopologyKey)
		}
	}
	for n := range spec.TopologySpreadConstraints {
		if c := &spec.TopologySpreadConstraints[n]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			check(c.TopologyKey)
		}
	}
	return found
}

// ofTolerations looks for tolerations that are like a taint which keeps the pod from a node, and tolerate none
// that is there.
func (i *Inventory) ofTolerations(tolerations []corev1.Toleration) (found []Mistake) {
	refusing := map[string]corev1.Taint{} // by key, of several the first
	for taint := range i.taints {
		first, has := refusing[taint.Key]
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(&t, taint) }) && (!has || taint.ToString() < first.ToString()) {
			refusing[taint.Key] = taint
		}
	}
	for n := range tolerations {
		t := &tolerations[n]
		isUseful, isThere := false, false
		for taint := range i.taints {
			isUseful, isThere = isUseful || tolerates(t, taint), isThere || taint.Key == t.Key
		}
		taint, refuses := refusing[t.Key]
		switch {
		case t.Key == "" || isUseful || podspec.IsTaintOfKubernetes(t.Key): // the API server adds some of these to every pod
		case refuses:
			found = append(found, Mistake{Name: t.Key, Meant: taint.ToString(),
				Message: fmt.Sprintf("the toleration %s does not tolerate the taint %s", said(t), taint.ToString())})
		case !isThere:
			if meant := similar.Nearest(t.Key, slices.Collect(maps.Keys(refusing))); meant != "" {
				taint := refusing[meant]
				found = append(found, Mistake{Name: t.Key, Meant: meant,
					Message: fmt.Sprintf("no node has a taint %s, which is tolerated; did you mean %s, as in the taint %s?", t.Key, meant, taint.ToString())})
			}
		}
	}
	return found
}

func tolerates(t *corev1.Toleration, taint corev1.Taint) bool {
	return t.ToleratesTaint(logr.Discard(), &taint, false)
}

// said is a toleration as a taint is written.
func said(t *corev1.Toleration) string {
	text := t.Key
	if t.Operator != corev1.TolerationOpExists && t.Value != "" {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}
