package workload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"hekla.sh/hekla/internal/queueing/policy"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// lookInterval is how often the scheduler's configuration and the Lease of Kueue are looked at.
const lookInterval = 10 * time.Second

// ReasonKueueRuns is the reason of the Event that says that Kueue itself runs.
const ReasonKueueRuns = "KueueRuns"

// state is what all controllers of workloads go by, and keeps it up to date.
type state struct {
	live          client.Reader
	events        events.EventRecorder
	configuration client.ObjectKey // the ConfigMap of the scheduler
	now           func() time.Time
	current       atomic.Pointer[policy.Policy]
	kueueRuns     atomic.Bool
	changed       func() // called when what all go by has changed
}

// policy is what the scheduler's configuration says.
func (s *state) policy() policy.Policy {
	if p := s.current.Load(); p != nil {
		return *p
	}
	return policy.Policy{}
}

// isOn reports whether the controllers are to do anything.
func (s *state) isOn() bool { return s.policy().IsOn && !s.kueueRuns.Load() }

// Start looks until the context ends.
func (s *state) Start(ctx context.Context) error {
	for {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "Will look again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookInterval):
		}
	}
}

// look reads the configuration and the Lease. What cannot be read stays as it was.
func (s *state) look(ctx context.Context) error {
	wasOn := s.isOn()
	err := errors.Join(s.lookForKueue(ctx), s.readConfiguration(ctx))
	if s.isOn() != wasOn {
		logf.FromContext(ctx).Info("Workloads of kueue.x-k8s.io", "served", s.isOn(), "kueueRuns", s.kueueRuns.Load())
		s.changed()
	}
	return err
}

// configurationKey is where the text of the configuration is in its ConfigMap.
const configurationKey = "volcano-scheduler.conf"

func (s *state) readConfiguration(ctx context.Context) error {
	found := &corev1.ConfigMap{}
	err := s.live.Get(ctx, s.configuration, found)
	if apierrors.IsNotFound(err) {
		s.current.Store(&policy.Policy{})
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	read, err := policy.Read([]byte(found.Data[configurationKey]))
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", s.configuration, err)
	}
	s.current.Store(&read)
	return nil
}

// lookForKueue sees whether Kueue's own controllers hold their Lease, in whichever namespace.
func (s *state) lookForKueue(ctx context.Context) error {
	leases := &coordinationv1.LeaseList{}
	if err := s.live.List(ctx, leases, client.MatchingFields{"metadata.name": v1beta2.LeaseName}); err != nil {
		return fmt.Errorf("looking for the Lease of Kueue: %w", err)
	}
	var held *coordinationv1.Lease
	for i := range leases.Items {
		if isHeld(&leases.Items[i], s.now()) {
			held = &leases.Items[i]
		}
	}
	if held != nil && !s.kueueRuns.Load() {
		s.events.Eventf(held, nil, corev1.EventTypeWarning, ReasonKueueRuns, "Look",
			"Kueue itself runs, by this Lease: Hekla leaves the objects of kueue.x-k8s.io to it")
	}
	s.kueueRuns.Store(held != nil)
	return nil
}

// isHeld reports whether a Lease has a holder that has renewed it in time.
func isHeld(lease *coordinationv1.Lease, now time.Time) bool {
	spec := &lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second))
}
