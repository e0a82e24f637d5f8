package garbagecollector

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/cronjob"
	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/jobflow"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "gc-controller"

const (
	// recordPatience is how long a Job waits for its CronJob or JobFlow to know of it. Their controllers need
	// milliseconds; one that is switched off, or cannot write, must not keep Jobs for ever.
	recordPatience = 5 * time.Minute

	// recheckAfter is how soon a Job is looked at again that could not be deleted yet.
	recheckAfter = time.Second
)

// Options of the controller.
type Options struct {
	// Workers is how many Jobs are worked on at a time.
	Workers int
}

// Reconciler deletes one Job at a time when it has expired. Add puts it to work.
type Reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// Add puts the controller into the manager.
func Add(mgr manager.Manager, options Options) error {
	r := &Reconciler{client: mgr.GetClient(), clock: clock.RealClock{}}
	isMortal := predicate.NewPredicateFuncs(func(object client.Object) bool {
		job, is := object.(*batch.Job)
		if !is {
			return false
		}
		_, expires := expiry(job)
		return expires
	})
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&batch.Job{}, builder.WithPredicates(isMortal)).
		WithOptions(work.Options(options.Workers)).
		Complete(r)
}

// Reconcile deletes the Job if it has expired, or says when it will.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	job := &batch.Job{}
	if err := r.client.Get(ctx, request.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	expires, isMortal := expiry(job)
	if !isMortal || job.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now := r.clock.Now()
	if now.Before(expires) {
		return reconcile.Result{RequeueAfter: expires.Sub(now)}, nil
	}
	isNeeded, err := r.isNeeded(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	if isNeeded && now.Before(expires.Add(recordPatience)) {
		return reconcile.Result{RequeueAfter: recheckAfter}, nil
	}
	err = r.client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationForeground))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: recheckAfter}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("deleting the Job, whose spec.ttlSecondsAfterFinished is over: %w", err)
	}
	return reconcile.Result{}, nil
}

// isNeeded reports whether only the Job itself shows that its CronJob or JobFlow has started it.
func (r *Reconciler) isNeeded(ctx context.Context, job *batch.Job) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(job)
	if owner == nil {
		return false, nil
	}
	name := client.ObjectKey{Namespace: job.Namespace, Name: owner.Name}
	switch schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) {
	case batch.GroupVersion.WithKind("CronJob"):
		cronJob := &batch.CronJob{}
		if err := r.client.Get(ctx, name, cronJob); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return cronJob.UID == owner.UID && !cronjob.IsRecorded(cronJob, job), nil
	case flowapi.GroupVersion.WithKind("JobFlow"):
		jobFlow := &flowapi.JobFlow{}
		if err := r.client.Get(ctx, name, jobFlow); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return jobFlow.UID == owner.UID && !jobflow.IsRecorded(jobFlow, job), nil
	}
	return false, nil
}
