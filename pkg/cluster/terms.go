package cluster

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term is one pod affinity term that some pods have. Because of it, placing a pod it matches may depend on where those
// pods are; a pod that no term matches need not be asked.
type term struct {
	selector     labels.Selector
	namespaces   []string
	anyNamespace bool // it selects namespaces by label: taken to mean any, which costs time and is never wrong
	pods         int
	keys         []string
}

func (t *term) matches(pod *corev1.Pod) bool {
	return (t.anyNamespace || slices.Contains(t.namespaces, pod.Namespace)) && t.selector.Matches(labels.Set(pod.Labels))
}

func (c *Cluster) anyTermMatches(pod *corev1.Pod) bool {
	for _, t := range c.terms {
		if t.matches(pod) {
			return true
		}
	}
	return false
}

// hasPodTerms reports whether a pod has pod affinity or anti-affinity.
func hasPodTerms(pod *corev1.Pod) bool {
	affinity := pod.Spec.Affinity
	return affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil)
}

// countTerms counts the terms of a pod, if they matter, instead of those counted for the task before. The new come in
// before the old go out, so that a term that stays is never gone.
func (c *Cluster) countTerms(t *Task, pod *corev1.Pod, matter bool) {
	before := t.terms
	t.terms = nil
	if matter && hasPodTerms(pod) {
		for _, podTerm := range podTerms(pod.Spec.Affinity) {
			// A term always marshals: it came out of JSON.
			text, _ := json.Marshal(podTerm)
			key := pod.Namespace + " " + string(text)
			c.addTerm(key, pod.Namespace, podTerm)
			t.terms = append(t.terms, key)
		}
	}
	for _, key := range before {
		c.dropTerm(key)
	}
}

func (c *Cluster) addTerm(key, namespace string, podTerm *corev1.PodAffinityTerm) {
	if known := c.terms[key]; known != nil {
		known.pods++
		return
	}
	added := &term{selector: labels.Nothing(), namespaces: podTerm.Namespaces,
		anyNamespace: podTerm.NamespaceSelector != nil, pods: 1}
	if len(added.namespaces) == 0 {
		added.namespaces = []string{namespace}
	}
	// A selector that cannot be read selects nothing, as in kube-scheduler; the API server lets none in.
	if selector, err := metav1.LabelSelectorAsSelector(podTerm.LabelSelector); err == nil {
		added.selector = selector
	}
	added.keys = append(selectorKeys(podTerm.LabelSelector), podTerm.MatchLabelKeys...)
	added.keys = append(added.keys, podTerm.MismatchLabelKeys...)
	if len(c.terms) == 0 {
		c.classesAreStale = true
	}
	for _, label := range added.keys {
		if c.labelKeys[label]++; c.labelKeys[label] == 1 {
			c.classesAreStale = true
		}
	}
	c.terms[key] = added
	c.termsGeneration++
}

func (c *Cluster) dropTerm(key string) {
	known := c.terms[key]
	if known.pods--; known.pods > 0 {
		return
	}
	for _, label := range known.keys {
		if c.labelKeys[label]--; c.labelKeys[label] == 0 {
			delete(c.labelKeys, label)
		}
	}
	delete(c.terms, key)
	c.termsGeneration++
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

// Concerns reports whether it may depend on where another task is whether a task fits on a node: a term of its pod that must hold
// selects the other's.
func (c *Cluster) Concerns(t, other *Task) bool {
	if !t.Class.HasTerms {
		return false
	}
	spec := &t.Pod.Spec
	for i := range spec.TopologySpreadConstraints {
		s := &spec.TopologySpreadConstraints[i]
		if other.Pod.Namespace == t.Pod.Namespace && s.WhenUnsatisfiable == corev1.DoNotSchedule && isSelected(s.LabelSelector, other.Pod) {
			return true
		}
	}
	if spec.Affinity == nil {
		return false
	}
	if a := spec.Affinity.PodAffinity; a != nil && requires(a.RequiredDuringSchedulingIgnoredDuringExecution, t.Pod, other.Pod) {
		return true
	}
	a := spec.Affinity.PodAntiAffinity
	return a != nil && requires(a.RequiredDuringSchedulingIgnoredDuringExecution, t.Pod, other.Pod)
}

// requires reports whether any of a pod's terms may select another pod.
func requires(terms []corev1.PodAffinityTerm, pod, other *corev1.Pod) bool {
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		isNear := term.NamespaceSelector != nil || slices.Contains(term.Namespaces, other.Namespace) ||
			len(term.Namespaces) == 0 && other.Namespace == pod.Namespace
		return isNear && isSelected(term.LabelSelector, other)
	})
}

func isSelected(selector *metav1.LabelSelector, pod *corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(pod.Labels))
}
