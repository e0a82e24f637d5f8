package edge

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

var before goleak.Option
