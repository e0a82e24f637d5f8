package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

const namespace = "work"

// objects are the commands that add an object.
var objects = map[string]func(*parser, []string) error{"class": (*parser).class, "node": (*parser).node, "hypernode": (*parser).hyperNode, "queue": (*parser).queue,
	"gang": (*parser).beginGang, "pod": (*parser).lonePod, "budget": (*parser).budget, "quota": (*parser).quota}

// word is "KEY", "KEY=VALUE" or "KIND:KEY=VALUE".
type word struct{ text, kind, key, value string }

func split(text string) word {
	w := word{text: text, key: text}
	w.key, w.value, _ = strings.Cut(text, "=")
	if kind, key, ok := strings.Cut(w.key, ":"); ok {
		w.kind, w.key = kind, key
	}
	return w
}

// number reads the value of a word.
func (w word) number() (int64, error) {
	n, err := strconv.ParseInt(w.value, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", w.text)
	}
	return n, nil
}

// isTrue reads the value of a word that may stand alone.
func (w word) isTrue() (bool, error) {
	if w.value == "" && !strings.Contains(w.text, "=") {
		return true, nil
	}
	b, err := strconv.ParseBool(w.value)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", w.text)
	}
	return b, nil
}

// amount adds an amount of a resource to a list.
func (w word) amount(list *corev1.ResourceList) error {
	q, err := resource.ParseQuantity(w.value)
	if err != nil {
		return fmt.Errorf("%q is no amount: %w", w.text, err)
	}
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[corev1.ResourceName(w.key)] = q
	return nil
}

// isAmount reports whether a word is an amount of a resource.
func (w word) isAmount() bool {
	name, _, isExtended := strings.Cut(w.key, "/")
	return w.kind == "" && w.value != "" && (isExtended || slices.Contains([]string{"cpu", "memory", "pods", "ephemeral-storage"}, name))
}

func unknown(of, text string) error { return fmt.Errorf("a %s has no %q", of, text) }

func (p *parser) class(words []string) error {
	if len(words) < 2 || len(words) > 3 {
		return fmt.Errorf("class takes a name, a value, and perhaps never")
	}
	value, err := word{text: words[1], value: words[1]}.number()
	if err != nil {
		return err
	}
	c := &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta: metav1.ObjectMeta{Name: words[0]}, Value: int32(value)}
	if len(words) == 3 {
		if words[2] != "never" {
			return unknown("class", words[2])
		}
		never := corev1.PreemptNever
		c.PreemptionPolicy = &never
	}
	p.add(c, "PriorityClass")
	return nil
}

func (p *parser) node(words []string) error {
	var names []string
	for len(words) > 0 && !strings.ContainsAny(words[0], "=:") && words[0] != "cordoned" {
		names, words = append(names, words[0]), words[1:]
	}
	for _, name := range names {
		n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		for _, text := range words {
			w := split(text)
			switch {
			case w.kind == "label":
				n.Labels[w.key] = w.value
			case w.kind == "taint":
				value, effect, ok := strings.Cut(w.value, ":")
				if !ok {
					return fmt.Errorf("taint %q has no effect", text)
				}
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: w.key, Value: value, Effect: corev1.TaintEffect(effect)})
			case text == "cordoned":
				n.Spec.Unschedulable = true
			case w.isAmount():
				if err := w.amount(&n.Status.Allocatable); err != nil {
					return err
				}
			default:
				return unknown("node", text)
			}
		}
		p.add(n, "Node")
	}
	if len(names) == 0 {
		return fmt.Errorf("the node has no name")
	}
	return nil
}

func (p *parser) queue(words []string) error {
	q := &schedulingv1beta1.Queue{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "Queue"}, ObjectMeta: metav1.ObjectMeta{Name: words[0]},
		Spec: schedulingv1beta1.QueueSpec{Weight: 1}, Status: schedulingv1beta1.QueueStatus{State: schedulingv1beta1.QueueStateOpen}}
	for _, text := range words[1:] {
		w := split(text)
		var err error
		var n int64
		switch {
		case w.kind == "deserved":
			err = w.amount(&q.Spec.Deserved)
		case w.kind == "capability":
			err = w.amount(&q.Spec.Capability)
		case w.kind == "guarantee":
			err = w.amount(&q.Spec.Guarantee.Resource)
		case w.kind == "annotation":
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, w.key, w.value)
		case w.key == "parent":
			q.Spec.Parent = w.value
		case w.key == "weight":
			n, err = w.number()
			q.Spec.Weight = int32(n)
		case w.key == "priority":
			n, err = w.number()
			q.Spec.Priority = int32(n)
		case w.key == "reclaimable":
			var b bool
			b, err = w.isTrue()
			q.Spec.Reclaimable = &b
		case text == "closed":
			q.Status.State = schedulingv1beta1.QueueStateClosed
		default:
			err = unknown("queue", text)
		}
		if err != nil {
			return err
		}
	}
	p.add(q, "Queue")
	return nil
}

func (p *parser) hyperNode(words []string) error {
	h := &topologyv1alpha1.HyperNode{TypeMeta: metav1.TypeMeta{APIVersion: "topology.volcano.sh/v1alpha1", Kind: "HyperNode"}, ObjectMeta: metav1.ObjectMeta{Name: words[0]}}
	add := func(kind topologyv1alpha1.MemberType, names string) {
		for name := range strings.SplitSeq(names, ",") {
			h.Spec.Members = append(h.Spec.Members, topologyv1alpha1.MemberSpec{Type: kind,
				Selector: topologyv1alpha1.MemberSelector{ExactMatch: &topologyv1alpha1.ExactMatch{Name: name}}})
		}
	}
	for _, text := range words[1:] {
		w := split(text)
		var err error
		var n int64
		switch w.key {
		case "tier":
			n, err = w.number()
			h.Spec.Tier = int(n)
		case "nodes":
			add(topologyv1alpha1.MemberTypeNode, w.value)
		case "hypernodes":
			add(topologyv1alpha1.MemberTypeHyperNode, w.value)
		default:
			err = unknown("hypernode", text)
		}
		if err != nil {
			return err
		}
	}
	p.add(h, "HyperNode")
	return nil
}

func (p *parser) budget(words []string) error {
	b := &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: words[0]}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{}}}}
	for _, text := range words[1:] {
		w := split(text)
		amount := intstr.Parse(w.value)
		switch {
		case w.kind == "label":
			b.Spec.Selector.MatchLabels[w.key] = w.value
		case w.key == "min":
			b.Spec.MinAvailable = &amount
		case w.key == "max":
			b.Spec.MaxUnavailable = &amount
		default:
			return unknown("budget", text)
		}
	}
	p.add(b, "PodDisruptionBudget")
	return nil
}

func (p *parser) quota(words []string) error {
	q := &corev1.ResourceQuota{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: words[0]}}
	for _, text := range words[1:] {
		if err := split(text).amount(&q.Spec.Hard); err != nil {
			return err
		}
	}
	p.add(q, "ResourceQuota")
	return nil
}

// manifest reads any object.
func manifest(text string) (Object, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		return nil, err
	}
	if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
		return nil, fmt.Errorf("a manifest has apiVersion, kind and metadata.name")
	}
	return u, nil
}

// configuration is that of the scheduler.
type configuration struct {
	actions, plugins string
	further          []string
}

func (c *configuration) object() Object {
	var text strings.Builder
	fmt.Fprintf(&text, "actions: %q\ntiers:\n", c.actions)
	for tier := range strings.SplitSeq(c.plugins, "|") {
		text.WriteString("- plugins:\n")
		for _, name := range splitPlugins(tier) {
			if !strings.HasPrefix(name, "{") {
				name = "{name: " + name + "}"
			}
			text.WriteString("  - " + name + "\n")
		}
	}
	for _, line := range c.further {
		text.WriteString(line + "\n")
	}
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"},
		Data:       map[string]string{"volcano-scheduler.conf": text.String()}}
}

// splitPlugins splits at the commas outside of braces.
func splitPlugins(tier string) (names []string) {
	depth, from := 0, 0
	for i, r := range tier + "," {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				names, from = append(names, strings.TrimSpace(tier[from:i])), i+1
			}
		}
	}
	return names
}
