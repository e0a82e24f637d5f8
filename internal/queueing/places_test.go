package queueing

import (
	"fmt"
	"testing"

	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// queuedWith is a Workload with one podset of so many pods. It is admitted with some of them, or waits if these are
// none.
func queuedWith(count, admitted int32) *v1beta2.Workload {
	w := &v1beta2.Workload{}
	if admitted > 0 {
		w = admittedAt(noon)
		w.Status.Admission.PodSetAssignments[0].Count = ptr.To(admitted)
	}
	w.Spec.PodSets = []v1beta2.PodSet{{Name: "main", Count: count}}
	return w
}

func TestPlacesThatAreNotNeededAnyMore(t *testing.T) {
	demand := func(name string, count, ended, has int32) Demand {
		return Demand{Name: name, Count: count, Ended: ended, Has: has}
	}
	for name, tt := range map[string]struct {
		count, admitted, before int32
		demand                  Demand
		keeps                   bool
		want, left              int32
		outgrows                bool
	}{
		"all run": {4, 4, 0, demand("main", 4, 0, 4), false, 0, 4, false},
		"one has ended, and another takes its place": {4, 4, 0, demand("main", 4, 0, 3), false, 0, 4, false},
		"one is not needed any more":                 {4, 4, 0, demand("main", 4, 1, 3), false, 1, 3, false},
		"it is still there":                          {4, 4, 0, demand("main", 4, 1, 4), false, 0, 4, false},
		"a place does not come back":                 {4, 4, 2, demand("main", 4, 1, 3), false, 2, 2, true},
		"it does when the quota is given back":       {4, 0, 2, demand("main", 4, 1, 0), false, 1, 3, false},
		"of two of four the last one":                {4, 2, 0, demand("main", 2, 1, 1), false, 3, 1, false},
		"of two of four none has ended":              {4, 2, 0, demand("main", 2, 0, 2), false, 0, 2, false},
		"two of four of a job that keeps its count":  {4, 2, 0, demand("main", 4, 0, 2), true, 0, 2, false},
		"one of these has ended":                     {4, 2, 0, demand("main", 4, 1, 1), true, 3, 1, false},
		"it was scaled down":                         {4, 4, 0, demand("main", 2, 0, 2), false, 2, 2, false},
		"it was scaled down and up again":            {4, 4, 2, demand("main", 4, 0, 2), false, 2, 2, true},
		"it was scaled up":                           {4, 4, 0, demand("main", 5, 0, 4), false, 0, 4, true},
		"one that keeps its count was scaled up":     {4, 2, 0, demand("main", 5, 0, 2), true, 0, 2, true},
		"nothing is left":                            {4, 4, 3, demand("main", 4, 4, 0), false, 4, 0, false},
		"it waits, and will need fewer":              {4, 0, 0, demand("main", 4, 3, 0), false, 3, 1, false},
		"more is said to have ended than there is":   {4, 4, 0, demand("main", 4, 9, 0), false, 4, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := queuedWith(tt.count, tt.admitted)
			if tt.before > 0 {
				w.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "main", Count: tt.before}}
			}
			demands := []Demand{tt.demand}
			outgrows := Outgrows(w, demands, tt.keeps)
			Reclaim(w, demands, tt.keeps)
			_, left := settings.PodsLeft(w, &v1beta2.PodSetAssignment{Name: "main", Count: ptr.To(max(tt.admitted, 0))})
			if tt.admitted == 0 {
				left = tt.count - reclaimed(w, "main")
			}
			if got := fmt.Sprint(reclaimed(w, "main"), left, outgrows); got != fmt.Sprint(tt.want, tt.left, tt.outgrows) {
				t.Errorf("it gives up, has left, outgrows: %s; want %d %d %t", got, tt.want, tt.left, tt.outgrows)
			}
		})
	}
	t.Run("podsets are told apart by name", func(t *testing.T) {
		w := queuedWith(1, 1)
		w.Spec.PodSets = []v1beta2.PodSet{{Name: "master", Count: 1}, {Name: "other", Count: 1}, {Name: "worker", Count: 3}}
		w.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "other", Count: 1}}
		Reclaim(w, []Demand{demand("worker", 3, 1, 2), demand("master", 1, 0, 1)}, false)
		if got := fmt.Sprint(w.Status.ReclaimablePods); got != "[{other 1} {worker 1}]" {
			t.Errorf("it gives up %s", got)
		}
	})
}
