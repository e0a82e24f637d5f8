package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/config"
)

// ErrLeadershipLost says that the Lease could not be renewed in time, so that another process may lead. The process
// must end at once.
var ErrLeadershipLost = errors.New("leadership was lost: the Lease was not renewed in time")

// unwindTime is how long Lead waits for its function after leadership was lost, so that its log is complete. It sends
// no more requests by then.
const unwindTime = 3 * time.Second

// Election is a candidate in the election of a leader.
type Election struct {
	elector *leaderelection.LeaderElector
	lock    *fencedLock
	health  *leaderelection.HealthzAdaptor
	won     func() // set by Lead
}

// NewElection prepares an election by Lease. It has a limit of requests of its own, so that no load delays a renewal.
func NewElection(clientConfig *rest.Config, settings config.LeaderElectionConfiguration) (*Election, error) {
	clientConfig = rest.CopyConfig(clientConfig)
	// Half of the time for a renewal, so that leadership survives one request that hangs.
	clientConfig.Timeout = settings.RenewDeadline.Duration / 2
	leases, err := coordinationv1.NewForConfig(clientConfig)
	if err != nil {
		return nil, fmt.Errorf("API client for the Lease: %w", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this candidate: %w", err)
	}
	e := &Election{health: leaderelection.NewLeaderHealthzAdaptor(settings.RetryPeriod.Duration)}
	e.lock = &fencedLock{patience: settings.RenewDeadline.Duration, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: settings.ResourceNamespace, Name: settings.ResourceName},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: hostname + "_" + string(uuid.NewUUID())},
	}}
	e.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            e.lock,
		LeaseDuration:   settings.LeaseDuration.Duration,
		RenewDeadline:   settings.RenewDeadline.Duration,
		RetryPeriod:     settings.RetryPeriod.Duration,
		ReleaseOnCancel: true,
		WatchDog:        e.health,
		Name:            settings.ResourceName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { e.won() },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	e.health.SetLeaderElection(e.elector)
	return e, nil
}

// IsLeader reports whether this process holds the Lease, as far as it knows.
func (e *Election) IsLeader() bool { return e.elector.IsLeader() }

// Leader is the identity of the process that led when this one looked last, "" if it does not know.
func (e *Election) Leader() string { return e.elector.GetLeader() }

// Identity is the name of this candidate in the Lease.
func (e *Election) Identity() string { return e.lock.Identity() }

// Check returns an error if this process believes that it leads although its Lease has expired.
func (e *Election) Check() error { return e.health.Check(nil) }

// Lead waits for leadership and then runs a function once. After the Lease is released, it returns the error of the
// function. It returns nil if the context ended before leadership was won, or [ErrLeadershipLost]. The context of the
// function ends only with leadership, when there is no time to finish anything. For an orderly stop the function must
// watch the context of Lead. Lead is called once.
func (e *Election) Lead(ctx context.Context, function func(leading context.Context) error) error {
	// The Lease must outlive the context, because the function has to finish in order after it ends.
	electing, giveBack := context.WithCancel(context.WithoutCancel(ctx))
	defer giveBack()
	leading, lose := context.WithCancelCause(electing)
	e.lock.fence = time.AfterFunc(time.Hour, func() { lose(ErrLeadershipLost) })
	e.lock.fence.Stop()
	defer e.lock.fence.Stop()

	done := make(chan error, 1)
	// The first of two events decides: the function begins, or the context ends and it never does.
	var decided atomic.Bool
	e.won = func() {
		if decided.CompareAndSwap(false, true) {
			done <- function(leading)
		}
	}
	defer context.AfterFunc(ctx, func() {
		if decided.CompareAndSwap(false, true) {
			done <- nil
		}
	})()
	over := make(chan struct{})
	go func() {
		e.elector.Run(electing)
		lose(ErrLeadershipLost)
		close(over)
	}()
	select {
	case err := <-done:
		giveBack()
		<-over
		return err
	case <-leading.Done():
	}
	select {
	case <-done:
	case <-time.After(unwindTime):
	}
	return ErrLeadershipLost
}

// fencedLock ends leadership as soon as the last renewal is older than its patience. The elector's own limit is laxer.
// It counts from the first attempt that failed. Before it reports that leadership is lost, it tries to release the
// Lease, which takes as long again if the API server does not answer. By then another process may lead.
type fencedLock struct {
	resourcelock.Interface
	patience time.Duration
	fence    *time.Timer
}

func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(func() error { return l.Interface.Create(ctx, record) })
}

func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(func() error { return l.Interface.Update(ctx, record) })
}

// renew counts from before the request. Other candidates count from when they see the renewed Lease, which is later.
func (l *fencedLock) renew(write func() error) error {
	begin := time.Now()
	err := write()
	if err == nil {
		l.fence.Reset(l.patience - time.Since(begin))
	}
	return err
}
