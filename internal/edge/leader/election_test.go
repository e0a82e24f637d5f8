package leader

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/config"
)

// lease is a lock in memory, which may stop to answer.
type lease struct {
	mutex    sync.Mutex
	record   *resourcelock.LeaderElectionRecord
	isSilent bool
	renewed  time.Time
}

// candidate is one place at a lease.
type candidate struct {
	*lease
	name string
}

func (c candidate) answer(ctx context.Context) error {
	c.mutex.Lock()
	isSilent := c.isSilent
	c.mutex.Unlock()
	if isSilent {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (c candidate) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := c.answer(ctx); err != nil {
		return nil, nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "lease")
	}
	record := *c.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (c candidate) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return c.Update(ctx, record)
}

func (c candidate) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := c.answer(ctx); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.record, c.renewed = &record, time.Now()
	return nil
}

func (c candidate) RecordEvent(string) {}
func (c candidate) Identity() string   { return c.name }
func (c candidate) Describe() string   { return "lease" }

var defaultElection = config.LeaderElectionConfiguration{
	LeaderElect: true, ResourceName: "lease", ResourceNamespace: "default",
	LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
	RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
	RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
}

func newCandidate(t *testing.T, l *lease, name string) *Election {
	t.Helper()
	e, err := NewElection(&rest.Config{Host: "https://127.0.0.1:1"}, defaultElection)
	if err != nil {
		t.Fatal(err)
	}
	e.lock.Interface = candidate{l, name}
	return e
}

func TestWritesEndBeforeAnotherProcessCanLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		first := newCandidate(t, l, "first")
		lost := make(chan time.Time, 1)
		result := make(chan error, 1)
		go func() {
			result <- first.Lead(t.Context(), func(leading context.Context) error {
				<-leading.Done()
				lost <- time.Now()
				if !errors.Is(context.Cause(leading), ErrLeadershipLost) {
					t.Errorf("the cause is %v", context.Cause(leading))
				}
				return nil
			})
		}()
		time.Sleep(time.Minute)
		l.mutex.Lock()
		l.isSilent = true
		renewed := l.renewed
		l.mutex.Unlock()
		if since := (<-lost).Sub(renewed); since > defaultElection.RenewDeadline.Duration {
			t.Errorf("writes ended %s after the last renewal; the Lease lasts %s", since, defaultElection.LeaseDuration.Duration)
		}
		if err := <-result; !errors.Is(err, ErrLeadershipLost) {
			t.Errorf("got %v, want that leadership was lost", err)
		}
		l.mutex.Lock()
		l.isSilent = false
		l.mutex.Unlock()
		time.Sleep(time.Minute)
	})
}

func TestTheLeaseIsGivenBackAfterTheWorkIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		ctx, stop := context.WithCancel(t.Context())
		var firstEnded time.Time
		result := make(chan error, 1)
		go func() {
			result <- newCandidate(t, l, "first").Lead(ctx, func(leading context.Context) error {
				<-ctx.Done()
				time.Sleep(30 * time.Second) // longer than the Lease lasts: it has to be renewed meanwhile
				if leading.Err() != nil {
					t.Error("leadership ended before the work did")
				}
				firstEnded = time.Now()
				return errors.New("its own")
			})
		}()
		time.Sleep(time.Second)
		second := newCandidate(t, l, "second")
		secondCtx, stopSecond := context.WithCancel(t.Context())
		secondLed := make(chan time.Time, 1)
		secondResult := make(chan error, 1)
		go func() {
			secondResult <- second.Lead(secondCtx, func(context.Context) error {
				secondLed <- time.Now()
				<-secondCtx.Done()
				return nil
			})
		}()
		time.Sleep(time.Minute)
		stop()
		if err := <-result; err == nil || err.Error() != "its own" {
			t.Errorf("got %v, want the error of the function", err)
		}
		began := <-secondLed
		if waited := began.Sub(firstEnded); waited < 0 || waited > 2*defaultElection.RetryPeriod.Duration {
			t.Errorf("the second led %s after the first had ended", waited)
		}
		if !second.IsLeader() || second.Check() != nil {
			t.Error("the second does not know that it leads")
		}
		stopSecond()
		if err := <-secondResult; err != nil {
			t.Error(err)
		}
	})
}

func TestAStandbyThatIsStoppedNeverBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{record: &resourcelock.LeaderElectionRecord{HolderIdentity: "somebody", LeaseDurationSeconds: 15}}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		err := newCandidate(t, l, "standby").Lead(ctx, func(context.Context) error {
			t.Error("it began")
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
