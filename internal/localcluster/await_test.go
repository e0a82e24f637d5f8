package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// On a slow machine a check after the other succeeds, each after a minute and a half: that is progress, however long it
// takes in all.
func TestAWaitGoesOnWhileTheReasonChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		c := &Cluster{state: new(state), progress: &said}
		begun := time.Now()
		err := c.Await(t.Context(), "the API server", func(context.Context) error {
			const each = 90 * time.Second
			left := []string{"etcd", "informers", "roles", "priorities", "definitions"}[min(4, time.Since(begun)/each):]
			if time.Since(begun) > 5*each {
				return nil
			}
			return fmt.Errorf("failed: %s", strings.Join(left, ", "))
		})
		if err != nil {
			t.Errorf("it gave up: %v", err)
		}
		if lines := strings.Split(said.String(), "\n"); len(lines) < 40 || lines[0] != "Waiting for the API server for 5s: failed: etcd, informers, roles, priorities, definitions" {
			t.Errorf("it says\n%s", &said)
		}
	})
}

func TestAWaitWithoutProgressEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, begun, port := &Cluster{state: new(state)}, time.Now(), 1000
		err := c.Await(t.Context(), "the API server", func(context.Context) error {
			port++ // a number that changes is no progress
			return fmt.Errorf("read 127.0.0.1:%d: refused", port)
		})
		if err == nil || !strings.Contains(err.Error(), "the API server in vain (no progress for 2m0s)") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(begun); waited > stallPatience+time.Second {
			t.Errorf("it waited for %s", waited)
		}
	})
}

func TestARequestThatHangsKeepsNoWaitFromTelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		c, attempts := &Cluster{state: new(state), progress: &said}, 0
		err := c.Await(t.Context(), "an answer", func(ctx context.Context) error {
			if attempts++; attempts > 3 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil || !strings.HasPrefix(said.String(), "Waiting for an answer for 20s: context deadline exceeded") {
			t.Errorf("%v, and it says %q", err, &said)
		}
	})
}

func TestAWaitEndsAtOnceForWhatDoesNotPass(t *testing.T) {
	definitions := schema.GroupResource{Resource: "definitions"}
	for _, test := range []struct {
		err    error
		passes bool
	}{
		{apierrors.NewInternalError(errors.New("not complete yet")), true},
		{apierrors.NewServerTimeout(definitions, "patch", 1), true},
		{apierrors.NewTooManyRequests("busy", 1), true},
		{fmt.Errorf("request: %w", context.DeadlineExceeded), true},
		{apierrors.NewForbidden(definitions, "x", nil), false},
		{apierrors.NewBadRequest("no"), false},
	} {
		if isFinal := errors.As(passing(test.err), new(final)); isFinal == test.passes {
			t.Errorf("%v passes: %t, want %t", test.err, !isFinal, test.passes)
		}
	}
	c := &Cluster{state: new(state)}
	ended := errors.New("no")
	if err := c.Await(t.Context(), "nothing", func(context.Context) error { return Final(ended) }); !errors.Is(err, ended) || err.Error() != "no" {
		t.Errorf("got %v", err)
	}
}

// What a process does shows in its processor time: steps of a second count as progress, up to a bound.
func TestProcessorTimeIsProgressWithinABound(t *testing.T) {
	w := newWait(time.Unix(0, 0), nil)
	now := time.Unix(0, 0)
	var spent time.Duration
	for spent = 0; w.observe(now, spent, "not ready") == ""; spent += stepOfWork / 20 { // one that gets a twentieth of a core
		if now = now.Add(time.Second); now.Sub(time.Unix(0, 0)) > time.Hour {
			t.Fatal("it never ends")
		}
	}
	if spent < startWork || spent > startWork+10*stepOfWork {
		t.Errorf("it ended after %s of processor time, want a little more than %s", spent, startWork)
	}
}
