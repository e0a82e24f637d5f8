package testbed

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// collectorOf returns a collector of added pods that has seen the events, one a second.
func collectorOf(wanted int, events ...watch.Event) *Collector {
	c := newCollector(wanted, func(event watch.Event) bool { return event.Type == watch.Added })
	for i, event := range events {
		c.see(event, epoch.Add(time.Duration(i)*time.Second))
	}
	return c
}

func TestEachObjectIsCollectedOnceWhenItComes(t *testing.T) {
	c := collectorOf(3,
		shown(watch.Modified, "other", "", corev1.PodPending),
		shown(watch.Added, "a", "", corev1.PodPending),
		shown(watch.Added, "a", "", corev1.PodPending),
		shown(watch.Added, "b", "", corev1.PodPending),
	)
	if isClosed(c.all) {
		t.Fatal("two of three objects are there, and it waits for no more")
	}
	c.see(shown(watch.Added, "c", "", corev1.PodPending), epoch.Add(5*time.Second))
	if !isClosed(c.all) {
		t.Fatal("all objects are there, and it waits for more")
	}
	count, first, last, perSecond := c.Result()
	if want := epoch.Add(time.Second); count != 3 || first != want || last != want.Add(4*time.Second) || perSecond != 0.5 {
		t.Errorf("%d objects from %s to %s, %v a second", count, first, last, perSecond)
	}
	if c.err != nil {
		t.Error(c.err)
	}
}

func TestACollectorSaysWhyItSeesNothingMore(t *testing.T) {
	c := collectorOf(1, watch.Event{Type: watch.Error, Object: &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}})
	if c.err == nil || !strings.Contains(c.err.Error(), "too old") {
		t.Errorf("got %v, want what the API server said", c.err)
	}
}
