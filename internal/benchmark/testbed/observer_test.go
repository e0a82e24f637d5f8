package testbed

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// shown returns an event of the watch about a pod.
func shown(kind watch.EventType, name, node string, phase corev1.PodPhase) watch.Event {
	return watch.Event{Type: kind, Object: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}}
}

// observerOf returns an observer that has seen the events, one a second.
func observerOf(wanted int, events ...watch.Event) *Observer {
	o := newObserver(wanted)
	for i, event := range events {
		o.see(event, epoch.Add(time.Duration(i)*time.Second))
	}
	return o
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestItIsSeenWhenPodsGetTheirNodesAndRun(t *testing.T) {
	o := observerOf(3,
		shown(watch.Added, "c", "", corev1.PodPending),
		shown(watch.Modified, "a", "", corev1.PodPending),
		shown(watch.Modified, "a", "n1", corev1.PodPending),
		shown(watch.Modified, "b", "n1", corev1.PodPending),
		shown(watch.Modified, "a", "n1", corev1.PodRunning),
		shown(watch.Modified, "a", "n1", corev1.PodRunning),
		shown(watch.Modified, "c", "n2", corev1.PodPending),
		shown(watch.Modified, "b", "n1", corev1.PodRunning),
	)
	if !isClosed(o.bound) || isClosed(o.running) {
		t.Fatalf("all bound is %t, all running is %t; want true and false", isClosed(o.bound), isClosed(o.running))
	}
	o.see(shown(watch.Modified, "c", "n2", corev1.PodRunning), epoch.Add(8*time.Second))
	if !isClosed(o.running) {
		t.Fatal("all pods run, and the observer waits for more")
	}
	seen := o.Seen()
	want := Seen{Bound: 3, First: epoch.Add(2 * time.Second), Last: epoch.Add(6 * time.Second), Running: 3, LastRun: epoch.Add(8 * time.Second), RunsAtLast: 1,
		Waits: []time.Duration{6 * time.Second}}
	if difference := cmp.Diff(want, seen, cmpopts.EquateEmpty()); difference != "" {
		t.Errorf("(-want +got):\n%s", difference)
	}
}

func TestAPodThatMovesOrVanishesIsAProblem(t *testing.T) {
	o := observerOf(2,
		shown(watch.Modified, "a", "n1", corev1.PodPending),
		shown(watch.Modified, "a", "n2", corev1.PodPending),
		shown(watch.Deleted, "b", "", corev1.PodPending),
	)
	got := strings.Join(o.Seen().Problems, "; ")
	if want := `pod a was bound to "n1", then to "n2"; pod b was deleted`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestABrokenWatchIsSeen(t *testing.T) {
	o := observerOf(1, watch.Event{Type: watch.Error, Object: &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}})
	if _, err := o.progress(); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("got %v, want what the API server said", err)
	}
}
