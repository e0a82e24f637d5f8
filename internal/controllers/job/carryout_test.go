package job

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func manyPods(number int) []*corev1.Pod {
	pods := make([]*corev1.Pod, number)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprint(i))}}
	}
	return pods
}

func TestEveryPodIsTriedOnceAndNeverTooManyAtATime(t *testing.T) {
	var now, most, calls atomic.Int32
	done, err := slowStart(manyPods(1000), func(*corev1.Pod) error {
		calls.Add(1)
		if current := now.Add(1); current > most.Load() {
			most.Store(current)
		}
		now.Add(-1)
		return nil
	})
	if err != nil || len(done) != 1000 || calls.Load() != 1000 {
		t.Errorf("%d of 1000 done in %d calls, error %v", len(done), calls.Load(), err)
	}
	if most.Load() > maxParallelRequests {
		t.Errorf("%d requests at a time", most.Load())
	}
	for i, pod := range done {
		if pod.Name != fmt.Sprintf("p%d", i) {
			t.Fatalf("pod %d is %s: the order is lost", i, pod.Name)
		}
	}
}

func TestARefusalStopsTheRest(t *testing.T) {
	// How many pods of the same wave were tried before and after the refused one is chance.
	for _, test := range []struct{ refused, earlier, atMost int32 }{
		{3, 1, 5},        // the waves are p0, p1-p4
		{600, 341, 1365}, // …, p5-p20, p21-p84, p85-p340, p341-p1364
	} {
		var calls atomic.Int32
		name := fmt.Sprintf("p%d", test.refused)
		done, err := slowStart(manyPods(3000), func(pod *corev1.Pod) error {
			calls.Add(1)
			if pod.Name == name {
				return errors.New("quota used up")
			}
			return nil
		})
		if calls.Load() <= test.earlier || calls.Load() > test.atMost || len(done) != int(calls.Load())-1 {
			t.Errorf("%s was refused: %d calls, %d done", name, calls.Load(), len(done))
		}
		if err == nil || err.Error() != "pod "+name+": quota used up" {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestWhatThereIsNoTimeForIsLeftOutAndNoError(t *testing.T) {
	var calls atomic.Int32
	done, err := slowStart(manyPods(100), func(*corev1.Pod) error {
		if calls.Add(1) > 10 {
			return errNotTried
		}
		return nil
	})
	if len(done) != 10 || err != nil {
		t.Errorf("%d are done, error %v", len(done), err)
	}
}

func TestMarkedPodsTakeTheirPlaces(t *testing.T) {
	pods := manyPods(3)
	marked := *pods[1]
	marked.DeletionTimestamp = &metav1.Time{}
	got := replaced(pods, []*corev1.Pod{&marked})
	if len(got) != 3 || got[0] != pods[0] || got[1] != &marked || got[2] != pods[2] {
		t.Errorf("got %v", got)
	}
}

func TestALongNoteIsClippedAtACharacter(t *testing.T) {
	if got := clip("short"); got != "short" {
		t.Errorf("got %q", got)
	}
	got := clip(strings.Repeat("→", 1000))
	if len(got) > maxNote || !strings.HasSuffix(got, "→…") || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-8:])
	}
}
