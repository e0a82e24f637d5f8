package quota

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

func TestPositionsFollowTheOrderOfTheQueue(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	of := func(uid, queue string, priority int32, minute int, edits ...func(*v1beta2.Workload)) v1beta2.Workload {
		w := v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: uid, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))}}
		w.Spec.QueueName, w.Spec.Priority = queue, &priority
		for _, edit := range edits {
			edit(&w)
		}
		return w
	}
	evicted := func(reason string) func(*v1beta2.Workload) {
		return func(w *v1beta2.Workload) { conditions.Evict(w, reason, "", "", noon.Add(time.Hour)) }
	}
	inactive := false
	got := PositionsOf([]v1beta2.Workload{
		of("late", "q", 0, 5), of("early", "q", 0, 1), of("high", "q", 9, 7), of("b", "q", 0, 3), of("a", "q", 0, 3),
		of("unready", "q", 0, 0, evicted(v1beta2.ReasonPodsReadyTimeout)), of("preempted", "q", 0, 2, evicted(v1beta2.ReasonPreempted)),
		of("runs", "q", 9, 0, func(w *v1beta2.Workload) { conditions.Reserve(w, "cq", noon) }),
		of("ended", "q", 9, 0, func(w *v1beta2.Workload) { conditions.Finish(w, v1beta2.ReasonSucceeded, "", noon) }),
		of("off", "q", 9, 0, func(w *v1beta2.Workload) { w.Spec.Active = &inactive }),
		of("elsewhere", "r", 0, 9),
	})
	want := Positions{"high": 1, "early": 2, "preempted": 3, "a": 4, "b": 5, "late": 6, "unready": 7, "elsewhere": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the positions are %v, want %v", got, want)
	}
}
