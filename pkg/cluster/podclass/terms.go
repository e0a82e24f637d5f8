package podclass

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hekla.sh/hekla/pkg/cluster/pods"
)

// Terms are the affinity terms of all pods, each once, and the labels by which they select.
type Terms struct {
	terms      map[string]*term
	labelKeys  map[string]int // by the number of terms that use them
	generation uint64         // grows with every term that is added or removed
}

func newTerms() Terms { return Terms{terms: map[string]*term{}, labelKeys: map[string]int{}} }

// term is one affinity term, which some pods have. Placing a pod that it selects may depend on where those pods are.
type term struct {
	selector     labels.Selector
	namespaces   []string
	anyNamespace bool // it selects namespaces by label; the scheduler assumes any, which may cost time but is never wrong
	pods         int
	keys         []string
}

func (t *term) matches(namespace string, of map[string]string) bool {
	return (t.anyNamespace || slices.Contains(t.namespaces, namespace)) && t.selector.Matches(labels.Set(of))
}

// match reports whether any term may select pods of a namespace with some labels.
func (x *Terms) match(namespace string, of map[string]string) bool {
	for _, t := range x.terms {
		if t.matches(namespace, of) {
			return true
		}
	}
	return false
}

// hasPodTerms reports whether a pod has pod affinity or anti-affinity.
func hasPodTerms(pod *pods.Pod) bool {
	affinity := pod.Spec.Affinity
	return affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil)
}

// replace replaces the terms that were counted for a pod. It counts none if they do not matter. It returns their keys,
// and whether further labels matter now. New terms are added before old ones are removed, so that a term that stays is
// never dropped.
func (x *Terms) replace(before []string, pod *pods.Pod, matter bool) (now []string, isStale bool) {
	if matter && hasPodTerms(pod) {
		for _, podTerm := range podTerms(pod.Spec.Affinity) {
			// A term always marshals, because it comes from JSON.
			text, _ := json.Marshal(podTerm)
			key := pod.Namespace + " " + string(text)
			isStale = x.add(key, pod.Namespace, podTerm) || isStale
			now = append(now, key)
		}
	}
	for _, key := range before {
		x.drop(key)
	}
	return now, isStale
}

func (x *Terms) add(key, namespace string, podTerm *corev1.PodAffinityTerm) (isStale bool) {
	if known := x.terms[key]; known != nil {
		known.pods++
		return false
	}
	added := &term{selector: labels.Nothing(), namespaces: podTerm.Namespaces,
		anyNamespace: podTerm.NamespaceSelector != nil, pods: 1}
	if len(added.namespaces) == 0 {
		added.namespaces = []string{namespace}
	}
	// A selector that cannot be read selects nothing, as in kube-scheduler. The API server accepts none.
	if selector, err := metav1.LabelSelectorAsSelector(podTerm.LabelSelector); err == nil {
		added.selector = selector
	}
	added.keys = append(selectorKeys(podTerm.LabelSelector), podTerm.MatchLabelKeys...)
	added.keys = append(added.keys, podTerm.MismatchLabelKeys...)
	isStale = len(x.terms) == 0
	for _, label := range added.keys {
		x.labelKeys[label]++
		isStale = isStale || x.labelKeys[label] == 1
	}
	x.terms[key] = added
	x.generation++
	return isStale
}

func (x *Terms) drop(key string) {
	known := x.terms[key]
	if known.pods--; known.pods > 0 {
		return
	}
	for _, label := range known.keys {
		if x.labelKeys[label]--; x.labelKeys[label] == 0 {
			delete(x.labelKeys, label)
		}
	}
	delete(x.terms, key)
	x.generation++
}

// audit says what is wrong with the labels of terms, "" if nothing is.
func (x *Terms) audit() string {
	keys := map[string]bool{}
	for _, t := range x.terms {
		for _, key := range t.keys {
			keys[key] = true
		}
	}
	if len(keys) != len(x.labelKeys) {
		return fmt.Sprintf("number of labels that terms ask for is %d, should be %d", len(x.labelKeys), len(keys))
	}
	return ""
}

func podTerms(affinity *corev1.Affinity) []*corev1.PodAffinityTerm {
	var terms []*corev1.PodAffinityTerm
	collect := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if a := affinity.PodAffinity; a != nil {
		collect(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := affinity.PodAntiAffinity; a != nil {
		collect(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

func selectorKeys(selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	var keys []string
	for key := range selector.MatchLabels {
		keys = append(keys, key)
	}
	for i := range selector.MatchExpressions {
		keys = append(keys, selector.MatchExpressions[i].Key)
	}
	return keys
}

func selectorHas(selector *metav1.LabelSelector, key string) bool {
	return slices.Contains(selectorKeys(selector), key)
}

// Concerns reports whether another pod may decide if a pod fits on a node: a required term of the pod selects the
// other.
func Concerns(pod, other *pods.Pod) bool {
	spec := &pod.Spec
	for i := range spec.TopologySpreadConstraints {
		s := &spec.TopologySpreadConstraints[i]
		if other.Namespace == pod.Namespace && s.WhenUnsatisfiable == corev1.DoNotSchedule && isSelected(s.LabelSelector, other) {
			return true
		}
	}
	if spec.Affinity == nil {
		return false
	}
	if a := spec.Affinity.PodAffinity; a != nil && requires(a.RequiredDuringSchedulingIgnoredDuringExecution, pod, other) {
		return true
	}
	a := spec.Affinity.PodAntiAffinity
	return a != nil && requires(a.RequiredDuringSchedulingIgnoredDuringExecution, pod, other)
}

// requires reports whether one of a pod's terms may select another pod.
func requires(terms []corev1.PodAffinityTerm, pod, other *pods.Pod) bool {
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		isNear := term.NamespaceSelector != nil || slices.Contains(term.Namespaces, other.Namespace) ||
			len(term.Namespaces) == 0 && other.Namespace == pod.Namespace
		return isNear && isSelected(term.LabelSelector, other)
	})
}

func isSelected(selector *metav1.LabelSelector, pod *pods.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(pod.Labels))
}
