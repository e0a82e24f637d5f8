package workload

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"hekla.sh/hekla/internal/controllers/workload/protection"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/pkg/conf"
)

// state is what all controllers of workloads go by, and keeps it up to date.
type state struct {
	live          client.Reader
	events        events.EventRecorder
	configuration client.ObjectKey // the ConfigMap of the scheduler
	now           func() time.Time
	current       atomic.Pointer[queueing.Policy]
	kueueRuns     atomic.Bool
	changed       func() // called when what all go by has changed
}

// policy is what the scheduler's configuration says.
func (s *state) policy() queueing.Policy {
	if p := s.current.Load(); p != nil {
		return *p
	}
	return queueing.Policy{}
}

// isOn reports whether the controllers are to do anything.
func (s *state) isOn() bool { return s.policy().IsOn && !s.kueueRuns.Load() }

// serving says who serves Workloads, as far as that is known.
func (s *state) serving() protection.Serving {
	switch {
	case s.current.Load() == nil || s.kueueRuns.Load():
		return protection.Unknown
	case s.policy().IsOn:
		return protection.Served
	}
	return protection.NotServed
}

// Start looks until the context ends.
func (s *state) Start(ctx context.Context) error {
	for {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "Will look again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(serving.Interval):
		}
	}
}

// look reads the configuration and the Lease. What cannot be read stays as it was.
func (s *state) look(ctx context.Context) error {
	wasKnown, wasOn, was := s.current.Load() != nil, s.isOn(), s.policy()
	err := errors.Join(s.lookForKueue(ctx), s.readConfiguration(ctx))
	if s.isOn() && wasOn && !reflect.DeepEqual(was, s.policy()) {
		s.changed()
	}
	if s.isOn() != wasOn || s.current.Load() != nil && !wasKnown {
		logf.FromContext(ctx).Info("Workloads of kueue.x-k8s.io", "served", s.isOn(), "kueueRuns", s.kueueRuns.Load())
		s.changed()
	}
	return err
}

// readConfiguration reads what the scheduler goes by. At the start, an invalid configuration is replaced by the
// default, as the scheduler does.
func (s *state) readConfiguration(ctx context.Context) error {
	text, err := serving.Configuration(ctx, s.live, s.configuration)
	if err != nil {
		return err
	}
	read, err := queueing.ReadPolicy(text)
	if err != nil {
		err = fmt.Errorf("ConfigMap %s: %w", s.configuration, err)
		if s.current.Load() != nil {
			return err
		}
		read, _ = queueing.ReadPolicy([]byte(conf.DefaultYAML))
	}
	s.current.Store(&read)
	return err
}

// lookForKueue sees whether Kueue's own controllers hold their Lease.
func (s *state) lookForKueue(ctx context.Context) error {
	held, err := serving.Kueue(ctx, s.live, s.now())
	if err != nil {
		return err
	}
	if held != nil && !s.kueueRuns.Load() {
		s.events.Eventf(held, nil, corev1.EventTypeWarning, serving.KueueRunsReason, "Look", "%s", serving.KueueRunsMessage)
	}
	s.kueueRuns.Store(held != nil)
	return nil
}
