package job

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestAPodCarriesTheTemplateAndWhoItIs(t *testing.T) {
	worker := task("worker", 3, "1")
	worker.Template.Labels = map[string]string{"app": "sim", batch.JobNameKey: "forged"}
	worker.Template.Annotations = map[string]string{"note": "kept"}
	worker.TopologyPolicy = batch.NumaPolicyRestricted
	job := jobOf(worker)
	job.Spec.Queue = "research"
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
	if pod.Spec.SchedulerName != "volcano" {
		t.Errorf("schedulerName is %q", pod.Spec.SchedulerName)
	}
	if worker.Template.Labels[batch.JobNameKey] != "forged" || job.Spec.Tasks[0].Template.Annotations[batch.JobNameKey] != "" {
		t.Error("building a pod changed the template")
	}
}

func TestATemplateKeepsTheSchedulerItNames(t *testing.T) {
	worker := task("worker", 1, "1")
	worker.Template.Spec.SchedulerName = "default-scheduler"
	job := jobOf(worker)
	if got := BuildPod(job, &job.Spec.Tasks[0], 0).Spec.SchedulerName; got != "default-scheduler" {
		t.Errorf("schedulerName is %q", got)
	}
}

func TestPodsAreComparedByName(t *testing.T) {
	job := jobOf(task("a", 3, ""), task("b", 1, ""))
	pods := podsOf(job, 0, running, terminating) // a-0 a-1; a-2 and b-0 are missing
	tooMany := jobOf(task("a", 6, ""))
	pods = append(pods, podsOf(tooMany, 0, pending, pending, pending, pending, running, terminating)[4:]...) // a-4 a-5

	missing, surplus := missingAndSurplus(job, pods)
	if want := []slot{{0, 2}, {1, 0}}; !slices.Equal(missing, want) {
		t.Errorf("missing %v, want %v", missing, want)
	}
	if len(surplus) != 1 || surplus[0].Name != "sim-a-4" {
		t.Errorf("surplus %v, want sim-a-4 only: sim-a-5 is going already", surplus)
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
