package explain_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/test/fixture"
)

// TestWorkThatIsAbandonedLeavesNoTrace ends the work for an answer after each number of steps. The model stays as it was, and a new reader
// answers as before.
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
	pods[0].Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = terms[:2]
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
