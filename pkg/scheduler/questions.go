package scheduler

import (
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

// Why a question is not answered.
var (
	// ErrBusy: as many questions wait for an answer as may. It is returned at once; to ask again later is for the caller.
	ErrBusy = errors.New("the scheduler is busy: too many questions wait for an answer")
	// ErrNotRunning: the loop has not begun, since another process leads or objects are still being read.
	ErrNotRunning = errors.New("the scheduler is not running: it does not lead, or is still reading objects")
	// ErrStopped: the loop has ended.
	ErrStopped = errors.New("the scheduler has stopped")
	// ErrNoPolicy: no configuration is in force yet.
	ErrNoPolicy = errors.New("the scheduler has no configuration yet")
)

// maxQuestions is how many questions may wait. Each takes the loop a few milliseconds, so that the last of them waits for less than
// a person does.
const maxQuestions = 64

// maxEntries is how many entries of the journal one answer holds.
const maxEntries = 1000

// Questions is where a running scheduler is asked about its model. Any goroutine may ask; the goroutine that owns the model answers
// between cycles. An answer refers to no part of the model.
//
// A question that is asked ends in an answer or an error: ErrBusy at once, the error of its context, ErrStopped when the loop
// ends, or what went wrong with the answer.
type Questions struct {
	waiting          chan question
	running, stopped chan struct{} // closed when the loop begins and when it has ended
}

// question is one that waits.
type question struct {
	ctx    context.Context
	answer func(s *Scheduler, now time.Time) // gives the answer to the asker
	fail   func(error)
}

func newQuestions() *Questions {
	return &Questions{waiting: make(chan question, maxQuestions), running: make(chan struct{}), stopped: make(chan struct{})}
}

// Questions is where the scheduler is asked while [Scheduler.Run] runs.
func (s *Scheduler) Questions() *Questions { return s.questions }

// Job asks where a job stands and why it waits.
func (q *Questions) Job(ctx context.Context, id cluster.JobID) (explain.Job, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Job, error) { return m.Job(now, id) })
}

// Pod asks where a pod stands.
func (q *Questions) Pod(ctx context.Context, pod types.NamespacedName) (explain.Pod, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Pod, error) { return m.Pod(now, pod) })
}

// Queue asks what a queue holds and may hold.
func (q *Questions) Queue(ctx context.Context, name string) (explain.Queue, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Queue, error) { return m.Queue(now, name) })
}

// Node asks what a node has and who is there.
func (q *Questions) Node(ctx context.Context, name string) (explain.Node, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Node, error) { return m.Node(name) })
}

// Submit asks what would happen if a PodGroup and its pods were submitted. The objects must not change before the answer.
func (q *Questions) Submit(ctx context.Context, group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) (explain.Submission, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (explain.Submission, error) {
		return m.Submit(now, group, pods)
	})
}

// JobEntries asks what was decided of a job lately, the oldest first.
func (q *Questions) JobEntries(ctx context.Context, id cluster.JobID) ([]journal.Entry, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, _ time.Time) ([]journal.Entry, error) {
		return s.journal.OfJob(id, maxEntries), nil
	})
}

// PodEntries asks what was decided of a pod lately, the oldest first.
func (q *Questions) PodEntries(ctx context.Context, pod types.NamespacedName) ([]journal.Entry, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, _ time.Time) ([]journal.Entry, error) {
		return s.journal.OfPod(pod, maxEntries), nil
	})
}

// QueueEntries asks what was decided of the jobs of a queue lately, the oldest first.
func (q *Questions) QueueEntries(ctx context.Context, queue string) ([]journal.Entry, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, _ time.Time) ([]journal.Entry, error) {
		return s.journal.OfQueue(queue, maxEntries), nil
	})
}

// ask puts a question and waits for the answer.
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
	case r := <-done: // it was answered before the end
		return r.answer, r.err
	default:
		return none, ErrStopped
	}
}

// Reader answers questions about the model, for the goroutine that uses the scheduler, between cycles.
func (s *Scheduler) Reader() (*explain.Model, error) {
	if s.policy == nil {
		return nil, ErrNoPolicy
	}
	if s.reader == nil {
		m, err := explain.New(s.cluster, s.policy)
		if err != nil {
			return nil, fmt.Errorf("questions cannot be answered under this configuration: %w", err)
		}
		s.reader = m
	}
	return s.reader, nil
}

// Journal is what was decided lately, for looking at between cycles.
func (s *Scheduler) Journal() *journal.Journal { return s.journal }

// reply answers a question whose asker still waits. If that panics, the asker is told, and what has answered is made anew: it may
// have been interrupted in the middle of catching up with the model.
func (s *Scheduler) reply(q question, now time.Time) {
	if err := q.ctx.Err(); err != nil {
		q.fail(err)
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			s.reader = nil
			q.fail(fmt.Errorf("the scheduler failed over the question: %v", cause))
		}
	}()
	q.answer(s, now)
}
