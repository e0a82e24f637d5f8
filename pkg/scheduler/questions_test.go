package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// mailbox is an inbox and an outbox of which a test holds the other ends.
type mailbox struct {
	wake   chan struct{}
	events chan []cache.Event
	cycles chan Result
	isBusy bool
}

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1), events: make(chan []cache.Event, 1), cycles: make(chan Result, 1000)}
}

func (m *mailbox) Wake() <-chan struct{} { return m.wake }

func (m *mailbox) Take() ([]cache.Event, *framework.Policy) {
	select {
	case events := <-m.events:
		return events, nil
	default:
		return nil, nil
	}
}

func (m *mailbox) Do(decision.Decisions)         {}
func (m *mailbox) IsBusy() bool                  { return m.isBusy }
func (m *mailbox) Report(result Result, _ error) { m.cycles <- result }

// send passes events to the loop.
func (m *mailbox) send(events ...cache.Event) {
	m.events <- events
	m.wake <- struct{}{}
}

// realTime is the time of the machine.
type realTime struct{}

func (realTime) Now() time.Time                         { return time.Now() }
func (realTime) After(d time.Duration) <-chan time.Time { return time.After(d) }

// running runs the loop of a scheduler until the test ends.
func running(t *testing.T, s *Scheduler) *mailbox {
	m := newMailbox()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx, realTime{}, m, m, Pace{Coalesce: time.Millisecond, Period: time.Hour})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-s.questions.running
	return m
}

// newScheduler is a scheduler under the default configuration. The harness of the other tests cannot be used inside of
// the package.
func newScheduler(t *testing.T, objects ...runtime.Object) *Scheduler {
	t.Helper()
	registry := NewRegistry()
	policy, err := registry.Build(conf.Default(registry.Catalogue()))
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Cluster: cache.Options{SchedulerNames: []string{"volcano"}}})
	if err := s.Use(policy); err != nil {
		t.Fatal(err)
	}
	for _, o := range append(objects, fixture.Queue("default")) {
		s.Cache().Apply(cache.Set{Object: o})
	}
	return s
}

func TestARunningSchedulerAnswers(t *testing.T) {
	s := newScheduler(t, fixture.Node("n", "cpu=2"))
	m := running(t, s)
	m.send(cache.Set{Object: fixture.Group("g", "default", 1)}, cache.Set{Object: fixture.Pod("g-0", fixture.In("g"), fixture.Asks("cpu=4"))})
	<-m.cycles
	q, ctx := s.Questions(), t.Context()
	j, err := q.Job(ctx, cluster.GroupID(fixture.Key("g")))
	if err != nil || j.Verdict == nil || j.Verdict.Code != "TooLargeForAnyNode" {
		t.Errorf("the job is %+v, %v", j, err)
	}
	p, err := q.Pod(ctx, fixture.Key("g-0"))
	if err != nil || p.Status != "Pending" {
		t.Errorf("the pod is %+v, %v", p, err)
	}
	if n, err := q.Node(ctx, "n"); err != nil || n.Idle["cpu"] != "2" {
		t.Errorf("the node is %+v, %v", n, err)
	}
	if queue, err := q.Queue(ctx, "default"); err != nil || queue.Jobs.Admitted != 1 {
		t.Errorf("the queue is %+v, %v", queue, err)
	}
	submitted, err := q.Submit(ctx, fixture.Group("new", "default", 1), []*corev1.Pod{fixture.Pod("new-0")})
	if err != nil || submitted.Outcome != explain.OutcomeBound {
		t.Errorf("what is submitted would be %+v, %v", submitted, err)
	}
	entries, err := q.JobEntries(ctx, cluster.GroupID(fixture.Key("g")))
	if err != nil || len(entries) != 1 || entries[0].Reason != "TooLargeForAnyNode" || entries[0].Cycle != 1 {
		t.Errorf("the entries are %+v, %v", entries, err)
	}
	ofQueue, err := q.QueueEntries(ctx, "default")
	ofPod, other := q.PodEntries(ctx, fixture.Key("g-0"))
	if err != nil || other != nil || len(ofQueue) != 1 || len(ofPod) != 0 {
		t.Errorf("the entries are %+v, %v and %+v, %v", ofQueue, err, ofPod, other)
	}
	if _, err := q.Job(ctx, cluster.GroupID(fixture.Key("nowhere"))); !errors.As(err, &explain.NotFound{}) {
		t.Errorf("of a job that is not there is said %v", err)
	}
}

func TestAWorkloadThatWaitsIsExplained(t *testing.T) {
	s := newScheduler(t, fixture.Node("n", "cpu=2"))
	m := running(t, s)
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", UID: "w"}, Spec: v1beta2.WorkloadSpec{QueueName: "nowhere"}}
	m.send(cache.Set{Object: w})
	<-m.cycles
	found, err := s.Questions().WhyWorkload(t.Context(), "default", "w")
	if err != nil || found.Why.Queued == nil {
		t.Fatalf("the answer is %+v, %v", found, err)
	}
	if c := found.Why.Cause; !c.Waits || c.Code != "Misconfigured" || c.Message != "LocalQueue nowhere doesn't exist" || found.Why.Queued.State != queued.NotQueued {
		t.Errorf("the cause is %+v, and it stands as %+v", c, found.Why.Queued)
	}
	if _, err := s.Questions().WhyWorkload(t.Context(), "default", "other"); !errors.As(err, &explain.NotFound{}) {
		t.Errorf("of a Workload that is not there is said %v", err)
	}
}

func TestEveryQuestionEnds(t *testing.T) {
	s := newScheduler(t)
	q := s.Questions()
	if _, err := q.Node(t.Context(), "n"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before the loop the error is %v", err)
	}
	m := running(t, s)
	release := make(chan struct{})
	blocked := make(chan struct{})
	// The loop is held up by a question, as by a cycle.
	go func() {
		_, _ = ask(context.Background(), q, func(*Scheduler, *explain.Model, time.Time) (int, error) {
			close(blocked)
			<-release
			return 0, nil
		})
	}()
	<-blocked
	short, cancel := context.WithCancel(t.Context())
	errs := make(chan error, maxQuestions)
	for range maxQuestions {
		go func() {
			_, err := q.Node(short, "n")
			errs <- err
		}()
	}
	for len(q.waiting) < maxQuestions {
		time.Sleep(time.Millisecond)
	}
	if _, err := q.Node(t.Context(), "n"); !errors.Is(err, ErrBusy) {
		t.Errorf("beyond the bound the error is %v", err)
	}
	cancel()
	for range maxQuestions {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("whose context is over has the error %v", err)
		}
	}
	close(release)
	for len(q.waiting) > 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := q.Node(t.Context(), "n"); !errors.As(err, &explain.NotFound{}) {
		t.Errorf("after that the answer is %v", err)
	}
	if _, err := ask(t.Context(), q, func(*Scheduler, *explain.Model, time.Time) (int, error) { panic("a mistake") }); err == nil ||
		!strings.Contains(err.Error(), "a mistake") {
		t.Errorf("over a panic the error is %v", err)
	}
	m.send(cache.Set{Object: fixture.Node("n", "cpu=2")})
	<-m.cycles
	if _, err := q.Node(t.Context(), "n"); err != nil {
		t.Errorf("after a panic the answer is %v", err)
	}
}

func TestWhoWaitsForAnAnswerIsToldThatTheLoopHasEnded(t *testing.T) {
	s := newScheduler(t)
	m := newMailbox()
	ctx, cancel := context.WithCancel(t.Context())
	q, ended, held, release := s.Questions(), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx, realTime{}, m, m, Pace{Coalesce: time.Millisecond, Period: time.Hour})
	}()
	<-q.running
	go func() {
		_, _ = ask(context.Background(), q, func(*Scheduler, *explain.Model, time.Time) (int, error) {
			close(held)
			<-release
			return 0, nil
		})
	}()
	<-held
	errs := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := ask(context.Background(), q, func(*Scheduler, *explain.Model, time.Time) (int, error) { return 0, nil })
			errs <- err
		}()
	}
	for len(q.waiting) < 10 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	close(release)
	<-ended
	for range 10 {
		if err := <-errs; err != nil && !errors.Is(err, ErrStopped) {
			t.Errorf("the error is %v", err)
		}
	}
	if _, err := q.Node(context.Background(), "n"); !errors.Is(err, ErrStopped) {
		t.Errorf("after the end the error is %v", err)
	}
}

// TestQuestionsAreAskedFromEverywhereWhileTheClusterChanges is for the race detector: no answer shares anything with
// the model.
func TestQuestionsAreAskedFromEverywhereWhileTheClusterChanges(t *testing.T) {
	s := newScheduler(t, fixture.Node("n", "cpu=2"))
	m := running(t, s)
	q := s.Questions()
	var askers sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		askers.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-done:
					return
				default:
				}
				name := fmt.Sprintf("new-%d-%d", i, round)
				j, err := q.Job(t.Context(), cluster.GroupID(fixture.Key("g")))
				if err == nil && j.Verdict != nil {
					j.Verdict.Helps, j.Pods["Pending"] = nil, 7 // it is the asker's
				}
				_, _ = q.JobEntries(t.Context(), cluster.GroupID(fixture.Key("g")))
				_, _ = q.Queue(t.Context(), "default")
				_, _ = q.Submit(t.Context(), fixture.Group(name, "default", 1), []*corev1.Pod{fixture.Pod(name)})
			}
		})
	}
	for i := range 100 {
		m.send(cache.Set{Object: fixture.Group("g", "default", 1)}, cache.Set{Object: fixture.Pod(fmt.Sprint("g-", i), fixture.In("g"))})
		if result := <-m.cycles; result.Panic != "" {
			t.Fatal(result.Panic)
		}
	}
	close(done)
	askers.Wait()
}

func TestQuestionsNeedAPolicy(t *testing.T) {
	s := New(Options{})
	if _, err := s.Reader(); !errors.Is(err, ErrNoPolicy) {
		t.Errorf("without a policy the error is %v", err)
	}
	if err := s.Use(&framework.Policy{Configuration: &conf.Configuration{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reader(); err == nil {
		t.Error("a policy that no registry has built has a twin")
	}
}
