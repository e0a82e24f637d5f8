package workload

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// quietFor is how long an owner is not looked at again of which nothing was to be said: it makes many pods at once.
const quietFor = 30 * time.Second

// quietOwner is the key of such an owner.
type quietOwner struct{ uid any }

// leaderWorkerSet is the label by which pods of a StatefulSet name the LeaderWorkerSet that it is of.
const leaderWorkerSet = "leaderworkerset.sigs.k8s.io/name"

// unserved looks at pods that objects of kinds which are not served make themselves, as a RayCluster does, to say so of
// these objects. That of their Jobs is said with the Jobs.
type unserved struct{ writer }

// podOfUnserved asks to look at a pod that an object of a kind may have made which Kueue queues and Hekla does not. Not
// of each ReplicaSet and StatefulSet the owner is read.
func podOfUnserved(_ context.Context, object client.Object) []reconcile.Request {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || object.GetLabels()[v1beta2.QueueNameLabel] != "" || hasEnded(object.(*corev1.Pod)) {
		return nil
	}
	kind := queueing.KindOf(owner)
	isOfSet := kind.Group == appsv1.GroupName && object.GetLabels()[leaderWorkerSet] != ""
	if !isOfSet && (queueing.IsServed(kind) || !queueing.IsServable(kind, nil)) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
}

// Reconcile says of the topmost owner of a pod that it is not served.
func (r *unserved) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, nil
	}
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, request.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	top, err := r.owners.Top(ctx, pod, r.state.policy().External)
	if err != nil || top == nil {
		return reconcile.Result{}, err
	}
	key := quietOwner{top.UID}
	if _, isQuiet := r.told.Get(key); isQuiet || slices.Contains(r.state.policy().External, queueing.KindOf(top)) {
		return reconcile.Result{}, nil
	}
	if err := r.tellNotServed(ctx, pod, false, top); err != nil {
		return reconcile.Result{}, err
	}
	r.told.Add(key, true, quietFor)
	return reconcile.Result{}, nil
}
