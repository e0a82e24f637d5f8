package work

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// RereadAfter is how long to wait for the cache when an object turns out to have been written since it was read.
const RereadAfter = 100 * time.Millisecond

// UnlessConflict returns an error, and after a conflict asks for another look instead. Most conflicts are with a write
// of which an event tells, but a server also gives up on a patch when many others write the object at the same time.
func UnlessConflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: RereadAfter}, nil
	}
	return reconcile.Result{}, err
}
