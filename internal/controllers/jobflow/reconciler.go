package jobflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/metrics"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// podsAfter is how long to wait for pods that are to be asked and have no address yet. What a Job tells of its pods
// wakes the JobFlow sooner; this is for an address that comes later.
const podsAfter = 2 * time.Second

// Reconciler brings one JobFlow at a time closer to its end. Add puts it to work.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	prober  *prober
	specs   *specs
	metrics *metrics.Metrics
	told    told
}

// Reconcile makes the Jobs whose time has come and writes the status if it differs. An error means that a request
// failed and that the JobFlow is to be tried again; the status is written all the same, because it says what went
// wrong.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &flowapi.JobFlow{}
	if err := r.client.Get(ctx, request.NamespacedName, stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.prober.want(request.NamespacedName, nil)
			r.told.forget(request.NamespacedName)
			r.metrics.JobFlowGone(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.metrics.JobFlow(stored, stored.Status.State.Phase)
	if work.LeavesAlone(r.events, stored) {
		return reconcile.Result{}, nil
	}
	v, err := r.look(ctx, stored)
	if err != nil {
		return reconcile.Result{}, err
	}
	if stored.DeletionTimestamp != nil {
		// The garbage collector takes the Jobs along.
		r.prober.want(request.NamespacedName, nil)
		return r.record(ctx, v, &decision{}, nil)
	}
	d := v.decide()
	if len(d.create) > 0 {
		// What the cache does not show yet may be that a Job was made, ended and went.
		live := &flowapi.JobFlow{}
		if err := r.live.Get(ctx, request.NamespacedName, live); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if live.UID != stored.UID || live.DeletionTimestamp != nil {
			return reconcile.Result{RequeueAfter: work.RereadAfter}, nil
		}
		if v, err = r.look(ctx, live); err != nil {
			return reconcile.Result{}, err
		}
		d = v.decide()
	}
	r.prober.want(request.NamespacedName, d.questions)
	err = r.create(ctx, v, &d)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, nil
	}
	isRecordedDone := v.flow.Status.State.Phase == flowapi.Succeed
	if isRecordedDone && v.flow.Spec.JobRetainPolicy == flowapi.Delete {
		err = errors.Join(err, r.deleteJobs(ctx, v))
	}
	result, err := r.record(ctx, v, &d, err)
	if result.RequeueAfter == 0 && asksPods(v.flow) && len(d.waiting) > 0 {
		result.RequeueAfter = podsAfter
	}
	return result, err
}

// asksPods reports whether a flow waits for pods to answer.
func asksPods(jobFlow *flowapi.JobFlow) bool {
	for i := range jobFlow.Spec.Flows {
		depends := jobFlow.Spec.Flows[i].DependsOn
		if depends != nil && depends.Probe != nil && len(depends.Probe.HttpGetList)+len(depends.Probe.TcpSocketList) > 0 {
			return true
		}
	}
	return false
}

// look gathers what a decision about the JobFlow is made by.
func (r *Reconciler) look(ctx context.Context, jobFlow *flowapi.JobFlow) (*view, error) {
	jobs := &batch.JobList{}
	err := r.client.List(ctx, jobs, client.InNamespace(jobFlow.Namespace),
		client.MatchingFields{jobsByFlow: string(jobFlow.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing Jobs: %w", err)
	}
	name := client.ObjectKeyFromObject(jobFlow)
	v := &view{
		flow: jobFlow, jobs: map[string]*batch.Job{}, templates: map[string]*flowapi.JobTemplate{},
		specOf: r.specs.specOf,
		pods:   func(job *batch.Job) []*corev1.Pod { return r.podsOf(ctx, job) },
		ask:    func(asked question) answer { return r.prober.answer(name, asked) },
	}
	for i := range jobs.Items {
		v.jobs[jobs.Items[i].Name] = &jobs.Items[i]
	}
	for i := range jobFlow.Spec.Flows {
		template := &flowapi.JobTemplate{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: jobFlow.Namespace, Name: jobFlow.Spec.Flows[i].Name}, template)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading JobTemplate %s: %w", jobFlow.Spec.Flows[i].Name, err)
		}
		if err == nil {
			v.templates[template.Name] = template
		}
	}
	return v, nil
}

// podsOf returns the pods of a Job. They are the cache's own and not to be changed.
func (r *Reconciler) podsOf(ctx context.Context, job *batch.Job) []*corev1.Pod {
	list := &corev1.PodList{}
	// The list is read from the index in memory, and fails only when the process ends.
	_ = r.client.List(ctx, list, client.InNamespace(job.Namespace),
		client.MatchingFields{podsByJob: string(job.UID)}, client.UnsafeDisableDeepCopy)
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods
}

// create makes the Jobs of the decision and puts them into the view. One that is refused stops no other.
func (r *Reconciler) create(ctx context.Context, v *view, d *decision) error {
	var problems []error
	for _, job := range d.create {
		made, isNew, err := r.createJob(ctx, v.flow, job)
		if err != nil {
			message := fmt.Sprintf("flow %s: %v", job.Name[len(v.flow.Name)+1:], err)
			d.troubles = append(d.troubles, trouble{flowapi.FailedCreateReason, message})
			problems = append(problems, err)
			continue
		}
		v.jobs[made.Name] = made
		if isNew {
			r.events.Eventf(v.flow, made, corev1.EventTypeNormal, flowapi.CreatedReason, "Create "+made.Name,
				"create a job named %s!", made.Name)
		}
	}
	return errors.Join(problems...)
}

// createJob makes a Job. If one of the name is there already, it must be the JobFlow's.
func (r *Reconciler) createJob(
	ctx context.Context, jobFlow *flowapi.JobFlow, job *batch.Job,
) (made *batch.Job, isNew bool, err error) {
	err = r.client.Create(ctx, job)
	if !apierrors.IsAlreadyExists(err) {
		return job, true, err
	}
	made = &batch.Job{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(job), made); err != nil {
		return nil, false, err
	}
	if metav1.IsControlledBy(made, jobFlow) {
		return made, false, nil
	}
	owner := "without an owner"
	if controller := metav1.GetControllerOf(made); controller != nil {
		owner = fmt.Sprintf("of %s %s with UID %s", controller.Kind, controller.Name, controller.UID)
	}
	return nil, false, fmt.Errorf("there is already a Job %s/%s, %s", made.Namespace, made.Name, owner)
}

// deleteJobs deletes the Jobs of a JobFlow that has succeeded.
func (r *Reconciler) deleteJobs(ctx context.Context, v *view) error {
	var problems []error
	for _, job := range v.jobs {
		if job.DeletionTimestamp != nil {
			continue
		}
		err := r.client.Delete(ctx, job, client.Preconditions{UID: &job.UID},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			err = fmt.Errorf("deleting Job %s, which spec.jobRetainPolicy delete asks for: %w", job.Name, err)
			r.events.Eventf(v.flow, job, corev1.EventTypeWarning, flowapi.FailedDeleteReason, "Delete "+job.Name,
				"%s", clip(err.Error()))
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// record writes the status if it differs, and tells in Events what is new in it. It passes on the error that came
// before, so that the JobFlow is tried again.
func (r *Reconciler) record(ctx context.Context, v *view, d *decision, cause error) (reconcile.Result, error) {
	status := v.observe(d)
	stored := v.flow
	if apiequality.Semantic.DeepEqual(&stored.Status, status) {
		r.told.replace(client.ObjectKeyFromObject(stored), stored.UID, d.troubles)
		return reconcile.Result{}, cause
	}
	updated := stored.DeepCopy()
	updated.Status = *status
	err := r.client.Status().Patch(ctx, updated, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: work.RereadAfter}, nil
	case err != nil:
		return reconcile.Result{}, errors.Join(cause, client.IgnoreNotFound(err))
	}
	r.metrics.JobFlow(stored, status.State.Phase)
	r.announce(stored, status.State, d)
	return reconcile.Result{}, cause
}

// announce sends Events for what the new state says that the stored one did not.
func (r *Reconciler) announce(stored *flowapi.JobFlow, state flowapi.State, d *decision) {
	before := stored.Status.State
	known := r.told.replace(client.ObjectKeyFromObject(stored), stored.UID, d.troubles)
	for i := range min(len(d.troubles), maxSentences) {
		if slices.Contains(known, d.troubles[i]) {
			continue
		}
		// The action tells the Events apart: the events API folds those with equal reason and action into one.
		action := fmt.Sprintf("Sync %d", i)
		r.events.Eventf(stored, nil, corev1.EventTypeWarning, d.troubles[i].reason, action, "%s", clip(d.troubles[i].message))
	}
	if state.Phase == before.Phase {
		return
	}
	kind, note := corev1.EventTypeNormal, fmt.Sprintf("%s → %s", before.Phase, state.Phase)
	if before.Phase == "" {
		note = string(state.Phase)
	}
	if state.Phase == flowapi.Failed {
		kind, note = corev1.EventTypeWarning, note+": "+state.Message
	}
	r.events.Eventf(stored, nil, kind, string(state.Phase), "ChangePhase", "%s", clip(note))
}
