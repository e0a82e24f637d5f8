package intake

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster/cache"
)

func newPod(name string, uid types.UID, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// states are what a reader of events knows of pods: by name the UID, and the node.
type states map[string][2]string

// tell takes in an event the way the model does: a deletion is only believed of the object that is known.
func (s states) tell(e cache.Event) {
	switch e := e.(type) {
	case cache.Set:
		pod := e.Object.(*corev1.Pod)
		s[pod.Name] = [2]string{string(pod.UID), pod.Spec.NodeName}
	case cache.Delete:
		pod := e.Object.(*corev1.Pod)
		if s[pod.Name][0] == string(pod.UID) {
			delete(s, pod.Name)
		}
	}
}

func TestCoalescedEventsTellTheSameAsAllEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newEventQueue()
		truth, known := states{}, states{}
		lives := 0
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
				uid := truth[name][0]
				if uid == "" {
					lives++
					uid = fmt.Sprint(lives)
				}
				pod := newPod(name, types.UID(uid), fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "node")))
				truth.tell(cache.Set{Object: pod})
				q.set(pod)
			},
			"delete": func(t *rapid.T) {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
				if uid := truth[name][0]; uid != "" {
					pod := newPod(name, types.UID(uid), "")
					truth.tell(cache.Delete{Object: pod})
					q.delete(pod)
				}
			},
			"take": func(t *rapid.T) {
				events := q.take()
				if len(events) > 2*3 {
					t.Fatalf("%d events of three objects", len(events))
				}
				for _, e := range events {
					known.tell(e)
				}
				if diff := cmp.Diff(truth, known); diff != "" {
					t.Fatalf("known after a take (-truth +known):\n%s", diff)
				}
			},
		})
	})
}

func TestAQueueOfEvents(t *testing.T) {
	t.Run("tells of a pod that was deleted twice that it is gone", func(t *testing.T) {
		q := newEventQueue()
		q.delete(newPod("a", "1", ""))
		q.set(newPod("a", "2", ""))
		q.delete(newPod("a", "2", ""))
		known := states{"a": {"1", ""}}
		for _, e := range q.take() {
			known.tell(e)
		}
		if len(known) > 0 {
			t.Errorf("still known: %v", known)
		}
	})
	t.Run("gives the last states, in the order of the first events", func(t *testing.T) {
		q := newEventQueue()
		for _, name := range []string{"b", "a", "c"} {
			q.set(newPod(name, types.UID(name), ""))
		}
		q.set(newPod("b", "b", "node"))
		var got []string
		for _, e := range q.take() {
			pod := e.(cache.Set).Object.(*corev1.Pod)
			got = append(got, pod.Name+" "+pod.Spec.NodeName)
		}
		if diff := cmp.Diff([]string{"b node", "a ", "c "}, got); diff != "" {
			t.Errorf("taken (-want +got):\n%s", diff)
		}
		if q.coalescedCount() != 1 {
			t.Errorf("%d events coalesced, want 1", q.coalescedCount())
		}
	})
	t.Run("wakes once for all that is taken", func(t *testing.T) {
		q := newEventQueue()
		q.set(newPod("a", "1", ""))
		<-q.wake
		q.set(newPod("b", "2", ""))
		if taken := len(q.take()); taken != 2 {
			t.Fatalf("took %d events, want 2", taken)
		}
		select {
		case <-q.wake:
			t.Error("woken for nothing")
		default:
		}
		q.poke()
		select {
		case <-q.wake:
		default:
			t.Error("a poke does not wake")
		}
	})
	t.Run("frees a large buffer", func(t *testing.T) {
		q := newEventQueue()
		for i := range retainedEntries + 1 {
			q.set(newPod(fmt.Sprint(i), types.UID(fmt.Sprint(i)), ""))
		}
		q.take()
		q.set(newPod("a", "1", ""))
		q.take()
		if cap(q.entries) != 0 {
			t.Errorf("room for %d entries is kept for one", cap(q.entries))
		}
	})
	t.Run("gives the latest reason why a plan failed", func(t *testing.T) {
		i := &Inbox{queue: newEventQueue()}
		for _, e := range []cache.PlanFailed{{Plan: "p", Reason: "first"}, {Plan: "q"}, {Plan: "p", Reason: "last"}} {
			i.Fail(e)
		}
		<-i.Wake()
		if diff := cmp.Diff([]cache.Event{cache.PlanFailed{Plan: "p", Reason: "last"}, cache.PlanFailed{Plan: "q"}}, i.Take()); diff != "" {
			t.Errorf("taken (-want +got):\n%s", diff)
		}
	})
}
