package edge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/edge/plans"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/apitest"
)

// protect creates a policy that refuses to evict or delete pods of a name, and waits until it does.
func (s *planning) protect(pod *corev1.Pod) {
	s.t.Helper()
	ctx, core := apitest.Context(s.t), s.admin.Core
	name := "keep-" + s.namespace
	fail := admissionregistrationv1.Fail
	rule := func(operation admissionregistrationv1.OperationType, resource string) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}}}}
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				rule(admissionregistrationv1.Create, "pods/eviction"), rule(admissionregistrationv1.Delete, "pods")}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("request.namespace != '%s' || request.name != '%s'", s.namespace, pod.Name),
				Message: "the pod is kept by a policy"}}}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
	if _, err := core.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := core.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx := apitest.Context(s.t)
		_ = core.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
		_ = core.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	})
	eventually(s.t, func(ctx context.Context) string {
		err := core.CoreV1().Pods(s.namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: s.namespace},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}})
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Sprintf("the policy is not in force: %v", err)
		}
		return ""
	})
}

// failure returns what was reported of the one plan that failed.
func (s *planning) failure() cache.PlanFailed {
	s.t.Helper()
	s.outcomes.Lock()
	defer s.outcomes.Unlock()
	if len(s.failures) != 1 {
		s.t.Fatalf("reported %+v", s.failures)
	}
	return s.failures[0]
}

func refusedNames(failed cache.PlanFailed) string {
	var names []string
	for _, r := range failed.Refused {
		names = append(names, r.Pod.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestNoPodIsEvictedWithOneThatAPolicyKeeps(t *testing.T) {
	for _, pastBudget := range []bool{false, true} {
		t.Run(fmt.Sprintf("past a budget %t", pastBudget), func(t *testing.T) {
			s := newPlanning(t)
			preemptor, v, kept := createPod(t, s.admin, s.namespace, "a"), s.running("v"), s.running("w")
			s.protect(kept)
			plan := s.plan("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v, kept})
			plan.Evictions[1].PastBudget = pastBudget
			s.begin(plan)
			s.settle()
			s.expectMarks("not marked", v, kept)
			s.expectResults(map[plans.EvictionResult]int{plans.EvictionDropped: 1, plans.EvictionRefused: 1})
			failed := s.failure()
			if refusedNames(failed) != "w" || failed.Sent != 0 || !strings.Contains(failed.Reason, "the pod is kept by a policy") {
				t.Errorf("reported %+v", failed)
			}
			end := s.endOf("p", []*corev1.Pod{preemptor}, []*corev1.Pod{v, kept})
			end.Spared[1].Refused = "evicting w: no"
			s.end(end)
			s.settle()
			s.expectMarks("not marked", v)
			s.expectMarks("False EvictionRefused: evicting w: no", kept)
		})
	}
}

func TestNoPodIsEvictedWhereABudgetAllowsNone(t *testing.T) {
	s := newPlanning(t)
	v, w := s.running("v"), s.running("w")
	s.budget(0)
	s.begin(s.plan("p", nil, []*corev1.Pod{v, w}))
	s.settle()
	s.expectMarks("not marked", v, w)
	if failed := s.failure(); refusedNames(failed) != "v w" || failed.Sent != 0 || !failed.Refused[0].ByBudget {
		t.Errorf("reported %+v", failed)
	}
}

func TestWhatABudgetRefusesInTheMiddleIsTold(t *testing.T) {
	s := newPlanning(t)
	v, w := s.running("v"), s.running("w")
	s.budget(1) // which each of them would have, asked alone
	s.begin(s.plan("p", nil, []*corev1.Pod{v, w}))
	s.settle()
	s.expectResults(map[plans.EvictionResult]int{plans.EvictionSent: 1, plans.EvictionRefused: 1})
	if failed := s.failure(); len(failed.Refused) != 1 || failed.Sent != 1 || !failed.Refused[0].ByBudget {
		t.Errorf("reported %+v", failed)
	}
}
