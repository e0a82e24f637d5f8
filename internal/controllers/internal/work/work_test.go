package work

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAnObjectThatFailsIsTriedAgainWithinAMinute(t *testing.T) {
	options := Options(3)
	if options.MaxConcurrentReconciles != 3 {
		t.Errorf("it works on %d objects at a time, want 3", options.MaxConcurrentReconciles)
	}
	var failing, other reconcile.Request
	failing.Name, other.Name = "failing", "other"
	before := time.Duration(0)
	for i := range 20 {
		wait := options.RateLimiter.When(failing)
		if i == 0 && wait != 50*time.Millisecond || wait < before || wait > time.Minute {
			t.Fatalf("try %d comes after %s, the one before came after %s", i, wait, before)
		}
		before = wait
	}
	if before != time.Minute {
		t.Errorf("in the end it is tried after %s, want a minute", before)
	}
	if wait := options.RateLimiter.When(other); wait != 50*time.Millisecond {
		t.Errorf("another object waits %s for it", wait)
	}
	options.RateLimiter.Forget(failing)
	if wait := options.RateLimiter.When(failing); wait != 50*time.Millisecond {
		t.Errorf("after a success the first retry comes after %s", wait)
	}
}
