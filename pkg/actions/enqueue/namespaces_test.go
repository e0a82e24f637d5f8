package enqueue_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// hog is a PodGroup of namespace hogs that requests the whole cluster. Its name puts it before others of the same age.
func hog(n int) *schedulingv1beta1.PodGroup {
	g := wanting(fmt.Sprintf("hog-%02d", n), "cpu=10", 1)
	g.Namespace = "hogs"
	return g
}

func hogs(number int, objects ...runtime.Object) []runtime.Object {
	for n := range number {
		objects = append(objects, hog(n))
	}
	return objects
}

// admitted returns the hogs that hold quota.
func (l *timeline) admitted() (names []string) {
	for _, j := range l.Jobs() {
		if j.ID.Namespace == "hogs" && j.Phase == inqueue {
			names = append(names, j.ID.Name)
		}
	}
	return names
}

func TestANamespaceThatBringsNoPodsComesLast(t *testing.T) {
	l := newTimeline(t, "", hogs(3, wanting("waits", "cpu=10", 1))...).until(29*time.Second).expect("waits", pending, verdict.OverCommitted)
	// Two of its PodGroups are older than the waiting job, but do not get the quota.
	l.until(31*time.Second).expect("waits", inqueue, verdict.NotEnoughTasks)
	// A job that waits because of another reads the reason, and is admitted later.
	l = newTimeline(t, "", hogs(3, wanting("large", "cpu=11", 1))...).until(31 * time.Second)
	j := l.Job(cluster.JobID{Namespace: "hogs", Name: "hog-01"})
	if j.Verdict == nil || j.Verdict.Code != verdict.NamespaceBackingOff || j.Verdict.Detail != "until 2026-01-01T00:01:00Z" || j.Verdict.Subject != "hogs" {
		t.Errorf("it waits for %+v", j.Verdict)
	}
	if j := l.Job(cluster.JobID{Namespace: "hogs", Name: "hog-00"}); j.Verdict == nil || j.Verdict.Code != verdict.PodsMissing {
		t.Errorf("what was sent back itself waits for %+v", j.Verdict)
	}
	if l.until(61 * time.Second); len(l.admitted()) != 1 {
		t.Errorf("after the back-off %v are admitted", l.admitted())
	}
}

func TestANamespaceThatGoesOnHoldsRoomForAQuarterOfTheTimeAtMost(t *testing.T) {
	l := newTimeline(t, "", wanting("large", "cpu=11", 1)) // it waits all the time
	held := 0
	const minutes = 20
	for n := range minutes * 60 {
		// A new PodGroup every ten seconds, while those that were sent back are deleted.
		if n%10 == 0 {
			l.set(hog(n))
			for _, j := range l.Jobs() {
				if j.ID.Namespace == "hogs" && !j.BarredUntil.IsZero() {
					l.Remove(j.Group)
				}
			}
		}
		if l.until(time.Duration(n) * time.Second); len(l.admitted()) > 0 {
			held++
		}
	}
	if held == 0 || held > minutes*60/4 {
		t.Errorf("room is held for %d of %d seconds", held, minutes*60)
	}
}

func TestAJobOfSuchANamespaceThatHasItsPodsIsServed(t *testing.T) {
	l := newTimeline(t, "", hogs(1, wanting("large", "cpu=11", 1))...).until(31 * time.Second)
	own := wanting("own", "cpu=1", 1)
	own.Namespace = "hogs"
	of := fixture.Pod("own-0", fixture.In("own"), func(p *corev1.Pod) { p.Namespace = "hogs" })
	l.set(own, of).until(32 * time.Second)
	if names := l.admitted(); len(names) != 1 || names[0] != "own" {
		t.Errorf("%v are admitted", names)
	}
}

func TestWhereNoOtherNamespaceWaitsANamespaceNeedsNotWait(t *testing.T) {
	l := newTimeline(t, "", hogs(2)...).until(31 * time.Second)
	if names := l.admitted(); len(names) != 1 || names[0] != "hog-01" {
		t.Errorf("%v are admitted", names)
	}
	// Nor if all namespaces back off, as they do when the controllers are down.
	l = newTimeline(t, "", hogs(2, wanting("one", "cpu=10", 1), wanting("two", "cpu=10", 1))...).until(10 * time.Minute)
	if held := len(l.admitted()); held > 1 {
		t.Errorf("%d are admitted", held)
	}
	for at := 10 * time.Minute; at < 12*time.Minute; at += time.Second {
		l.until(at)
		count := len(l.admitted())
		for _, name := range []string{"one", "two"} {
			if l.Job(cluster.GroupID(fixture.Key(name))).Phase == inqueue {
				count++
			}
		}
		if count > 0 {
			return
		}
	}
	t.Error("nobody is admitted for two minutes, and there is room")
}

func TestAnotherProcessKnowsWhichNamespaceBacksOff(t *testing.T) {
	l := newTimeline(t, "", hogs(2, wanting("large", "cpu=11", 1))...).until(40 * time.Second)
	next := newTimeline(t, "", l.shown["hog-00"], l.shown["hog-01"], l.shown["large"])
	next.Now = l.Now
	if next.until(59 * time.Second); len(next.admitted()) != 0 {
		t.Errorf("%v are admitted by another process", next.admitted())
	}
	if next.until(61 * time.Second); len(next.admitted()) != 1 {
		t.Errorf("%v are admitted by another process after the back-off", next.admitted())
	}
}
