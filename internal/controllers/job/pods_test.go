package job

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestAPodCarriesTheTemplateAndWhoItIs(t *testing.T) {
	worker := task("worker", 3, "1")
	worker.Template.Labels = map[string]string{"app": "sim", batch.JobNameKey: "forged"}
	worker.Template.Annotations = map[string]string{"note": "kept"}
	worker.TopologyPolicy = batch.NumaPolicyRestricted
	job := jobOf(worker)
	job.Spec.Queue, job.Spec.PriorityClassName = "research", "urgent"
	job.Status.Version, job.Status.RetryCount = 2, 1
	job.Annotations = map[string]string{scheduling.PreemptableKey: "true", "other": "stays on the Job"}
	job.Labels = map[string]string{batch.JobTypeKey: "training", "team": "stays on the Job"}

	pod := BuildPod(job, &job.Spec.Tasks[0], 2)
	wantLabels := map[string]string{
		"app":                  "sim",
		"volcano.sh/job-name":  "sim",
		"volcano.sh/task-spec": "worker", "volcano.sh/task-index": "2",
		"volcano.sh/queue-name": "research", "volcano.sh/job-namespace": "lab", "volcano.sh/job-type": "training",
	}
	wantAnnotations := map[string]string{
		"note":                         "kept",
		"scheduling.k8s.io/group-name": "sim-1f2e",
		"volcano.sh/job-name":          "sim",
		"volcano.sh/task-spec":         "worker", "volcano.sh/task-index": "2",
		"volcano.sh/queue-name": "research", "volcano.sh/job-version": "2", "volcano.sh/job-retry-count": "1",
		"volcano.sh/template-uid": "sim-worker", "volcano.sh/preemptable": "true",
		"volcano.sh/numa-topology-policy": "restricted",
	}
	if pod.Name != "sim-worker-2" || pod.Namespace != "lab" {
		t.Errorf("the pod is %s/%s", pod.Namespace, pod.Name)
	}
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantAnnotations, pod.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(pod, job) || pod.OwnerReferences[0].APIVersion != "batch.volcano.sh/v1alpha1" {
		t.Errorf("owner references are %+v", pod.OwnerReferences)
	}
	if pod.Spec.SchedulerName != "volcano" || pod.Spec.PriorityClassName != "urgent" {
		t.Errorf("schedulerName is %q, priorityClassName %q", pod.Spec.SchedulerName, pod.Spec.PriorityClassName)
	}
	if worker.Template.Labels[batch.JobNameKey] != "forged" || job.Spec.Tasks[0].Template.Annotations[batch.JobNameKey] != "" {
		t.Error("building a pod changed the template")
	}
}

func TestATemplateKeepsTheSchedulerAndThePriorityClassItNames(t *testing.T) {
	worker := task("worker", 1, "1")
	worker.Template.Spec.SchedulerName, worker.Template.Spec.PriorityClassName = "default-scheduler", "low"
	job := jobOf(worker)
	job.Spec.PriorityClassName = "urgent"
	if spec := BuildPod(job, &job.Spec.Tasks[0], 0).Spec; spec.SchedulerName != "default-scheduler" || spec.PriorityClassName != "low" {
		t.Errorf("schedulerName is %q, priorityClassName %q", spec.SchedulerName, spec.PriorityClassName)
	}
}

func TestPodsAreComparedByName(t *testing.T) {
	job := jobOf(task("a", 3, ""), task("b", 1, ""))
	pods := podsOf(job, 0, running, terminating) // a-0 a-1; a-2 and b-0 are missing
	tooMany := jobOf(task("a", 6, ""))
	pods = append(pods, podsOf(tooMany, 0, pending, pending, pending, pending, running, terminating)[4:]...) // a-4 a-5

	missing, isPart, surplus := missingAndSurplus(job, pods, nil, []string{"", ""}, 2)
	if want := []slot{{0, 2}, {1, 0}}; !slices.Equal(missing, want) || isPart {
		t.Errorf("missing %v, want %v; a part of it: %t", missing, want, isPart)
	}
	if len(surplus) != 1 || surplus[0].Name != "sim-a-4" {
		t.Errorf("surplus %v, want sim-a-4 only: sim-a-5 is going already", surplus)
	}
}

func TestSoManyPodsAreMissingAsMayBeMadeAtATime(t *testing.T) {
	job := jobOf(task("a", 1_000_000, ""), task("held", 1_000_000, ""), task("b", 3, ""))
	pods := podsOf(job, 0, running, terminating)
	unseen := sets.New("sim-a-3", "sim-a-4", "sim-b-1", "sim-a-1000000", "sim-a-05", "sim-c-0", "other")
	for _, test := range []struct {
		limit  int
		want   []slot
		isPart bool
	}{
		{0, nil, true},
		{1, []slot{{0, 2}}, true},
		{3, []slot{{0, 2}, {0, 5}, {0, 6}}, true},
	} {
		missing, isPart, _ := missingAndSurplus(job, pods, unseen, []string{"", "waits", ""}, test.limit)
		if !slices.Equal(missing, test.want) || isPart != test.isPart {
			t.Errorf("of %d: missing %v, want %v; a part of it: %t", test.limit, missing, test.want, isPart)
		}
	}
	job.Spec.Tasks[0].Replicas = 5
	missing, isPart, _ := missingAndSurplus(job, pods, unseen, []string{"", "waits", ""}, 3)
	if want := []slot{{0, 2}, {2, 0}, {2, 2}}; !slices.Equal(missing, want) || isPart {
		t.Errorf("missing %v, want %v; a part of it: %t", missing, want, isPart)
	}
}

func TestAPodIsKnownByItsName(t *testing.T) {
	names := slotsOf(jobOf(task("a", 3, ""), task("a-b", 12, "")))
	for name, want := range map[string]slot{"sim-a-2": {0, 2}, "sim-a-b-11": {1, 11}} {
		if got, isWanted := names.find(name); !isWanted || got != want {
			t.Errorf("%s is %v, %t, want %v", name, got, isWanted, want)
		}
	}
	for _, name := range []string{"", "sim", "sim-a", "sim-a-", "sim-a-3", "sim-a-01", "sim-a-+1", "sim-a--1", "sim-c-0", "other-a-0", "sim-a-x"} {
		if got, isWanted := names.find(name); isWanted {
			t.Errorf("%q is taken for %v", name, got)
		}
	}
}

// What the user wrote on a pod may be anything.
func TestGapsAreCountedFromNought(t *testing.T) {
	var found []int
	gaps([]int{4, -7, 1, 1, 9}, 6, func(index int) bool {
		found = append(found, index)
		return true
	})
	if want := []int{0, 2, 3, 5}; !slices.Equal(found, want) {
		t.Errorf("the gaps are %v, want %v", found, want)
	}
}

func TestFinishedPodsAreLeftForTheirLogsUnlessTheJobRestarts(t *testing.T) {
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
			for _, pod := range leftovers(job, pods) {
				names = append(names, pod.Name)
			}
			if !slices.Equal(names, test.want) {
				t.Errorf("the leftovers are %v, want %v", names, test.want)
			}
		})
	}
}
