package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

var priorities = map[string]int32{"high": 100, "low": 1}

func priority(class string) int32 { return priorities[class] }

func TestThePodGroupOfAJob(t *testing.T) {
	t.Run("keeps what others have written when it is updated", func(t *testing.T) {
		job := jobOf(task("a", 2, "1"))
		current := builder.PodGroup(job, priority, builder.FromTemplate)
		current.Annotations[scheduling.JobAllocatedHyperNodeKey] = "s1"
		current.Status.Phase = scheduling.PodGroupRunning
		if same := UpdatePodGroup(current, builder.PodGroup(job, priority, builder.FromTemplate)); !apiequality.Semantic.DeepEqual(current, same) {
			t.Errorf("nothing changed, yet (-before +after):\n%s", cmp.Diff(current, same))
		}
		stolen := current.DeepCopy()
		stolen.Spec = scheduling.PodGroupSpec{Queue: "other", PriorityClassName: "high", NetworkTopology: &scheduling.NetworkTopologySpec{},
			SubGroupPolicy: []scheduling.SubGroupPolicySpec{{Name: "all"}}}
		if undone := UpdatePodGroup(stolen, builder.PodGroup(job, priority, builder.FromTemplate)); !apiequality.Semantic.DeepEqual(current, undone) {
			t.Errorf("what somebody wrote into the spec stays (-want +got):\n%s", cmp.Diff(current, undone))
		}
		job = jobOf(task("a", 5, "1"))
		job.Annotations = map[string]string{"volcano.sh/preemptable": "true"}
		updated := UpdatePodGroup(current, builder.PodGroup(job, priority, builder.FromTemplate))
		if updated.Spec.MinMember != 5 || updated.Spec.MinTaskMember["a"] != 5 || updated.Spec.MinResources.Cpu().Value() != 5 {
			t.Errorf("after scaling to 5 the spec is %+v", updated.Spec)
		}
		want := map[string]string{scheduling.JobAllocatedHyperNodeKey: "s1", "volcano.sh/preemptable": "true",
			scheduling.SchedulerNameKey: "volcano"}
		if diff := cmp.Diff(want, updated.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		if len(current.Annotations) != 2 || current.Spec.MinMember != 2 {
			t.Error("the PodGroup of the cache was changed")
		}
	})
	t.Run("says last why the job waits", func(t *testing.T) {
		at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)) }
		unschedulable := scheduling.PodGroupCondition{
			Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, LastTransitionTime: at(5),
			Reason: "NotEnoughResources", Message: "3 pods need 3 cpu, 2 are free",
		}
		scheduledAt := func(minute int) scheduling.PodGroupCondition {
			return scheduling.PodGroupCondition{
				Type: scheduling.PodGroupScheduledType, Status: corev1.ConditionTrue, LastTransitionTime: at(minute),
			}
		}
		revoked := unschedulable
		revoked.Status = corev1.ConditionFalse
		for _, test := range []struct {
			name       string
			conditions []scheduling.PodGroupCondition
			isWaiting  bool
		}{
			{"nothing said", nil, false},
			{"unschedulable", []scheduling.PodGroupCondition{unschedulable}, true},
			{"no longer unschedulable", []scheduling.PodGroupCondition{revoked}, false},
			{"scheduled since", []scheduling.PodGroupCondition{unschedulable, scheduledAt(6)}, false},
			{"scheduled once, unschedulable since", []scheduling.PodGroupCondition{scheduledAt(4), unschedulable}, true},
		} {
			t.Run(test.name, func(t *testing.T) {
				group := &scheduling.PodGroup{Status: scheduling.PodGroupStatus{Conditions: test.conditions}}
				reason, message := waiting(group)
				if (reason == "NotEnoughResources") != test.isWaiting || (message != "") != test.isWaiting {
					t.Errorf("got %q, %q", reason, message)
				}
			})
		}
	})
	t.Run("says at which place the job waits", func(t *testing.T) {
		group := &scheduling.PodGroup{Status: scheduling.PodGroupStatus{Conditions: []scheduling.PodGroupCondition{
			{Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: "NotEnoughResources", Message: "2 cpu are free"},
			{Type: scheduling.PodGroupQueuedType, Status: corev1.ConditionTrue, Reason: "WaitsInQueue", Message: "place 3"}}}}
		if reason, message := waiting(group); reason != "NotEnoughResources" || message != "2 cpu are free; place 3" {
			t.Errorf("got %q, %q", reason, message)
		}
	})
	t.Run("lets pods be made once it is admitted", func(t *testing.T) {
		for phase, want := range map[scheduling.PodGroupPhase]bool{
			"": false, scheduling.PodGroupPending: false, scheduling.PodGroupInqueue: true, scheduling.PodGroupRunning: true,
			scheduling.PodGroupUnknown: true, scheduling.PodGroupCompleted: true,
		} {
			group := &scheduling.PodGroup{Status: scheduling.PodGroupStatus{Phase: phase}}
			if got := Admitted(group); got != want {
				t.Errorf("phase %q: admitted is %t", phase, got)
			}
		}
	})
	t.Run("is used up when nothing can complete it", func(t *testing.T) {
		job := jobOf(task("a", 2, ""))
		for _, test := range []struct {
			phase batch.JobPhase
			pods  []corev1.PodPhase
			want  bool
		}{
			{batch.Completed, []corev1.PodPhase{succeeded, succeeded}, false},
			{batch.Failed, []corev1.PodPhase{succeeded, failed}, false},
			{batch.Failed, []corev1.PodPhase{failed}, true},
			{batch.Terminated, nil, true},
			{batch.Aborted, []corev1.PodPhase{succeeded}, true},
			{batch.Aborted, []corev1.PodPhase{succeeded, terminating}, false},
			{batch.Aborting, nil, false},
			{batch.Restarting, nil, false},
		} {
			job.Status.State.Phase = test.phase
			if got := IsSpent(job, podsOf(job, 0, test.pods...)); got != test.want {
				t.Errorf("%s with pods %v: spent is %t", test.phase, test.pods, got)
			}
		}
	})
	t.Run("has the partitions of the job", func(t *testing.T) {
		worker := withMin(task("worker", 6, ""), 4)
		tier := 2
		worker.PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: 3, PartitionSize: 2, MinPartitions: 2,
			NetworkTopology: &batch.NetworkTopologySpec{Mode: batch.HardNetworkTopologyMode, HighestTierAllowed: &tier}}
		job := jobOf(worker)
		policies := builder.PodGroup(job, priority, builder.FromTemplate).Spec.SubGroupPolicy
		if len(policies) != 1 || *policies[0].SubGroupSize != 2 || *policies[0].MinSubGroups != 2 ||
			policies[0].NetworkTopology.Mode != "hard" || *policies[0].NetworkTopology.HighestTierAllowed != 2 {
			t.Fatalf("the policies are %+v", policies)
		}
		selected := builder.Pod(job, &job.Spec.Tasks[0], 5).Labels
		for key, value := range policies[0].LabelSelector.MatchLabels {
			if selected[key] != value {
				t.Errorf("the policy selects %s=%s, the pod has %v", key, value, selected)
			}
		}
		if selected[policies[0].MatchLabelKeys[0]] != "2" {
			t.Errorf("the sixth pod of partitions of two is in partition %q", selected[policies[0].MatchLabelKeys[0]])
		}
	})
}

func TestAJobNamesItsLastEvictions(t *testing.T) {
	made := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	group := func(message string) *scheduling.PodGroup {
		g := &scheduling.PodGroup{}
		g.CreationTimestamp = metav1.NewTime(made)
		if message != "" {
			g.Status.Conditions = []scheduling.PodGroupCondition{{Type: scheduling.PodGroupEvictedType, Status: corev1.ConditionTrue, Message: message}}
		}
		return g
	}
	const before, first, second, third = "2026-01-01T11:00:00Z pod a-0: why", "2026-01-01T13:00:00Z pod a-0: why", "2026-01-01T14:00:00Z pod a-1: why",
		"2026-01-01T15:00:00Z pod a-2: why"
	for name, test := range map[string]struct {
		group *scheduling.PodGroup
		known []string
		want  []string
	}{
		"none":                              {group(""), nil, nil},
		"the first":                         {group(first), nil, []string{first}},
		"one more":                          {group(second + "\n" + first), []string{first}, []string{second, first}},
		"one that was cancelled":            {group(first), []string{second, first}, []string{first}},
		"one of the PodGroup before":        {group(""), []string{before}, []string{before}},
		"at most three":                     {group(third + "\n" + second + "\n" + first), []string{before}, []string{third, second, first}},
		"of the PodGroup before after some": {group(second + "\n" + first), []string{first, before}, []string{second, first, before}},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batch.Job{Status: batch.JobStatus{Evictions: test.known}}
			got := Observe(job, nil, test.group, Trouble{}, made.Add(24*time.Hour)).Evictions
			if !slices.Equal(got, test.want) {
				t.Errorf("it names %q, want %q", got, test.want)
			}
		})
	}
	job := &batch.Job{Status: batch.JobStatus{Evictions: []string{before}}}
	if got := Observe(job, nil, nil, Trouble{}, made).Evictions; len(got) != 1 {
		t.Errorf("without a PodGroup it names %q", got)
	}
}
