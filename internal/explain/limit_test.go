package explain_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/test/fixture"
)

// TestWorkThatIsAbandonedLeavesNoTrace ends the work for an answer after each number of steps. The model stays as it
// was, and a new reader answers as before.
func TestWorkThatIsAbandonedLeavesNoTrace(t *testing.T) {
	a := newAsker(t, evicting, fixture.PriorityClass("high", 10), fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=4"))
	for i := range 4 {
		name := fmt.Sprintf("low-%d", i)
		a.Set(fixture.Group(name, "default", 1), fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=2"), preemptable, fixture.On(fmt.Sprintf("n%d", i%2+1))))
	}
	a.Rest()
	group, pods := gang("new", "default", 3, "cpu=2")
	class("high")(group)
	whole, err := a.model().Submit(a.Now, group, pods)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	for steps := 0; ; steps++ {
		m, err := explain.New(a.Scheduler.Cache(), a.Scheduler.Policy())
		if err != nil {
			t.Fatal(err)
		}
		left := steps
		m.Bound(func() error {
			if left--; left < 0 {
				return enough
			}
			return nil
		})
		abandoned := func() (is bool) {
			defer func() {
				if cause := recover(); cause != nil {
					if of, known := cause.(explain.Abandoned); !known || !errors.Is(of.Why, enough) {
						panic(cause)
					}
					is = true
				}
			}()
			_, err := m.Submit(a.Now, group, pods)
			if err != nil {
				t.Fatal(err)
			}
			return false
		}()
		if wrong := a.Scheduler.Cache().Audit(); len(wrong) > 0 {
			t.Fatalf("after %d steps: %v", steps, wrong)
		}
		again, err := a.model().Submit(a.Now, group, pods)
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", whole) {
			t.Fatalf("after %d steps the answer is %+v, %v; it was %+v", steps, again, err, whole)
		}
		if !abandoned {
			if steps < 10 {
				t.Errorf("the answer took %d steps only: the pods of a submission must count", steps)
			}
			return
		}
	}
}

func TestAPodOfTooManyTermsIsNotTried(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"))
	group, pods := gang("new", "default", 1, "cpu=1")
	terms := make([]corev1.PodAffinityTerm, explain.MaxTerms+1)
	for i := range terms {
		terms[i] = corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}
	}
	pods[0].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	if _, err := a.model().Submit(a.Now, group, pods); !errors.Is(err, explain.ErrTooLarge) {
		t.Errorf("said is %v", err)
	}
	pods[0].Spec.Affinity, pods[0].Spec.NodeSelector = nil, map[string]string{}
	for i := range explain.MaxTerms + 1 {
		pods[0].Spec.NodeSelector[fmt.Sprint("label-", i)] = "a"
	}
	if _, err := a.model().Submit(a.Now, group, pods); !errors.Is(err, explain.ErrTooLarge) {
		t.Errorf("of many labels is said %v", err)
	}
	pods[0].Spec.NodeSelector = nil
	pods[0].Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms[:2]}}
	if _, err := a.model().Submit(a.Now, group, pods); err != nil {
		t.Errorf("said is %v", err)
	}
}

func TestAPartOfAnAnswerCanBeLeftOut(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"))
	m, err := explain.New(a.Scheduler.Cache(), a.Scheduler.Policy())
	if err != nil {
		t.Fatal(err)
	}
	m.Bound(func() error { return explain.ErrTooLarge })
	group, pods := gang("new", "default", 1, "cpu=1")
	if err := m.Attempt(func() { _, _ = m.Submit(a.Now, group, pods) }); !errors.Is(err, explain.ErrTooLarge) || !m.IsSpent() {
		t.Errorf("said is %v, and the model is spent: %v", err, m.IsSpent())
	}
}

// TestAStepLooksAtFewThings counts how often one asks, within the question about a single pod, whether the work must
// end. A pod may have many terms, and a cluster many nodes and pods: one asks at the latest after it has looked at some
// thousand of them.
func TestAStepLooksAtFewThings(t *testing.T) {
	const nodes, pods, terms, looks = 128, 512, 80, 1 << 10
	objects := []runtime.Object{fixture.Group("run", "default", 1)}
	for i := range nodes {
		objects = append(objects, fixture.Node(fmt.Sprintf("n%03d", i), "cpu=8"))
	}
	for i := range pods {
		objects = append(objects, fixture.Pod(fmt.Sprintf("run-%03d", i), fixture.In("run"), fixture.Asks("cpu=1"), fixture.Labelled("app", "run"), fixture.On(fmt.Sprintf("n%03d", i%nodes))))
	}
	a := newAsker(t, evicting, objects...)
	a.Rest()
	every := func(i int) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{fmt.Sprint(i)}}}}
	}
	for name, c := range map[string]struct {
		looks int
		add   func(spec *corev1.PodSpec, i int)
	}{
		"affinity to pods": {pods * terms, func(spec *corev1.PodSpec, i int) {
			p := spec.Affinity.PodAffinity
			p.PreferredDuringSchedulingIgnoredDuringExecution = append(p.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: 1,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: every(i)}})
		}},
		"spread": {nodes * terms, func(spec *corev1.PodSpec, i int) {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: fmt.Sprint("key-", i%32),
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: every(i)})
		}},
		"affinity to nodes": {nodes * terms, func(spec *corev1.PodSpec, _ int) {
			n := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			n.NodeSelectorTerms = append(n.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpDoesNotExist}}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			group, pods := gang("new", "default", 1, "cpu=1")
			spec := &pods[0].Spec
			spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}}
			for i := range terms {
				c.add(spec, i)
			}
			if len(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) == 0 {
				spec.Affinity.NodeAffinity = nil
			}
			m, err := explain.New(a.Scheduler.Cache(), a.Scheduler.Policy())
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			m.Bound(func() error { asked++; return nil })
			if _, err := m.Submit(a.Now, group, pods); err != nil {
				t.Fatal(err)
			}
			if asked < c.looks/looks {
				t.Errorf("one asks %d times, and looks at %d things", asked, c.looks)
			}
			t.Logf("one asks %d times, and looks at %d things", asked, c.looks)
		})
	}
}
