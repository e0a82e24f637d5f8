package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func groupsIn(phases ...scheduling.PodGroupPhase) []scheduling.PodGroup {
	groups := make([]scheduling.PodGroup, len(phases))
	for i, phase := range phases {
		groups[i].Status.Phase = phase
	}
	return groups
}

func TestEveryPodGroupIsCountedOnce(t *testing.T) {
	phases := rapid.SampledFrom([]scheduling.PodGroupPhase{
		"", scheduling.PodGroupPending, scheduling.PodGroupInqueue, scheduling.PodGroupRunning, scheduling.PodGroupUnknown,
		scheduling.PodGroupCompleted,
	})
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOf(phases).Draw(t, "phases")
		status := scheduling.QueueStatus{Pending: 3, Completed: 9}
		Count(&status, groupsIn(drawn...))
		if sum := status.Pending + status.Inqueue + status.Running + status.Unknown + status.Completed; int(sum) != len(drawn) {
			t.Fatalf("%d PodGroups are counted as %d: %+v", len(drawn), sum, status)
		}
	})
}

func TestPodGroupsAreCountedByPhase(t *testing.T) {
	var status scheduling.QueueStatus
	Count(&status, groupsIn("", scheduling.PodGroupPending, scheduling.PodGroupInqueue, scheduling.PodGroupRunning,
		scheduling.PodGroupRunning, scheduling.PodGroupRunning, scheduling.PodGroupUnknown, scheduling.PodGroupUnknown,
		scheduling.PodGroupCompleted))
	want := scheduling.QueueStatus{Pending: 2, Inqueue: 1, Running: 3, Unknown: 2, Completed: 1}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAQueueIsClosedOnceNothingInItIsUnfinished(t *testing.T) {
	const open, closed, closing = scheduling.QueueStateOpen, scheduling.QueueStateClosed, scheduling.QueueStateClosing
	for _, test := range []struct {
		name   string
		from   scheduling.QueueState
		groups []scheduling.PodGroup
		want   scheduling.QueueState
	}{
		{"a new queue opens", "", nil, open},
		{"a queue nobody knows opens", scheduling.QueueStateUnknown, groupsIn(scheduling.PodGroupRunning), open},
		{"an open queue stays open", open, groupsIn(scheduling.PodGroupPending), open},
		{"an empty queue closes at once", closed, nil, closed},
		{"a queue with work closes slowly", closed, groupsIn(scheduling.PodGroupRunning), closing},
		{"work that waits is work", closing, groupsIn(scheduling.PodGroupPending), closing},
		{"so is work that is let in", closing, groupsIn(scheduling.PodGroupInqueue), closing},
		{"and work nobody hears of", closing, groupsIn(scheduling.PodGroupUnknown), closing},
		{"finished work holds nothing up", closing, groupsIn(scheduling.PodGroupCompleted), closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := scheduling.QueueStatus{State: test.from}
			Count(&status, test.groups)
			if got := NextState(&status); got != test.want {
				t.Errorf("from %q to %q, want %q", test.from, got, test.want)
			}
		})
	}
}

func TestOnlyRootAndDefaultAreMadeUnasked(t *testing.T) {
	root, standard := builtIn("root"), builtIn("default")
	if root == nil || *root.Spec.Reclaimable || root.Spec.Parent != "" || root.Spec.Weight != 1 {
		t.Errorf("root is %+v", root)
	}
	if standard == nil || !*standard.Spec.Reclaimable || standard.Spec.Parent != "root" || standard.Spec.Weight != 1 {
		t.Errorf("default is %+v", standard)
	}
	if got := builtIn("research"); got != nil {
		t.Errorf("research is made: %+v", got)
	}
}
