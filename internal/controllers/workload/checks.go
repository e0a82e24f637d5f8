package workload

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// checks says on AdmissionChecks whose controller is part of Kueue, and is not served here, that none will answer them.
// Those of others are theirs to write.
type checks struct {
	client client.Client
	state  *state
}

// Reconcile writes the condition Active if it differs.
func (r checks) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, nil
	}
	object := &v1beta2.AdmissionCheck{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	problem := settings.OfCheck(object).NotServed
	if problem == "" {
		return reconcile.Result{}, nil
	}
	before := object.DeepCopy()
	changed := meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{Type: v1beta2.ActiveCondition, Status: metav1.ConditionFalse,
		Reason: v1beta2.ReasonNotSupported, Message: "The admission check cannot be answered: " + problem, ObservedGeneration: object.Generation})
	return write(ctx, r.client, object, before, !changed)
}
