package recorder

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// sink keeps what a recorder writes, as the API server would.
type sink struct {
	sync.Mutex
	stored  map[string]*corev1.Event
	creates int
	patches int
}

func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.Lock()
	defer s.Unlock()
	s.creates++
	s.stored[event.Name] = event.DeepCopy()
	return event, nil
}

func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) { return s.Create(event) }

// Patch stores the event that the patch was made from, which is what it would be.
func (s *sink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	s.Lock()
	defer s.Unlock()
	s.patches++
	s.stored[event.Name] = event.DeepCopy()
	return event, nil
}

// now returns what is stored.
func (s *sink) now() (events []*corev1.Event, creates, patches int) {
	s.Lock()
	defer s.Unlock()
	for _, event := range s.stored {
		events = append(events, event)
	}
	return events, s.creates, s.patches
}

// newRecorder returns a recorder, and where its Events go.
func newRecorder(t *testing.T, name string) (events.EventRecorder, *sink) {
	t.Helper()
	into := &sink{stored: map[string]*corev1.Event{}}
	o := newOutlet(into, logr.Discard())
	recorder, stop := o.recorder(scheme.Scheme, name)
	var runs sync.WaitGroup
	runs.Go(func() { o.run(t.Context()) })
	t.Cleanup(runs.Wait) // after the context has ended
	t.Cleanup(stop)
	return recorder, into
}

func subject(name string) *corev1.Pod {
	return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name + "-uid")}}
}

// await waits until enough was written, and returns it.
func (s *sink) await(t *testing.T, writes int) []*corev1.Event {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		events, creates, patches := s.now()
		if creates+patches >= writes {
			return events
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d created and %d patched, want %d writes", creates, patches, writes)
		}
	}
}

// Scripts sort by lastTimestamp, and read who said it from source.
func TestAnEventHasItsTimesAndItsSource(t *testing.T) {
	recorder, into := newRecorder(t, "job-controller")
	began := time.Now().Add(-time.Second)
	recorder.Eventf(subject("p"), subject("related"), corev1.EventTypeWarning, "FailedCreate", "CreatePods", "pod %s: %d left", "p", 3)
	event := into.await(t, 1)[0]
	if event.FirstTimestamp.IsZero() || event.LastTimestamp.Before(&metav1.Time{Time: began}) || !event.FirstTimestamp.Equal(&event.LastTimestamp) {
		t.Errorf("the times are %s and %s", event.FirstTimestamp, event.LastTimestamp)
	}
	if event.Count != 1 || event.Source.Component != "job-controller" || event.Type != corev1.EventTypeWarning || event.Reason != "FailedCreate" ||
		event.Message != "pod p: 3 left" {
		t.Errorf("the event is %+v", event)
	}
	if event.InvolvedObject.Kind != "Pod" || event.InvolvedObject.Name != "p" || event.InvolvedObject.UID != "p-uid" || event.Namespace != "lab" {
		t.Errorf("it is about %+v in %s", event.InvolvedObject, event.Namespace)
	}
}

// A percent sign in a note without arguments, such as what an API server said, is none of a format.
func TestANoteIsFormattedOnce(t *testing.T) {
	recorder, into := newRecorder(t, "c")
	recorder.Eventf(subject("p"), nil, corev1.EventTypeNormal, "Said", "Say", "%s", "100%d of it")
	if event := into.await(t, 1)[0]; event.Message != "100%d of it" {
		t.Errorf("the message is %q", event.Message)
	}
}

// What is said again is one Event that counts and has a later lastTimestamp, not a second.
func TestWhatIsSaidAgainIsCounted(t *testing.T) {
	recorder, into := newRecorder(t, "c")
	const times = 5
	for i := range times {
		recorder.Eventf(subject("p"), nil, corev1.EventTypeWarning, "Failed", "Try", "it failed")
		into.await(t, i+1)
		if i == 0 {
			time.Sleep(1100 * time.Millisecond) // timestamps are whole seconds
		}
	}
	events, creates, patches := into.now()
	if len(events) != 1 || creates != 1 || patches != times-1 || events[0].Count != times {
		t.Fatalf("%d events by %d creations and %d patches: %+v", len(events), creates, patches, events[0])
	}
	if !events[0].FirstTimestamp.Before(&events[0].LastTimestamp) {
		t.Errorf("first %s, last %s", events[0].FirstTimestamp, events[0].LastTimestamp)
	}
}

// The number of different Events about one object is limited, so that a tenant's object cannot cause Events without
// end. Events about other objects do not wait for them.
func TestOneObjectCannotFloodTheAPIServer(t *testing.T) {
	recorder, into := newRecorder(t, "c")
	const said = 200
	for i := range said {
		recorder.Eventf(subject("loud"), nil, corev1.EventTypeWarning, fmt.Sprintf("Reason%d", i), "Try", "number %d", i)
	}
	recorder.Eventf(subject("quiet"), nil, corev1.EventTypeNormal, "Created", "Try", "done")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		events, creates, _ := into.now()
		isThere := false
		for _, event := range events {
			isThere = isThere || event.InvolvedObject.Name == "quiet"
		}
		if isThere {
			if creates > 30 { // a burst of 25, one more each five minutes, and that of the other
				t.Errorf("%d events were written of %d", creates, said)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the other object is not heard; %d were written", creates)
		}
	}
}

// What is said once is one Event, also by another process after a restart: the API server refuses a second of its name.
func TestWhatIsSaidOnceHasOneName(t *testing.T) {
	first, into := newRecorder(t, "c")
	Once(first, subject("p"), corev1.EventTypeWarning, "NotSupported", "Sync", "the kind %s", "a")
	Once(first, subject("p"), corev1.EventTypeWarning, "NotSupported", "Sync", "the kind %s", "b")
	into.await(t, 2)
	later, also := newRecorder(t, "c")
	also.stored = into.stored
	Once(later, subject("p"), corev1.EventTypeWarning, "NotSupported", "Sync", "the kind %s", "a")
	also.await(t, 1)
	events, _, _ := also.now()
	if len(events) != 2 {
		t.Fatalf("%d Events of two", len(events))
	}
	for _, event := range events {
		if event.Namespace != "lab" || event.Count != 1 || event.LastTimestamp.IsZero() || event.InvolvedObject.UID != "p-uid" || event.Source.Component != "c" {
			t.Errorf("the Event is %+v", event)
		}
		if problems := validation.IsDNS1123Subdomain(event.Name); len(problems) > 0 {
			t.Errorf("its name is %q: %q", event.Name, problems)
		}
	}
}

func TestTheNameOfAnEventFits(t *testing.T) {
	recorder, into := newRecorder(t, "c")
	Once(recorder, subject(strings.Repeat("long.", 50)+"n"), corev1.EventTypeWarning, "NotSupported", "Sync", "it")
	if name := into.await(t, 1)[0].Name; len(validation.IsDNS1123Subdomain(name)) > 0 {
		t.Errorf("its name is %q", name)
	}
}
