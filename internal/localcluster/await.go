package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// stallPatience is how long a wait goes on without progress.
	stallPatience = 2 * time.Minute
	// stepOfWork is the processor time that counts as progress, and startWork how much of it a wait may take in all. An
	// API server starts in some seconds of it, also when they take many minutes because others use the machine. One
	// that cannot become ready still takes some: the bound ends that.
	stepOfWork, startWork = time.Second, 30 * time.Second
	// tellAfter is how long a wait is silent, and tellEvery how often it says then what it waits for.
	tellAfter, tellEvery = 5 * time.Second, 10 * time.Second
	// attemptPatience bounds one request: one that hangs must not keep the wait from saying so.
	attemptPatience = 20 * time.Second
	// keptTexts bounds what is remembered of the reasons for a wait.
	keptTexts = 1000
)

// final is an error with which no wait goes on.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Await waits until a condition holds that processes of the cluster bring about, for as long as there is progress: they
// take processor time, or the reason why it does not hold becomes one that was not seen in this wait. It says now and
// then what it waits for. It fails if a process has ended, if there is no progress, and if the condition returns what
// [Final] has made.
func (c *Cluster) Await(ctx context.Context, what string, condition func(context.Context) error, processes ...string) error {
	by := slices.DeleteFunc(c.Processes(), func(p *Process) bool { return !slices.Contains(processes, p.Name) })
	return c.await(ctx, what, condition, by...)
}

// Final makes an error with which no wait goes on.
func Final(err error) error { return final{err} }

// await is Await for processes that are at hand.
func (c *Cluster) await(ctx context.Context, what string, condition func(context.Context) error, by ...*Process) error {
	w := newWait(time.Now(), c.progress)
	for {
		err := attempt(ctx, condition)
		var last final
		switch {
		case err == nil:
			return nil
		case errors.As(err, &last):
			return last.error
		case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
			return fmt.Errorf("interrupted while waiting for %s: %w", what, ctx.Err())
		}
		for _, process := range by {
			if !process.IsAlive() {
				return fmt.Errorf("%s has ended; the end of its log %s:\n%s", process.Name, process.LogPath, process.tail())
			}
		}
		var spent time.Duration
		for _, process := range by {
			spent += processorTime(process.PID)
		}
		if why := w.observe(time.Now(), spent, err.Error()); why != "" || ctx.Err() != nil {
			if why == "" {
				why = ctx.Err().Error()
			}
			return fmt.Errorf("waited for %s in vain (%s): %w%s", what, why, err, tails(by))
		}
		w.tell(time.Now(), what, err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(processPoll):
		}
	}
}

// attempt asks once.
func attempt(ctx context.Context, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptPatience)
	defer cancel()
	return condition(ctx)
}

// tails are the ends of the logs.
func tails(of []*Process) string {
	var text strings.Builder
	for _, process := range of {
		fmt.Fprintf(&text, "\nThe end of the log of %s, %s:\n%s", process.Name, process.LogPath, process.tail())
	}
	return text.String()
}

// waiting is what a wait has seen.
type waiting struct {
	begun, progressed, told time.Time
	begunWork, counted      time.Duration // of processor time
	hasWork                 bool
	seen                    map[string]bool
	out                     io.Writer // nil says nothing
}

func newWait(now time.Time, out io.Writer) *waiting {
	return &waiting{begun: now, progressed: now, told: now.Add(tellAfter - tellEvery), seen: map[string]bool{}, out: out}
}

// observe takes in how much processor time was spent, and why the condition does not hold. It returns why it is in vain
// to go on, "" if it is not.
func (w *waiting) observe(now time.Time, spent time.Duration, reason string) string {
	if !w.hasWork {
		w.hasWork, w.begunWork, w.counted = true, spent, spent
	}
	if isFirst := !w.seen[withoutNumbers(reason)]; isFirst && len(w.seen) < keptTexts {
		w.seen[withoutNumbers(reason)] = true
		w.progressed = now
	}
	if spent-w.counted >= stepOfWork && spent-w.begunWork <= startWork {
		w.counted, w.progressed = spent, now
	}
	if now.Sub(w.progressed) < stallPatience {
		return ""
	}
	return fmt.Sprintf("no progress for %s", stallPatience)
}

// tell says what is waited for, if it has not been said for a while.
func (w *waiting) tell(now time.Time, what, because string) {
	if w.out == nil || now.Sub(w.told) < tellEvery {
		return
	}
	w.told = now
	const longest = 300
	because, _, _ = strings.Cut(because, "\n")
	_, _ = fmt.Fprintf(w.out, "Waiting for %s for %s: %.*s\n", what, now.Sub(w.begun).Round(time.Second), longest, because)
}

// withoutNumbers makes sentences equal that differ in numbers only, such as those of ports.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// passing makes an error of the API server final unless it may pass: an API server on a slow machine answers late, or
// refuses because it is not complete yet.
func passing(err error) error {
	switch {
	case err == nil, isNotYetJudged(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err), errors.Is(err, context.DeadlineExceeded),
		utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), utilnet.IsTimeout(err):
		return err
	}
	return final{err}
}
