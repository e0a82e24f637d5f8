package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/journal"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// Errors of questions.
var (
	// ErrBusy: the queue of questions is full. It is returned at once, and the caller may ask again later.
	ErrBusy = errors.New("the scheduler is busy: too many questions wait for an answer")
	// ErrNotRunning: the loop has not started, because another process leads or objects are still being read.
	ErrNotRunning = errors.New("the scheduler is not running: it does not lead, or is still reading objects")
	// ErrStopped: the loop has ended.
	ErrStopped = errors.New("the scheduler has stopped")
	// ErrNoPolicy: no configuration is in force yet.
	ErrNoPolicy = errors.New("the scheduler has no configuration yet")
)

// maxQuestions is how many questions may wait. Each takes the loop a few milliseconds, so the last is answered before
// its user loses patience.
const maxQuestions = 64

// maxEntries is the largest number of journal entries in one answer.
const maxEntries = 1000

// Questions asks a running scheduler about its model. Any goroutine may ask. The goroutine that owns the model answers
// between cycles. An answer does not point into the model.
//
// A question ends in an answer or an error: ErrBusy at once, the error of its context, ErrStopped when the loop ends,
// or the error of the answer.
type Questions struct {
	waiting          chan question
	running, stopped chan struct{} // closed when the loop starts and when it has ended
}

// question is a question that waits.
type question struct {
	ctx    context.Context
	answer func(s *Scheduler, now time.Time) // passes the answer to the caller
	fail   func(error)
}

func newQuestions() *Questions {
	return &Questions{waiting: make(chan question, maxQuestions), running: make(chan struct{}), stopped: make(chan struct{})}
}

// Questions returns what answers questions while [Scheduler.Run] runs.
func (s *Scheduler) Questions() *Questions { return s.questions }

// Job explains the state of a job and why it waits.
func (q *Questions) Job(ctx context.Context, id cluster.JobID) (explain.Job, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Job, error) { return m.Job(now, id) })
}

// Pod explains the state of a pod.
func (q *Questions) Pod(ctx context.Context, pod types.NamespacedName) (explain.Pod, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Pod, error) { return m.Pod(now, pod) })
}

// Queue explains what a queue holds and may hold.
func (q *Questions) Queue(ctx context.Context, name string) (explain.Queue, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Queue, error) { return m.Queue(now, name) })
}

// Node explains what a node has and which pods are on it.
func (q *Questions) Node(ctx context.Context, name string) (explain.Node, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Node, error) { return m.Node(name) })
}

// Submit says what would happen if a PodGroup and its pods were submitted. The objects must not change before the
// answer.
func (q *Questions) Submit(ctx context.Context, group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) (explain.Submission, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Submission, error) {
		return m.Submit(now, group, pods)
	})
}

// JobEntries returns the latest decisions about a job, the oldest first.
func (q *Questions) JobEntries(ctx context.Context, id cluster.JobID) ([]journal.Entry, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, _ time.Time) ([]journal.Entry, error) {
		return s.journal.OfJob(id, maxEntries), nil
	})
}

// PodEntries returns the latest decisions about a pod, the oldest first.
func (q *Questions) PodEntries(ctx context.Context, pod types.NamespacedName) ([]journal.Entry, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, _ time.Time) ([]journal.Entry, error) {
		return s.journal.OfPod(pod, maxEntries), nil
	})
}

// QueueEntries returns the latest decisions about the jobs of a queue, the oldest first.
func (q *Questions) QueueEntries(ctx context.Context, queue string) ([]journal.Entry, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, _ time.Time) ([]journal.Entry, error) {
		return s.journal.OfQueue(queue, maxEntries), nil
	})
}

// ask sends a question and waits for the answer.
func ask[T any](ctx context.Context, q *Questions, find func(*Scheduler, *explain.Model, time.Time) (T, error)) (T, error) {
	type result struct {
		answer T
		err    error
	}
	var none T
	select {
	case <-q.running:
	default:
		return none, ErrNotRunning
	}
	done := make(chan result, 1)
	put := question{ctx: ctx, fail: func(err error) { done <- result{err: err} }, answer: func(s *Scheduler, now time.Time) {
		var r result
		if m, err := s.Reader(); err != nil {
			r.err = err
		} else {
			r.answer, r.err = find(s, m, now)
		}
		done <- r
	}}
	select {
	case <-q.stopped:
		return none, ErrStopped
	default:
	}
	select {
	case q.waiting <- put:
	default:
		return none, ErrBusy
	}
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-q.stopped:
	}
	select {
	case r := <-done: // it was answered before the loop ended
		return r.answer, r.err
	default:
		return none, ErrStopped
	}
}

// Reader answers questions about the model. Only the goroutine that uses the scheduler may call it, between cycles.
func (s *Scheduler) Reader() (*explain.Model, error) {
	if s.policy == nil {
		return nil, ErrNoPolicy
	}
	if s.reader == nil {
		m, err := explain.New(s.cache, s.policy)
		if err != nil {
			return nil, fmt.Errorf("questions cannot be answered under this configuration: %w", err)
		}
		s.reader = m
	}
	return s.reader, nil
}

// Journal returns the journal, to be read between cycles.
func (s *Scheduler) Journal() *journal.Journal { return s.journal }

// reply answers a question if its caller still waits, and as long as it does. The work ends when it has taken too long.
// After a panic the caller gets an error, and the explaining model is made again, because it may have been interrupted
// while it updated its caches.
func (s *Scheduler) reply(q question, now time.Time) {
	if err := q.ctx.Err(); err != nil {
		q.fail(err)
		return
	}
	mustEnd := q.ctx.Err
	if s.beginAnswer != nil {
		isOver, end := s.beginAnswer()
		defer end()
		mustEnd = func() error {
			if isOver() {
				return cmp.Or(q.ctx.Err(), explain.ErrTooLarge)
			}
			return q.ctx.Err()
		}
	}
	defer func() {
		cause := recover()
		if s.reader != nil {
			s.reader.Bound(nil)
		}
		if cause == nil && (s.reader == nil || !s.reader.IsSpent()) {
			return
		}
		s.reader = nil
		switch cause := cause.(type) {
		case nil:
		case explain.Abandoned:
			q.fail(cause.Why)
		default:
			q.fail(fmt.Errorf("the scheduler failed over the question: %v", cause))
		}
	}()
	if m, err := s.Reader(); err == nil {
		m.Bound(mustEnd)
	}
	q.answer(s, now)
}
