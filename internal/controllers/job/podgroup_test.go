package job

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

var priorities = map[string]int32{"high": 100, "low": 1}

func priority(class string) int32 { return priorities[class] }

func withClass(task batch.TaskSpec, class string) batch.TaskSpec {
	task.Template.Spec.PriorityClassName = class
	return task
}

func TestThePodGroupSaysWhatTheJobNeeds(t *testing.T) {
	job := jobOf(task("ps", 1, "500m"), withMin(task("worker", 4, "2"), 3))
	job.Spec.Queue, job.Spec.PriorityClassName = "research", "high"
	job.Labels = map[string]string{"team": "a"}
	job.Annotations = map[string]string{
		"volcano.sh/sla-waiting-time": "1h", corev1.LastAppliedConfigAnnotation: "{}",
	}
	group := BuildPodGroup(job, priority)
	want := scheduling.PodGroupSpec{
		MinMember:         4,
		MinTaskMember:     map[string]int32{"ps": 1, "worker": 3},
		Queue:             "research",
		PriorityClassName: "high",
		MinResources: &corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("6500m"), corev1.ResourceRequestsCPU: resource.MustParse("6500m"),
			corev1.ResourcePods: resource.MustParse("4"), "count/pods": resource.MustParse("4"),
		},
	}
	if !apiequality.Semantic.DeepEqual(want, group.Spec) {
		t.Errorf("spec (-want +got):\n%s", cmp.Diff(want, group.Spec))
	}
	if group.Namespace != "lab" || group.Name != "sim-1f2e" || !metav1.IsControlledBy(group, job) {
		t.Errorf("metadata is %+v", group.ObjectMeta)
	}
	if diff := cmp.Diff(map[string]string{"volcano.sh/sla-waiting-time": "1h", scheduling.SchedulerNameKey: "volcano"}, group.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if group.Labels["team"] != "a" {
		t.Errorf("labels are %v", group.Labels)
	}
}

func TestThePodGroupBelongsToTheSchedulerOfThePodsThatWillBe(t *testing.T) {
	by := func(name string, task batch.TaskSpec) batch.TaskSpec {
		task.Template.Spec.SchedulerName = name
		return task
	}
	for name, test := range map[string]struct {
		tasks []batch.TaskSpec
		want  string
	}{
		"templates name none":             {[]batch.TaskSpec{task("a", 1, "1"), task("b", 1, "1")}, "volcano"},
		"all templates name one":          {[]batch.TaskSpec{by("second", task("a", 1, "1")), by("second", task("b", 1, "1"))}, "second"},
		"one template names another":      {[]batch.TaskSpec{by("second", task("a", 1, "1")), task("b", 1, "1")}, "volcano"},
		"a later template names another":  {[]batch.TaskSpec{task("a", 1, "1"), by("second", task("b", 1, "1"))}, "volcano"},
		"each template names another one": {[]batch.TaskSpec{by("second", task("a", 1, "1")), by("third", task("b", 1, "1"))}, "volcano"},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobOf(test.tasks...)
			job.Annotations = map[string]string{scheduling.SchedulerNameKey: "what a user wrote on the Job"}
			if got := BuildPodGroup(job, priority).Annotations[scheduling.SchedulerNameKey]; got != test.want {
				t.Errorf("it belongs to %q, want %q", got, test.want)
			}
		})
	}
}

func TestMinResourcesAreThoseOfTheFirstPodsInPriorityOrder(t *testing.T) {
	for _, test := range []struct {
		name         string
		tasks        []batch.TaskSpec
		minAvailable int32
		cpu          string
	}{
		{"all pods", []batch.TaskSpec{task("a", 2, "1"), task("b", 3, "2")}, 0, "8"},
		{"the order of the spec among equals", []batch.TaskSpec{task("a", 2, "1"), task("b", 3, "2")}, 3, "4"},
		{"the higher priority first", []batch.TaskSpec{task("a", 2, "1"), withClass(task("b", 3, "2"), "high")}, 3, "6"},
		{"each task's minimum before more of the highest",
			[]batch.TaskSpec{withMin(task("a", 2, "1"), 1), withMin(withClass(task("b", 4, "2"), "high"), 1)}, 3, "5"},
		{"minimums that do not fit into minAvailable do not count",
			[]batch.TaskSpec{withMin(task("a", 2, "1"), 2), withMin(withClass(task("b", 4, "2"), "high"), 2)}, 3, "6"},
		{"a class that is not known ranks with no class",
			[]batch.TaskSpec{withClass(task("a", 1, "1"), "gone"), withClass(task("b", 1, "2"), "low")}, 1, "2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := jobOf(test.tasks...)
			if test.minAvailable > 0 {
				job.Spec.MinAvailable = test.minAvailable
			}
			got := minResources(job, priority)[corev1.ResourceCPU]
			if got.Cmp(resource.MustParse(test.cpu)) != 0 {
				t.Errorf("cpu is %s, want %s", got.String(), test.cpu)
			}
		})
	}
}

func TestUpdatingAPodGroupKeepsWhatOthersHaveWritten(t *testing.T) {
	job := jobOf(task("a", 2, "1"))
	current := BuildPodGroup(job, priority)
	current.Annotations[scheduling.JobAllocatedHyperNodeKey] = "s1"
	current.Status.Phase = scheduling.PodGroupRunning
	if same := updatePodGroup(current, BuildPodGroup(job, priority)); !apiequality.Semantic.DeepEqual(current, same) {
		t.Errorf("nothing changed, yet (-before +after):\n%s", cmp.Diff(current, same))
	}
	stolen := current.DeepCopy()
	stolen.Spec = scheduling.PodGroupSpec{Queue: "other", PriorityClassName: "high", NetworkTopology: &scheduling.NetworkTopologySpec{},
		SubGroupPolicy: []scheduling.SubGroupPolicySpec{{Name: "all"}}}
	if undone := updatePodGroup(stolen, BuildPodGroup(job, priority)); !apiequality.Semantic.DeepEqual(current, undone) {
		t.Errorf("what somebody wrote into the spec stays (-want +got):\n%s", cmp.Diff(current, undone))
	}
	job = jobOf(task("a", 5, "1"))
	job.Annotations = map[string]string{"volcano.sh/preemptable": "true"}
	updated := updatePodGroup(current, BuildPodGroup(job, priority))
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
}

func TestTheReasonForWaitingIsTheLatestWord(t *testing.T) {
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
}

func TestPodsMayBeMadeOnceTheSchedulerHasLetThePodGroupIn(t *testing.T) {
	for phase, want := range map[scheduling.PodGroupPhase]bool{
		"": false, scheduling.PodGroupPending: false, scheduling.PodGroupInqueue: true, scheduling.PodGroupRunning: true,
		scheduling.PodGroupUnknown: true, scheduling.PodGroupCompleted: true,
	} {
		group := &scheduling.PodGroup{Status: scheduling.PodGroupStatus{Phase: phase}}
		if got := admitted(group); got != want {
			t.Errorf("phase %q: admitted is %t", phase, got)
		}
	}
}

func TestAPodGroupThatNothingCompletesIsSpent(t *testing.T) {
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
		if got := isSpent(job, podsOf(job, 0, test.pods...)); got != test.want {
			t.Errorf("%s with pods %v: spent is %t", test.phase, test.pods, got)
		}
	}
}

func TestPartitionsAreToldToTheScheduler(t *testing.T) {
	worker := withMin(task("worker", 6, ""), 4)
	tier := 2
	worker.PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: 3, PartitionSize: 2, MinPartitions: 2,
		NetworkTopology: &batch.NetworkTopologySpec{Mode: batch.HardNetworkTopologyMode, HighestTierAllowed: &tier}}
	job := jobOf(worker)
	policies := BuildPodGroup(job, priority).Spec.SubGroupPolicy
	if len(policies) != 1 || *policies[0].SubGroupSize != 2 || *policies[0].MinSubGroups != 2 ||
		policies[0].NetworkTopology.Mode != "hard" || *policies[0].NetworkTopology.HighestTierAllowed != 2 {
		t.Fatalf("the policies are %+v", policies)
	}
	selected := BuildPod(job, &job.Spec.Tasks[0], 5).Labels
	for key, value := range policies[0].LabelSelector.MatchLabels {
		if selected[key] != value {
			t.Errorf("the policy selects %s=%s, the pod has %v", key, value, selected)
		}
	}
	if selected[policies[0].MatchLabelKeys[0]] != "2" {
		t.Errorf("the sixth pod of partitions of two is in partition %q", selected[policies[0].MatchLabelKeys[0]])
	}
}
