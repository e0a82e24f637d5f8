package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// log is a sink that notes what it is asked for, and answers with the errors in turn.
type log struct {
	asked  []string
	errors []error
}

func (l *log) answer(request string, event *corev1.Event) (*corev1.Event, error) {
	l.asked = append(l.asked, fmt.Sprintf("%s %s %d", request, event.Name, event.Count))
	if len(l.errors) == 0 {
		return event, nil
	}
	err := l.errors[0]
	l.errors = l.errors[1:]
	return nil, err
}

func (l *log) Create(event *corev1.Event) (*corev1.Event, error) { return l.answer("create", event) }
func (l *log) Update(event *corev1.Event) (*corev1.Event, error) { return l.answer("update", event) }
func (l *log) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	return l.answer("patch", event)
}

func eventOf(kind, name string, count int32) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Type: kind, Count: count}
}

// sent runs an outlet for a time, and returns what it has asked for.
func sent(t *testing.T, into *log, fill func(*outlet), of time.Duration) []string {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := newOutlet(into, logr.Discard())
		fill(o)
		ctx, cancel := context.WithCancel(t.Context())
		go o.run(ctx)
		time.Sleep(of)
		synctest.Wait()
		cancel()
	})
	return into.asked
}

func TestWarningsAreWrittenFirst(t *testing.T) {
	got := sent(t, &log{}, func(o *outlet) {
		_, _ = o.Create(eventOf(corev1.EventTypeNormal, "started", 1))
		_, _ = o.Create(eventOf(corev1.EventTypeWarning, "failed", 1))
	}, time.Second)
	if want := []string{"create failed 1", "create started 1"}; !slices.Equal(got, want) {
		t.Errorf("asked is %q, want %q", got, want)
	}
}

func TestWhatIsSaidAgainBeforeItIsWrittenIsOneRequest(t *testing.T) {
	got := sent(t, &log{}, func(o *outlet) {
		_, _ = o.Create(eventOf(corev1.EventTypeNormal, "a", 1))
		_, _ = o.Create(eventOf(corev1.EventTypeNormal, "b", 1))
		_, _ = o.Patch(eventOf(corev1.EventTypeNormal, "a", 2), []byte("{}"))
		_, _ = o.Patch(eventOf(corev1.EventTypeNormal, "a", 3), []byte("{}"))
	}, time.Second)
	if want := []string{"create a 3", "create b 1"}; !slices.Equal(got, want) {
		t.Errorf("asked is %q, want %q", got, want)
	}
}

func TestAnEventThatHasExpiredIsCreatedAgain(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, "a")
	got := sent(t, &log{errors: []error{gone}}, func(o *outlet) {
		_, _ = o.Patch(eventOf(corev1.EventTypeNormal, "a", 2), []byte("{}"))
	}, time.Second)
	if want := []string{"patch a 2", "create a 2"}; !slices.Equal(got, want) {
		t.Errorf("asked is %q, want %q", got, want)
	}
}

func TestAnEventIsSentAgainIfThereIsNoAnswer(t *testing.T) {
	none := errors.New("connection refused")
	t.Run("after longer and longer pauses", func(t *testing.T) {
		into := &log{errors: []error{none, none}}
		got := sent(t, into, func(o *outlet) { _, _ = o.Create(eventOf(corev1.EventTypeNormal, "a", 1)) }, 3*firstPause)
		if want := []string{"create a 1", "create a 1", "create a 1"}; !slices.Equal(got, want) {
			t.Errorf("asked is %q, want %q", got, want)
		}
	})
	t.Run("not without end, and not if it is refused", func(t *testing.T) {
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "b", errors.New("the namespace is going"))
		into := &log{errors: []error{none, none, none, none, refused}}
		got := sent(t, into, func(o *outlet) {
			for _, name := range []string{"a", "b", "c"} {
				_, _ = o.Create(eventOf(corev1.EventTypeNormal, name, 1))
			}
		}, time.Hour)
		if want := []string{"create a 1", "create a 1", "create a 1", "create a 1", "create b 1", "create c 1"}; !slices.Equal(got, want) {
			t.Errorf("asked is %q, want %q", got, want)
		}
	})
}

func TestEventsLeaveTheAPIServerToOthers(t *testing.T) {
	const seconds = 10
	fill := func(o *outlet) {
		for i := range maxWaiting + 5 {
			_, _ = o.Create(eventOf(corev1.EventTypeNormal, fmt.Sprint("e", i), 1))
		}
	}
	if got, want := len(sent(t, &log{}, fill, seconds*time.Second)), eventsAtOnce+seconds*eventsPerSecond; got != want {
		t.Errorf("%d were written in %d s, want %d", got, seconds, want)
	}
	// Those of the first minute, and then the last that are not too many to wait.
	all := eventsAtOnce + int(staleAfter.Seconds())*eventsPerSecond + eventsAtOnce
	if got := len(sent(t, &log{}, fill, time.Hour)); got < all || got > all+eventsPerSecond {
		t.Errorf("%d were written in all, want %d", got, all)
	}
}

func TestAnEventBehindThousandsIsWrittenSoon(t *testing.T) {
	var got []string
	into := &log{}
	synctest.Test(t, func(t *testing.T) {
		o := newOutlet(into, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		go o.run(ctx)
		for i := range 5 * eventsAtOnce {
			_, _ = o.Create(eventOf(corev1.EventTypeNormal, fmt.Sprint("many", i), 1))
		}
		time.Sleep(time.Second)
		_, _ = o.Create(eventOf(corev1.EventTypeNormal, "mine", 1))
		time.Sleep(time.Second)
		synctest.Wait()
		got = slices.Clone(into.asked)
		cancel()
	})
	if !slices.Contains(got, "create mine 1") {
		t.Errorf("it is not among %d", len(got))
	}
}
