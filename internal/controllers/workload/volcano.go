package workload

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"hekla.sh/hekla/internal/queueing"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Holder says which Jobs of batch.volcano.sh wait for their Workloads, and what the pods of admitted ones get. The
// controller of these Jobs asks it before it makes pods.
type Holder struct {
	client     client.Client
	state      *state
	setup      *setup
	schedulers []string
	owners     *queueing.OwnerFinder
}

// AreServed reports whether Workloads are what is admitted of jobs and pods that name a LocalQueue. Until it is known
// it says so. Of a nil Holder they are not.
func (h *Holder) AreServed() bool {
	return h != nil && (h.state.current.Load() == nil || h.state.isOn())
}

// Changes gets an event when it is known whether Workloads are served, and when that changes. The name is that of the
// controller that asks, before the manager starts.
func (h *Holder) Changes(name string) <-chan event.GenericEvent { return h.setup.wakeOf(name) }

// Wake queues all objects again: what failed, because the API server had not the kinds, succeeds now.
func (h *Holder) Wake() { h.setup.wakeAll() }

// Standing is how a Job stands with its Workload.
type Standing struct {
	// IsQueued says that the Job has pods only while its Workload is admitted, and needs no PodGroup.
	IsQueued bool
	// Waits says why the Job may not have pods now, "" if it may.
	Waits string
}

// Stand returns how a Job stands, and gives what its pods get to its tasks. Until it is known whether Workloads are
// served, a Job that names a LocalQueue waits.
func (h *Holder) Stand(ctx context.Context, job *batch.Job) (Standing, error) {
	of := queueing.VolcanoJob{Job: job}
	if is, _ := of.IsQueued(); h == nil || !is {
		return Standing{}, nil
	}
	if h.state.current.Load() == nil {
		return Standing{IsQueued: true, Waits: "it is not known yet whether Workloads are served"}, nil
	}
	if !h.state.isOn() {
		return Standing{}, nil
	}
	switch top, err := h.owners.Top(ctx, job, h.state.policy().External); {
	case err != nil:
		return Standing{IsQueued: true, Waits: "its owner could not be read"}, err
	case top != nil:
		return Standing{}, nil // what has made it starts and stops it
	}
	waits := Standing{IsQueued: true}
	name := queueing.VolcanoJobs.WorkloadOf(job)
	w := &v1beta2.Workload{}
	if err := h.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, w); err != nil {
		waits.Waits = fmt.Sprintf("Workload %s does not exist yet", name)
		if !apierrors.IsNotFound(err) {
			return waits, err
		}
		var why missing
		if _, err := queueing.NewWorkload(of, lookup{ctx, h.client}); !isPrebuilt(of) && errors.As(err, &why) {
			waits.Waits += ": " + why.Error()
		}
		return waits, nil
	}
	if w.DeletionTimestamp != nil || !conditions.Is(w, v1beta2.Admitted) || conditions.Is(w, v1beta2.Evicted) || w.Status.Admission == nil {
		waits.Waits = fmt.Sprintf("Workload %s waits in LocalQueue %s", name, w.Spec.QueueName)
		if c := conditions.Of(w, v1beta2.QuotaReserved); c != nil && !conditions.Is(w, v1beta2.QuotaReserved) {
			waits.Waits += ": " + c.Message
		}
		return waits, nil
	}
	infos, err := queueing.PodSetInfos(w, of.PodSets(), h.schedulers, lookup{ctx, h.client})
	if err == nil {
		err = of.Give(infos)
	}
	if err != nil {
		waits.Waits = err.Error()
	}
	return waits, err
}
