package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// CommandPolicy is the name of the ValidatingAdmissionPolicy, and of its binding, by which the API server refuses a
// Command for a queue whose author may not update that queue. The Command itself does not say which user created it. So
// it counts whether the policy was in force then. Only administrators can change the policy, and the API server sets
// the time of creation.
const CommandPolicy = "volcano-queue-commands"

// policySettles is how long after its creation a policy is taken to be in force in every API server. They watch
// policies, and take up a new one within a second or two.
const policySettles = 10 * time.Second

// whyUnchecked says why it is not known that the author of the Command, which may be nil, may update the queue; empty
// if it is known, or need not be.
func (r *Reconciler) whyUnchecked(ctx context.Context, command *bus.Command) (string, error) {
	if command == nil || r.allowsUnchecked {
		return "", nil
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	for _, object := range []client.Object{policy, binding} {
		err := r.live.Get(ctx, client.ObjectKey{Name: CommandPolicy}, object)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			return fmt.Sprintf("ValidatingAdmissionPolicy %s, or its binding, is not there; the installer brings both", CommandPolicy), nil
		case err != nil:
			return "", fmt.Errorf("reading %T %s: %w", object, CommandPolicy, err)
		}
	}
	return whyNotInForce(policy, binding, command.CreationTimestamp), nil
}

// whyNotInForce says why the policy need not have been in force at a time; empty if it was. What is in the policy is up
// to who runs the cluster, but a policy or a binding that passes over a part of the Commands checks nothing.
func whyNotInForce(policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding,
	at metav1.Time) string {
	switch {
	case policy.DeletionTimestamp != nil || binding.DeletionTimestamp != nil:
		return fmt.Sprintf("ValidatingAdmissionPolicy %s is being deleted", CommandPolicy)
	case binding.Spec.PolicyName != policy.Name || !slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny):
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s does not have policy %s deny anything", CommandPolicy, CommandPolicy)
	case policy.Spec.FailurePolicy != nil && *policy.Spec.FailurePolicy != admissionregistrationv1.Fail:
		return fmt.Sprintf("ValidatingAdmissionPolicy %s lets pass what it cannot judge", CommandPolicy)
	case binding.Spec.ParamRef != nil || selects(binding.Spec.MatchResources) ||
		binding.Spec.MatchResources != nil && len(binding.Spec.MatchResources.ResourceRules) > 0 || len(policy.Spec.MatchConditions) > 0 || selects(policy.Spec.MatchConstraints):
		return fmt.Sprintf("ValidatingAdmissionPolicy %s, or its binding, is about a part of the Commands only", CommandPolicy)
	}
	since := policy.CreationTimestamp.Time
	if binding.CreationTimestamp.After(since) {
		since = binding.CreationTimestamp.Time
	}
	if since = since.Add(policySettles); at.Time.Before(since) {
		return fmt.Sprintf("ValidatingAdmissionPolicy %s is in force since %s, and the Command is of %s; make it again",
			CommandPolicy, since.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
	}
	return ""
}

// selects reports whether a match leaves out a part of what its rules name.
func selects(match *admissionregistrationv1.MatchResources) bool {
	isEmpty := func(s *metav1.LabelSelector) bool { return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	return match != nil && (!isEmpty(match.NamespaceSelector) || !isEmpty(match.ObjectSelector) || len(match.ExcludeResourceRules) > 0)
}
