package queue

import (
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestACommandCountsAsCheckedIfThePolicyWasInForce(t *testing.T) {
	installed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ignore := admissionregistrationv1.Ignore
	labelled := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, test := range map[string]struct {
		edit func(*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		age  time.Duration // of the policy when the Command was made
		want string
	}{
		"as installed":   {nil, time.Hour, ""},
		"just in time":   {nil, policySettles, ""},
		"made too early": {nil, policySettles - time.Second, "is in force since 2026-03-01T12:00:10Z, and the Command is of 2026-03-01T12:00:09Z"},
		"made before it": {nil, -time.Hour, "is in force since"},
		"bound later": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.CreationTimestamp = metav1.NewTime(installed.Add(time.Minute))
		}, time.Minute, "is in force since 2026-03-01T12:01:10Z"},
		"audits only": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
		}, time.Hour, "deny"},
		"binds another": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.PolicyName = "other"
		}, time.Hour, "deny"},
		"lets pass what it cannot judge": {func(p *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.FailurePolicy = &ignore
		}, time.Hour, "lets pass"},
		"for some namespaces": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: labelled}
		}, time.Hour, "a part of the Commands"},
		"for some objects": {func(p *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.MatchConstraints.ObjectSelector = labelled
		}, time.Hour, "a part of the Commands"},
		"for some resources": {func(_ *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.MatchResources = &admissionregistrationv1.MatchResources{ResourceRules: make([]admissionregistrationv1.NamedRuleWithOperations, 1)}
		}, time.Hour, "a part of the Commands"},
		"on some conditions": {func(p *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "false"}}
		}, time.Hour, "a part of the Commands"},
		"on its way out": {func(p *admissionregistrationv1.ValidatingAdmissionPolicy, _ *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			p.DeletionTimestamp = &metav1.Time{Time: installed}
		}, time.Hour, "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Name: CommandPolicy, CreationTimestamp: metav1.NewTime(installed)}
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
			// As the API server fills it in.
			policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: make([]admissionregistrationv1.NamedRuleWithOperations, 1),
			}
			binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}
			binding.Spec.PolicyName = CommandPolicy
			binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
			if test.edit != nil {
				test.edit(policy, binding)
			}
			got := whyNotInForce(policy, binding, metav1.NewTime(installed.Add(test.age)))
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestACommandMustNameTheQueueItIsFor(t *testing.T) {
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "research", UID: "one"}}
	for _, test := range []struct {
		uid       types.UID
		unchecked string
		order     Order
		told      string
	}{
		{"one", "", OrderClose, ""},
		{"", "", NoOrder, "target.uid is empty; it must be that of the queue, one"},
		{"two", "", NoOrder, "it is for an earlier queue of this name, with UID two"},
		{"one", "there is no policy", NoOrder, "it was not checked that its author may update the queue: there is no policy"},
	} {
		command := &bus.Command{ObjectMeta: metav1.ObjectMeta{Namespace: CommandNamespace, Name: "c"}, Action: string(bus.CloseQueueAction)}
		command.TargetObject = metav1.NewControllerRef(queue, scheduling.GroupVersion.WithKind("Queue"))
		command.TargetObject.UID = test.uid
		order, told := orderOf(command, queue, false, test.unchecked)
		if order != test.order || !strings.Contains(told.message, test.told) || (told.message == "") != (test.told == "") {
			t.Errorf("uid %q, unchecked %q: order %v, told %q", test.uid, test.unchecked, order, told.message)
		}
	}
}
