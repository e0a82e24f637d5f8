package cronjob

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Name is the name of this controller in flags, logs and metrics.
const Name = "cronjob-controller"

// jobsByCronJob is the index of Jobs by the UID of the CronJob that controls them.
const jobsByCronJob = "cronJob"

// Options of the controller.
type Options struct {
	// Workers is how many CronJobs are worked on at a time.
	Workers int

	// ShortestInterval is how close together the runs of a CronJob may be, a minute at most. Schedules that ask for
	// more are followed so. Zero allows all.
	ShortestInterval time.Duration

	// Clock says what time it is; nil is the machine's.
	Clock clock.PassiveClock
}

// Add puts the controller into the manager.
func Add(mgr manager.Manager, options Options) error {
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), events: recorder.For(mgr, Name), clock: options.Clock,
		shortestInterval: options.ShortestInterval}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &batch.Job{}, jobsByCronJob, indexByCronJob)
	if err != nil {
		return fmt.Errorf("indexing Jobs by CronJob: %w", err)
	}
	return builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&batch.CronJob{}).
		Owns(&batch.Job{}).
		WithOptions(work.Options(options.Workers)).
		Complete(r)
}

// indexByCronJob is the UID of the CronJob that controls a Job.
func indexByCronJob(object client.Object) []string {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != kind.Kind || owner.APIVersion != kind.GroupVersion().String() {
		return nil
	}
	return []string{string(owner.UID)}
}
