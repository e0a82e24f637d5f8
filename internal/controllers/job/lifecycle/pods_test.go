package lifecycle

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func TestPodsOfAJob(t *testing.T) {
	t.Run("are compared by name", func(t *testing.T) {
		job := jobOf(task("a", 3, ""), task("b", 1, ""))
		pods := podsOf(job, 0, running, terminating) // a-0 a-1; a-2 and b-0 are missing
		tooMany := jobOf(task("a", 6, ""))
		pods = append(pods, podsOf(tooMany, 0, pending, pending, pending, pending, running, terminating)[4:]...) // a-4 a-5

		missing, isPart, surplus := MissingAndSurplus(job, pods, nil, []string{"", ""}, 2)
		if want := []Slot{{0, 2}, {1, 0}}; !slices.Equal(missing, want) || isPart {
			t.Errorf("missing %v, want %v; a part of it: %t", missing, want, isPart)
		}
		if len(surplus) != 1 || surplus[0].Name != "sim-a-4" {
			t.Errorf("surplus %v, want sim-a-4 only: sim-a-5 is going already", surplus)
		}
	})
	t.Run("are missing, as many as may be made at a time", func(t *testing.T) {
		job := jobOf(task("a", 1_000_000, ""), task("held", 1_000_000, ""), task("b", 3, ""))
		pods := podsOf(job, 0, running, terminating)
		unseen := sets.New("sim-a-3", "sim-a-4", "sim-b-1", "sim-a-1000000", "sim-a-05", "sim-c-0", "other")
		for _, test := range []struct {
			limit  int
			want   []Slot
			isPart bool
		}{
			{0, nil, true},
			{1, []Slot{{0, 2}}, true},
			{3, []Slot{{0, 2}, {0, 5}, {0, 6}}, true},
		} {
			missing, isPart, _ := MissingAndSurplus(job, pods, unseen, []string{"", "waits", ""}, test.limit)
			if !slices.Equal(missing, test.want) || isPart != test.isPart {
				t.Errorf("of %d: missing %v, want %v; a part of it: %t", test.limit, missing, test.want, isPart)
			}
		}
		job.Spec.Tasks[0].Replicas = 5
		missing, isPart, _ := MissingAndSurplus(job, pods, unseen, []string{"", "waits", ""}, 3)
		if want := []Slot{{0, 2}, {2, 0}, {2, 2}}; !slices.Equal(missing, want) || isPart {
			t.Errorf("missing %v, want %v; a part of it: %t", missing, want, isPart)
		}
	})
	t.Run("are known by their names", func(t *testing.T) {
		names := SlotsOf(jobOf(task("a", 3, ""), task("a-b", 12, "")))
		for name, want := range map[string]Slot{"sim-a-2": {0, 2}, "sim-a-b-11": {1, 11}} {
			if got, isWanted := names.Find(name); !isWanted || got != want {
				t.Errorf("%s is %v, %t, want %v", name, got, isWanted, want)
			}
		}
		for _, name := range []string{"", "sim", "sim-a", "sim-a-", "sim-a-3", "sim-a-01", "sim-a-+1", "sim-a--1", "sim-c-0", "other-a-0", "sim-a-x"} {
			if got, isWanted := names.Find(name); isWanted {
				t.Errorf("%q is taken for %v", name, got)
			}
		}
	})
	// What the user wrote on a pod may be anything.
	t.Run("leave gaps that are counted from zero", func(t *testing.T) {
		var found []int
		gaps([]int{4, -7, 1, 1, 9}, 6, func(index int) bool {
			found = append(found, index)
			return true
		})
		if want := []int{0, 2, 3, 5}; !slices.Equal(found, want) {
			t.Errorf("the gaps are %v, want %v", found, want)
		}
	})
	t.Run("stay for their logs unless the job restarts", func(t *testing.T) {
		for _, test := range []struct {
			name    string
			phase   batch.JobPhase
			version int32
			retries int32
			want    []string
		}{
			{"completed", batch.Completed, 1, 0, []string{"sim-a-0", "sim-a-1"}},
			{"aborting", batch.Aborting, 1, 0, []string{"sim-a-0", "sim-a-1"}},
			{"restarting as a whole", batch.Restarting, 1, 1, []string{"sim-a-0", "sim-a-1", "sim-a-2", "sim-a-3"}},
			{"restarting a part", batch.Restarting, 0, 1, nil},
			{"restarting once too often", batch.Restarting, 1, 3, nil},
		} {
			t.Run(test.name, func(t *testing.T) {
				job := jobOf(task("a", 5, ""))
				pods := podsOf(job, 0, pending, running, succeeded, failed, terminating)
				job.Status.State.Phase, job.Status.Version, job.Status.RetryCount = test.phase, test.version, test.retries
				var names []string
				for _, pod := range Leftovers(job, pods) {
					names = append(names, pod.Name)
				}
				if !slices.Equal(names, test.want) {
					t.Errorf("the leftovers are %v, want %v", names, test.want)
				}
			})
		}
	})
}
