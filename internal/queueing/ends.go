package queueing

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnerEnd is how an owner of a Workload has ended.
type OwnerEnd struct {
	IsGone    bool
	Succeeded bool
	Message   string
}

// Ended reports whether an owner that is not served here has ended, as its status says, or is gone. Of one that may not
// be read it is not known, and not so.
func (f *OwnerFinder) Ended(ctx context.Context, namespace string, owner *metav1.OwnerReference) (end OwnerEnd, is bool, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(KindOf(owner))
	err = f.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, object)
	switch {
	case IsUnreadable(err):
		return OwnerEnd{}, false, nil
	case apierrors.IsNotFound(err), err == nil && object.GetUID() != owner.UID:
		return OwnerEnd{IsGone: true}, true, nil
	case err != nil:
		return OwnerEnd{}, false, fmt.Errorf("reading the owner %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	}
	end, is = endOf(object.Object)
	return end, is, nil
}

// good and bad are the words of the known kinds for having ended: types of conditions, and values of the fields below.
var (
	good = []string{"Complete", "Completed", "Succeeded", "SUCCEEDED", "COMPLETED"}
	bad  = []string{"Failed", "FAILED", "STOPPED"}
)

// states are the fields of statuses that say it in one word: those of JobSet, AppWrapper, RayJob and SparkApplication.
var states = [][]string{
	{"status", "terminalState"}, {"status", "phase"}, {"status", "jobStatus"}, {"status", "jobDeploymentStatus"}, {"status", "applicationState", "state"},
}

func endOf(object map[string]any) (end OwnerEnd, is bool) {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		kind, _, _ := unstructured.NestedString(condition, "type")
		status, _, _ := unstructured.NestedString(condition, "status")
		message, _, _ := unstructured.NestedString(condition, "message")
		if isGood := slices.Contains(good, kind); status == string(metav1.ConditionTrue) && (isGood || slices.Contains(bad, kind)) {
			return OwnerEnd{Succeeded: isGood, Message: message}, true
		}
	}
	for _, path := range states {
		state, _, _ := unstructured.NestedString(object, path...)
		if isGood := slices.Contains(good, state); isGood || slices.Contains(bad, state) {
			return OwnerEnd{Succeeded: isGood, Message: state}, true
		}
	}
	return OwnerEnd{}, false
}
