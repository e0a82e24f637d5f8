package budget_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/pods"
)

func pdb(app string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: "b-uid"},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
}

func pod(app string) *pods.Pod {
	return pods.New(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: app, Labels: map[string]string{"app": app}}})
}

func TestAnUpdateOfTheNumbersKeepsWhatIsSpent(t *testing.T) {
	s, found := budget.NewSet(), budget.Found{}
	if change := s.Put(pdb("a", 2)); !change.IsOther || change.IsFreed || change.Concerns != nil {
		t.Errorf("a new budget changes %+v", change)
	}
	s.Of(pod("a"), &found)[0].Spend(1)
	change := s.Put(pdb("a", 3))
	if change.IsOther || !change.IsFreed || !change.Concerns(pod("a")) || change.Concerns(pod("b")) {
		t.Errorf("a larger number changes %+v", change)
	}
	if left := s.Of(pod("a"), &found)[0].Left(); left != 2 {
		t.Errorf("left are %d", left)
	}
	if change := s.Put(pdb("a", 3)); change.IsFreed || change.Concerns != nil {
		t.Errorf("an echo changes %+v", change)
	}
}

func TestABudgetThatCoversOtherPodsIsCountedAfresh(t *testing.T) {
	s, found := budget.NewSet(), budget.Found{}
	s.Put(pdb("a", 1))
	s.Of(pod("a"), &found)[0].Spend(1)
	change := s.Put(pdb("b", 1))
	if !change.IsOther || !change.IsFreed || !change.Concerns(pod("a")) {
		t.Errorf("another selector changes %+v", change)
	}
	if len(s.Of(pod("a"), &found)) != 0 || s.In("ns")[0].Spent() != 0 {
		t.Error("the budget covers what it covered before, or has spent something")
	}
	if s.Delete(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: "other"}}).IsOther {
		t.Error("another object of the name has gone, and the budget with it")
	}
	if change := s.Delete(pdb("b", 1)); !change.IsFreed || !change.Concerns(pod("a")) || s.In("ns") != nil {
		t.Errorf("with its going it changes %+v", change)
	}
}
