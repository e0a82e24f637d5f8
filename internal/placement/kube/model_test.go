package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

// schedulerName makes a pod ours.
const schedulerName = "volcano"

var (
	allFilters = []string{"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
		"PodTopologySpread", "InterPodAffinity"}
	allScores = []Weighted{{"TaintToleration", 3}, {"NodeAffinity", 2}, {"PodTopologySpread", 2}, {"InterPodAffinity", 2},
		{"ImageLocality", 1}}
)

// testModel is a cluster with the plugins under test. Package harness imports them, so the tests inside of the package
// cannot use it.
type testModel struct {
	t       testing.TB
	cluster *cache.Cache
	plugins *Plugins
}

func newModel(t testing.TB, objects ...any) *testModel {
	t.Helper()
	w := &testModel{t: t, cluster: cache.New(cache.Options{SchedulerNames: []string{schedulerName}})}
	w.apply(objects...)
	plugins, err := New(w.cluster.Cluster, allFilters, allScores, Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	w.plugins = plugins
	return w
}

func (w *testModel) apply(objects ...any) {
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Node:
			w.cluster.Apply(cache.Set{Object: o})
		case *corev1.Pod:
			w.cluster.Apply(cache.Set{Object: o})
		case *corev1.Namespace:
			w.cluster.Apply(cache.Set{Object: o})
		case cache.Event:
			w.cluster.Apply(o)
		default:
			w.t.Fatalf("cannot apply a %T", o)
		}
	}
	w.cluster.Settle()
}

func (w *testModel) task(name string) *cluster.Task {
	w.t.Helper()
	t := w.cluster.Task(fixture.Key(name))
	if t == nil {
		w.t.Fatalf("there is no pod %s", name)
	}
	return t
}

func (w *testModel) ask(name string) *Question { return w.plugins.Ask(w.task(name).Class) }

// survey returns what a survey of all nodes says, by node.
func (w *testModel) survey(q *Question) (refusals map[string]string, scores map[string]int64) {
	refusals, scores = map[string]string{}, map[string]int64{}
	said, points := q.Survey(w.cluster.Nodes())
	for i, n := range w.cluster.Nodes() {
		refusals[n.Name], scores[n.Name] = said[i], points[i]
	}
	return refusals, scores
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func tainted(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "only", Value: "gpu", Effect: effect})
	}
}

func having(image string, bytes int64) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{image}, SizeBytes: bytes})
	}
}

func inNamespace(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

func ofImage(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = name }
}

func tolerating(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func nodeAffinity(p *corev1.Pod) *corev1.NodeAffinity {
	if affinity(p).NodeAffinity == nil {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{}
	}
	return affinity(p).NodeAffinity
}

func preferringNodes(key, value string, weight int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		a := nodeAffinity(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}})
	}
}

func requiringFields(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		nodeAffinity(p).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: terms}
	}
}

func named(names ...string) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for _, name := range names {
		term.MatchFields = append(term.MatchFields, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField,
			Operator: corev1.NodeSelectorOpIn, Values: []string{name}})
	}
	return term
}

func apps(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
}

func term(value, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: apps(value), TopologyKey: key}
}

// near makes a pod need another of an app in its domain.
func near(value, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { requireNear(p, term(value, key)) }
}

func requireNear(p *corev1.Pod, t corev1.PodAffinityTerm) {
	a := affinity(p)
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, t)
}

// apart keeps a pod out of the domains of an app.
func apart(value, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { requireApart(p, term(value, key)) }
}

func requireApart(p *corev1.Pod, t corev1.PodAffinityTerm) {
	a := affinity(p)
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, t)
}

func preferringNear(value, key string, weight int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { preferNear(p, term(value, key), weight) }
}

func preferNear(p *corev1.Pod, t corev1.PodAffinityTerm, weight int32) {
	a := affinity(p)
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
		corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
}

func preferApart(p *corev1.Pod, t corev1.PodAffinityTerm, weight int32) {
	a := affinity(p)
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
		corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: t})
}

// spread spreads the pods of an app over domains.
func spread(value, key string, skew int32, otherwise corev1.UnsatisfiableConstraintAction) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: otherwise, LabelSelector: apps(value)})
	}
}
