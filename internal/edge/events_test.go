package edge

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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
	t.Run("of more pods than may wait they are dropped and counted", func(t *testing.T) {
		w := newTestEvents()
		for i := range maxPodEvents + 7 {
			pod, uid := podNamed(i)
			w.tell(pod, uid, corev1.EventTypeWarning, "FailedScheduling", "no room")
		}
		if len(w.ofPods) != maxPodEvents || len(w.byPod) != maxPodEvents || w.droppedCount() != 7 {
			t.Errorf("%d wait, %d are known, %d were dropped", len(w.ofPods), len(w.byPod), w.droppedCount())
		}
		if e, _ := w.take(); e.InvolvedObject.Name != "p0" || len(w.byPod) != maxPodEvents-1 {
			t.Errorf("first comes %s, and %d are known after it", e.InvolvedObject.Name, len(w.byPod))
		}
	})
}
