package workload

import (
	"context"
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// queues reads what queues hold, and whether they are in use.
type queues struct {
	client  client.Client
	state   *state
	metrics *metrics.Metrics
}

// clusterQueues writes the status of ClusterQueues, one at a time.
type clusterQueues struct{ queues }

// Reconcile writes the status if it differs.
func (r clusterQueues) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, nil
	}
	object := &v1beta2.ClusterQueue{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.ClusterQueueGone(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	locals := &v1beta2.LocalQueueList{}
	if err := r.client.List(ctx, locals, client.MatchingFields{localsByCluster: object.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing LocalQueues: %w", err)
	}
	var t queueing.Totals
	for i := range locals.Items {
		l := &locals.Items[i]
		if err := r.count(ctx, &t, holdsNothing, client.InNamespace(l.Namespace), client.MatchingFields{workloadsByQueue: l.Name}); err != nil {
			return reconcile.Result{}, err
		}
	}
	// Those that hold quota hold it here whatever their LocalQueue points to now.
	if err := r.count(ctx, &t, all, client.MatchingFields{workloadsByHolder: object.Name}); err != nil {
		return reconcile.Result{}, err
	}
	q := settings.OfClusterQueue(object)
	causes, err := r.causes(ctx, object, &q)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := object.DeepCopy()
	s := &object.Status
	s.PendingWorkloads, s.ReservingWorkloads, s.AdmittedWorkloads = t.Pending, t.Reserving, t.Admitted
	s.FlavorsReservation, s.FlavorsUsage = t.Reserved(&q), t.Used(&q)
	condition := metav1.Condition{Type: v1beta2.ActiveCondition, Status: metav1.ConditionTrue, Reason: v1beta2.ReasonReady,
		Message: "Can admit new workloads", ObservedGeneration: object.Generation}
	if len(causes) > 0 {
		texts := make([]string, len(causes))
		for i := range causes {
			texts[i] = causes[i].Text
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, causes[0].Reason
		condition.Message = "Can't admit new workloads: " + strings.Join(texts, ", ") + "."
	}
	meta.SetStatusCondition(&s.Conditions, condition)
	r.metrics.ClusterQueue(object, &q, t.Inadmissible, len(causes) == 0)
	isSame := apiequality.Semantic.DeepEqual(before.Status, *s)
	before.Status.PendingWorkloads, before.Status.ReservingWorkloads, before.Status.AdmittedWorkloads = unknown, unknown, unknown
	return write(ctx, r.client, object, before, isSame)
}

// unknown makes a count be written that is zero and was never written: tables show nothing for what is not there.
const unknown = -1

// causes says why a ClusterQueue cannot admit workloads.
func (r queues) causes(ctx context.Context, object *v1beta2.ClusterQueue, q *settings.ClusterQueue) ([]settings.Cause, error) {
	var failed error
	found := func(object client.Object, kind, name string) bool {
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, object)
		if err != nil && !apierrors.IsNotFound(err) && failed == nil {
			failed = fmt.Errorf("reading %s %s: %w", kind, name, err)
		}
		return err == nil
	}
	causes := q.Causes(object.DeletionTimestamp != nil, settings.Others{
		Flavor: func(name string) (settings.Flavor, bool) {
			object := &v1beta2.ResourceFlavor{}
			exists := found(object, "ResourceFlavor", name)
			return settings.OfFlavor(object), exists
		},
		Check: func(name string) (settings.AdmissionCheck, bool) {
			object := &v1beta2.AdmissionCheck{}
			exists := found(object, "AdmissionCheck", name)
			return settings.OfCheck(object), exists
		},
		Cohort: func(name string) (settings.Cohort, bool) {
			object := &v1beta2.Cohort{}
			exists := found(object, "Cohort", name)
			return settings.OfCohort(object), exists
		},
	})
	return causes, failed
}

// localQueues writes the status of LocalQueues, one at a time.
type localQueues struct{ queues }

// Reconcile writes the status if it differs.
func (r localQueues) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, nil
	}
	object := &v1beta2.LocalQueue{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.metrics.LocalQueueGone(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var t queueing.Totals
	if err := r.count(ctx, &t, all, client.InNamespace(object.Namespace), client.MatchingFields{workloadsByQueue: object.Name}); err != nil {
		return reconcile.Result{}, err
	}
	q := settings.OfLocalQueue(object)
	clusterQueue := &v1beta2.ClusterQueue{}
	err := r.client.Get(ctx, client.ObjectKey{Name: q.ClusterQueue}, clusterQueue)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading ClusterQueue %s: %w", q.ClusterQueue, err)
	}
	var of *settings.ClusterQueue
	if err == nil {
		read := settings.OfClusterQueue(clusterQueue)
		of = &read
	}
	before := object.DeepCopy()
	s := &object.Status
	s.PendingWorkloads, s.ReservingWorkloads, s.AdmittedWorkloads = t.Pending, t.Reserving, t.Admitted
	s.FlavorsReservation, s.FlavorsUsage = withoutBorrowed(t.Reserved(of)), withoutBorrowed(t.Used(of))
	s.FlavorUsage = s.FlavorsUsage
	condition := localCondition(&q, clusterQueue, of != nil)
	condition.ObservedGeneration = object.Generation
	meta.SetStatusCondition(&s.Conditions, condition)
	r.metrics.LocalQueue(object, t.Inadmissible)
	isSame := apiequality.Semantic.DeepEqual(before.Status, *s)
	before.Status.PendingWorkloads, before.Status.ReservingWorkloads, before.Status.AdmittedWorkloads = unknown, unknown, unknown
	return write(ctx, r.client, object, before, isSame)
}

// localCondition says whether workloads of a LocalQueue can be admitted.
func localCondition(q *settings.LocalQueue, clusterQueue *v1beta2.ClusterQueue, exists bool) metav1.Condition {
	c := metav1.Condition{Type: v1beta2.ActiveCondition, Status: metav1.ConditionFalse, Message: "Can't submit new workloads to clusterQueue"}
	switch {
	case q.Problem != "":
		c.Reason, c.Message = v1beta2.ReasonNotSupported, q.Problem
	case q.Stop != v1beta2.StopNone:
		c.Reason, c.Message = v1beta2.ReasonStopped, "LocalQueue is stopped"
	case !exists:
		c.Reason = v1beta2.ReasonClusterQueueDoesNotExist
	case !meta.IsStatusConditionTrue(clusterQueue.Status.Conditions, v1beta2.ActiveCondition):
		c.Reason = v1beta2.ReasonClusterQueueIsInactive
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1beta2.ReasonReady, "Can submit new workloads to localQueue"
	}
	return c
}

// all and holdsNothing say which of the workloads that are listed count.
func all(*v1beta2.Workload) bool            { return true }
func holdsNothing(w *v1beta2.Workload) bool { return heldIn(w) == "" }

// count adds those of some workloads that count.
func (r queues) count(ctx context.Context, t *queueing.Totals, counts func(*v1beta2.Workload) bool, which ...client.ListOption) error {
	workloads := &v1beta2.WorkloadList{}
	if err := r.client.List(ctx, workloads, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("listing Workloads: %w", err)
	}
	for i := range workloads.Items {
		if w := &workloads.Items[i]; counts(w) {
			t.Add(w)
		}
	}
	return nil
}

func withoutBorrowed(of []v1beta2.FlavorUsage) []v1beta2.FlavorUsage {
	for i := range of {
		for j := range of[i].Resources {
			of[i].Resources[j].Borrowed = nil
		}
	}
	return of
}

// write patches a status, unless it is the same.
func write(ctx context.Context, api client.Client, object, before client.Object, isSame bool) (reconcile.Result, error) {
	if isSame {
		return reconcile.Result{}, nil
	}
	err := api.Status().Patch(ctx, object, client.MergeFrom(before))
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
