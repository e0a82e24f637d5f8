package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
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
	var t tally
	for i := range locals.Items {
		if err := r.count(ctx, &t, locals.Items[i].Namespace, locals.Items[i].Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	q := settings.OfClusterQueue(object)
	causes, err := r.causes(ctx, object, &q)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := object.DeepCopy()
	s := &object.Status
	s.PendingWorkloads, s.ReservingWorkloads, s.AdmittedWorkloads = t.pending, t.reserving, t.admitted
	s.FlavorsReservation, s.FlavorsUsage = usages(&q, t.reserved), usages(&q, t.used)
	condition := metav1.Condition{Type: v1beta2.ActiveCondition, Status: metav1.ConditionTrue, Reason: v1beta2.ReasonReady,
		Message: "Can admit new workloads", ObservedGeneration: object.Generation}
	if len(causes) > 0 {
		texts := make([]string, len(causes))
		for i := range causes {
			texts[i] = causes[i].text
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, causes[0].reason
		condition.Message = "Can't admit new workloads: " + strings.Join(texts, ", ") + "."
	}
	meta.SetStatusCondition(&s.Conditions, condition)
	r.metrics.ClusterQueue(object, &q, t.inadmissible, len(causes) == 0)
	return write(ctx, r.client, object, before, &before.Status, s)
}

// cause is why a queue is not in use.
type cause struct{ reason, text string }

// causes says why a ClusterQueue cannot admit workloads.
func (r queues) causes(ctx context.Context, object *v1beta2.ClusterQueue, q *settings.ClusterQueue) ([]cause, error) {
	var found []cause
	if object.DeletionTimestamp != nil {
		found = append(found, cause{v1beta2.ReasonTerminating, "is terminating"})
	}
	if q.Stop != v1beta2.StopNone {
		found = append(found, cause{v1beta2.ReasonStopped, "is stopped"})
	}
	missing, notServed, err := r.flavors(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		found = append(found, cause{v1beta2.ReasonFlavorNotFound, "references missing ResourceFlavor(s): " + strings.Join(missing, ",")})
	}
	var absent, inactive []string
	for _, rule := range q.Checks {
		check := &v1beta2.AdmissionCheck{}
		err := r.client.Get(ctx, client.ObjectKey{Name: rule.Name}, check)
		if apierrors.IsNotFound(err) {
			absent = append(absent, rule.Name)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading AdmissionCheck %s: %w", rule.Name, err)
		}
		if read := settings.OfCheck(check); read.NotServed != "" {
			notServed = append(notServed, "AdmissionCheck "+rule.Name+": "+read.NotServed)
		} else if !read.IsActive {
			inactive = append(inactive, rule.Name)
		}
	}
	if len(absent) > 0 {
		found = append(found, cause{v1beta2.ReasonAdmissionCheckNotFound, "references missing AdmissionCheck(s): " + strings.Join(absent, ",")})
	}
	if len(inactive) > 0 {
		found = append(found, cause{v1beta2.ReasonAdmissionCheckInactive, "references inactive AdmissionCheck(s): " + strings.Join(inactive, ",")})
	}
	circle, err := r.circle(ctx, q.Cohort)
	if err != nil {
		return nil, err
	}
	for _, text := range append(notServed, q.Problem, circle) {
		if text != "" {
			found = append(found, cause{v1beta2.ReasonNotSupported, text})
		}
	}
	return found, nil
}

// flavors says which flavors of a queue do not exist, and why others cannot be used.
func (r queues) flavors(ctx context.Context, q *settings.ClusterQueue) (missing, notServed []string, err error) {
	for _, group := range q.Groups {
		for _, f := range group.Flavors {
			object := &v1beta2.ResourceFlavor{}
			err := r.client.Get(ctx, client.ObjectKey{Name: f.Name}, object)
			if apierrors.IsNotFound(err) {
				missing = append(missing, f.Name)
				continue
			}
			if err != nil {
				return nil, nil, fmt.Errorf("reading ResourceFlavor %s: %w", f.Name, err)
			}
			if problem := settings.OfFlavor(object).Problem; problem != "" {
				notServed = append(notServed, "ResourceFlavor "+f.Name+": "+problem)
			}
		}
	}
	return missing, notServed, nil
}

// maxCohorts bounds the walk from a queue to its root.
const maxCohorts = 1000

// circle says that the cohorts above a queue lead back to one of them, or that one of them cannot be used.
func (r queues) circle(ctx context.Context, cohort string) (string, error) {
	seen := map[string]bool{}
	for name := cohort; name != ""; {
		if seen[name] || len(seen) > maxCohorts {
			return "cohort " + name + " is below itself", nil
		}
		seen[name] = true
		object := &v1beta2.Cohort{}
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, object)
		if apierrors.IsNotFound(err) {
			return "", nil // it exists by being named
		}
		if err != nil {
			return "", fmt.Errorf("reading Cohort %s: %w", name, err)
		}
		read := settings.OfCohort(object)
		if read.Problem != "" {
			return "Cohort " + name + ": " + read.Problem, nil
		}
		name = read.Parent
	}
	return "", nil
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
	var t tally
	if err := r.count(ctx, &t, object.Namespace, object.Name); err != nil {
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
	s.PendingWorkloads, s.ReservingWorkloads, s.AdmittedWorkloads = t.pending, t.reserving, t.admitted
	s.FlavorsReservation, s.FlavorsUsage = withoutBorrowed(usages(of, t.reserved)), withoutBorrowed(usages(of, t.used))
	s.FlavorUsage = s.FlavorsUsage
	condition := localCondition(&q, clusterQueue, of != nil)
	condition.ObservedGeneration = object.Generation
	meta.SetStatusCondition(&s.Conditions, condition)
	r.metrics.LocalQueue(object, t.inadmissible)
	return write(ctx, r.client, object, before, &before.Status, s)
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

// tally is how many workloads there are, and what they hold.
type tally struct {
	pending, reserving, admitted int32
	inadmissible                 int32                          // of those that are pending
	reserved, used               map[string]corev1.ResourceList // by flavor
}

// count adds the workloads of a LocalQueue.
func (r queues) count(ctx context.Context, t *tally, namespace, queue string) error {
	workloads := &v1beta2.WorkloadList{}
	err := r.client.List(ctx, workloads, client.InNamespace(namespace), client.MatchingFields{workloadsByQueue: queue}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing Workloads: %w", err)
	}
	for i := range workloads.Items {
		t.add(&workloads.Items[i])
	}
	return nil
}

func (t *tally) add(w *v1beta2.Workload) {
	isAdmitted := conditions.Is(w, v1beta2.Admitted)
	switch {
	case conditions.Is(w, v1beta2.Finished):
		return
	case !isAdmitted && (w.Spec.Active == nil || *w.Spec.Active):
		t.pending++
		if c := conditions.Of(w, v1beta2.QuotaReserved); c != nil && c.Status == metav1.ConditionFalse && c.Reason != v1beta2.ReasonPendingEvaluation {
			t.inadmissible++
		}
	}
	if !conditions.Is(w, v1beta2.QuotaReserved) || w.Status.Admission == nil {
		return
	}
	t.reserving++
	if t.reserved == nil {
		t.reserved, t.used = map[string]corev1.ResourceList{}, map[string]corev1.ResourceList{}
	}
	charge(t.reserved, w.Status.Admission)
	if isAdmitted {
		t.admitted++
		charge(t.used, w.Status.Admission)
	}
}

func charge(totals map[string]corev1.ResourceList, admission *v1beta2.Admission) {
	for i := range admission.PodSetAssignments {
		p := &admission.PodSetAssignments[i]
		for name, flavor := range p.Flavors {
			if totals[flavor] == nil {
				totals[flavor] = corev1.ResourceList{}
			}
			sum := totals[flavor][name]
			sum.Add(p.ResourceUsage[name])
			totals[flavor][name] = sum
		}
	}
}

// usages are what is held of each flavor and resource that a queue has quota for, in the order of the queue.
func usages(q *settings.ClusterQueue, held map[string]corev1.ResourceList) []v1beta2.FlavorUsage {
	if q == nil {
		return nil
	}
	var all []v1beta2.FlavorUsage
	for _, group := range q.Groups {
		for _, f := range group.Flavors {
			usage := v1beta2.FlavorUsage{Name: f.Name}
			for i, name := range group.Resources {
				total, borrowed := held[f.Name][name], resource.Quantity{}
				if q.Cohort != "" && total.Cmp(f.Quotas[i].Nominal) > 0 {
					borrowed = total.DeepCopy()
					borrowed.Sub(f.Quotas[i].Nominal)
				}
				usage.Resources = append(usage.Resources, v1beta2.ResourceUsage{Name: name, Total: total, Borrowed: &borrowed})
			}
			all = append(all, usage)
		}
	}
	return all
}

func withoutBorrowed(of []v1beta2.FlavorUsage) []v1beta2.FlavorUsage {
	for i := range of {
		for j := range of[i].Resources {
			of[i].Resources[j].Borrowed = nil
		}
	}
	return of
}

// write patches a status that has changed.
func write[S any](ctx context.Context, api client.Client, object, before client.Object, old, changed *S) (reconcile.Result, error) {
	if apiequality.Semantic.DeepEqual(old, changed) {
		return reconcile.Result{}, nil
	}
	err := api.Status().Patch(ctx, object, client.MergeFrom(before))
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// sortedOnce are names in order, each once.
func sortedOnce(names []string) []string {
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}
