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
			if got, marked := NextState(&status, NoOrder, false, false); got != test.want || marked {
				t.Errorf("from %q to %q, marked %t, want %q", test.from, got, marked, test.want)
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

func TestAQueueFollowsItsOrdersAndItsParent(t *testing.T) {
	const open, closed, closing = scheduling.QueueStateOpen, scheduling.QueueStateClosed, scheduling.QueueStateClosing
	for _, test := range []struct {
		name                string
		from                scheduling.QueueState
		running             int32
		order               Order
		marked, underClosed bool
		want                scheduling.QueueState
		wantMarked          bool
	}{
		{"an order closes an empty queue", open, 0, OrderClose, false, false, closed, false},
		{"an order closes a queue with work slowly", open, 1, OrderClose, false, false, closing, false},
		{"an order opens a closed queue", closed, 0, OrderOpen, false, false, open, false},
		{"an order opens a closing queue", closing, 1, OrderOpen, false, false, open, false},
		{"a queue closes with its parent", open, 0, NoOrder, false, true, closed, true},
		{"slowly if it has work", open, 1, NoOrder, false, true, closing, true},
		{"so does a new one", "", 0, NoOrder, false, true, closed, true},
		{"one that was closed before is not marked", closed, 0, NoOrder, false, true, closed, false},
		{"a marked one stays closed", closing, 0, NoOrder, true, true, closed, true},
		{"and opens with its parent", closed, 0, NoOrder, true, false, open, false},
		{"even if work is left", closing, 1, NoOrder, true, false, open, false},
		{"an unmarked one stays closed", closed, 0, NoOrder, false, false, closed, false},
		{"opened under a closed parent it waits", closed, 0, OrderOpen, false, true, closed, true},
		{"closed under a closed parent it stays", closed, 0, OrderClose, true, true, closed, false},
		{"a mark that a crash left is removed", open, 0, NoOrder, true, false, open, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := &scheduling.QueueStatus{State: test.from, Running: test.running}
			got, marked := NextState(status, test.order, test.marked, test.underClosed)
			if got != test.want || marked != test.wantMarked {
				t.Errorf("got %s, marked %t; want %s, marked %t", got, marked, test.want, test.wantMarked)
			}
			status.State = got
			if again, still := NextState(status, NoOrder, marked, test.underClosed); again != got || still != marked {
				t.Errorf("it does not rest: %s, marked %t becomes %s, marked %t", got, marked, again, still)
			}
		})
	}
}
