package domains

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxKeys is how many topology keys a pod may have: of one with more none is looked at. A few such pods would have
	// all keys read again again and again, of every node.
	MaxKeys = 64
	// MaxTerms is how many terms and constraints with their namespaces, expressions and values a pod may have. They are
	// held against every other pod that may be selected, of which a large cluster has hundreds of thousands.
	MaxTerms = 256
)

// TooMuch says what a pod has too much of, "" if it is within [MaxKeys] and [MaxTerms].
func TooMuch(pod *corev1.Pod) string {
	s := sizeOf(pod)
	switch {
	case len(s.keys) > MaxKeys:
		return fmt.Sprintf("pod has %d topology keys in its affinity and spread constraints, and may have %d", len(s.keys), MaxKeys)
	case s.terms > MaxTerms:
		return fmt.Sprintf("pod has %d terms, namespaces, expressions and values in its affinity and spread constraints, and may have %d", s.terms, MaxTerms)
	}
	return ""
}

// size is what the affinity to other pods and the spread constraints of a pod have.
type size struct {
	keys  map[string]bool // only of pods that may have too many
	terms int
}

func sizeOf(pod *corev1.Pod) size {
	s := size{}
	if countTerms(pod) > MaxKeys {
		s.keys = map[string]bool{}
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		s.add(c.TopologyKey, c.LabelSelector)
	}
	forTerms(pod, func(t *corev1.PodAffinityTerm) {
		s.add(t.TopologyKey, t.LabelSelector)
		s.terms += len(t.Namespaces)
	})
	return s
}

func (s *size) add(key string, selector *metav1.LabelSelector) {
	if s.keys != nil {
		s.keys[key] = true
	}
	s.terms++
	if selector == nil {
		return
	}
	s.terms += len(selector.MatchLabels)
	for i := range selector.MatchExpressions {
		s.terms += 1 + len(selector.MatchExpressions[i].Values)
	}
}

// countTerms is how many terms and constraints these are.
func countTerms(pod *corev1.Pod) int {
	n := len(pod.Spec.TopologySpreadConstraints)
	forTerms(pod, func(*corev1.PodAffinityTerm) { n++ })
	return n
}

// forTerms calls a function with each term of the affinity to other pods.
func forTerms(pod *corev1.Pod, do func(*corev1.PodAffinityTerm)) {
	each := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			do(&required[i])
		}
		for i := range preferred {
			do(&preferred[i].PodAffinityTerm)
		}
	}
	a := pod.Spec.Affinity
	if a == nil {
		return
	}
	if of := a.PodAffinity; of != nil {
		each(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if of := a.PodAntiAffinity; of != nil {
		each(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}
