package edge

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/decision"
)

func newTestEvents() *eventWriter {
	return newEventWriter(nil, "volcano", func() bool { return false }, logr.Discard())
}

func podNamed(i int) (types.NamespacedName, types.UID) {
	return types.NamespacedName{Namespace: "ns", Name: fmt.Sprint("p", i)}, types.UID(fmt.Sprint("uid-", i))
}

func TestEventsThatWait(t *testing.T) {
	t.Run("of each pod only the newest waits, and others go first", func(t *testing.T) {
		w := newTestEvents()
		first, firstUID := podNamed(1)
		second, secondUID := podNamed(2)
		w.tell(first, firstUID, corev1.EventTypeWarning, "FailedScheduling", "no room")
		w.tell(second, secondUID, corev1.EventTypeWarning, "FailedScheduling", "no room")
		w.tell(first, firstUID, corev1.EventTypeNormal, "Scheduled", "Successfully assigned")
		w.show(w.event(corev1.ObjectReference{Kind: "PodGroup", Name: "g"}, corev1.EventTypeNormal, "Nominated", ""))
		var got []string
		for range 3 {
			e, _ := w.take()
			got = append(got, e.InvolvedObject.Name+" "+e.Reason)
		}
		if want := "[g Nominated p1 Scheduled p2 FailedScheduling]"; fmt.Sprint(got) != want {
			t.Errorf("written in the order %v, want %s", got, want)
		}
		w.close()
		if e, _ := w.take(); e != nil {
			t.Errorf("after the end there is %+v", e)
		}
	})
	t.Run("of a Workload the newest of each reason waits", func(t *testing.T) {
		w := newTestEvents()
		about := corev1.ObjectReference{Kind: "Workload", Namespace: "ns", Name: "w", UID: "uid-w"}
		for _, n := range []decision.Notice{{Reason: "QuotaReserved", Message: "in a"}, {Reason: "Admitted", Message: "by a"}, {Reason: "QuotaReserved", Message: "in b"}} {
			n.Regarding, n.Type = about, corev1.EventTypeNormal
			w.tellAdmission(n)
		}
		w.show(w.event(about, corev1.EventTypeNormal, "Preempted", "for another"))
		var got []string
		for range 3 {
			e, isLater := w.take()
			got = append(got, fmt.Sprint(e.Reason, " ", e.Message, " ", isLater))
		}
		if want := "[Preempted for another false QuotaReserved in b true Admitted by a true]"; fmt.Sprint(got) != want {
			t.Errorf("written in the order %v, want %s", got, want)
		}
	})
	t.Run("of more pods than may wait they are dropped and counted", func(t *testing.T) {
		w := newTestEvents()
		for i := range maxLaterEvents + 7 {
			pod, uid := podNamed(i)
			w.tell(pod, uid, corev1.EventTypeWarning, "FailedScheduling", "no room")
		}
		if len(w.later) != maxLaterEvents || len(w.bySubject) != maxLaterEvents || w.droppedCount() != 7 {
			t.Errorf("%d wait, %d are known, %d were dropped", len(w.later), len(w.bySubject), w.droppedCount())
		}
		if e, _ := w.take(); e.InvolvedObject.Name != "p0" || len(w.bySubject) != maxLaterEvents-1 {
			t.Errorf("first comes %s, and %d are known after it", e.InvolvedObject.Name, len(w.bySubject))
		}
	})
}
