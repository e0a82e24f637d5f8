package lifecycle

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func groupIn(phase scheduling.PodGroupPhase, message string) *scheduling.PodGroup {
	group := &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "sim-1f2e"}, Spec: scheduling.PodGroupSpec{Queue: "default"}}
	group.Status.Phase = phase
	if message != "" {
		group.Status.Conditions = []scheduling.PodGroupCondition{{
			Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: "NotEnoughResources", Message: message,
		}}
	}
	return group
}

// drawPods draws a Job and pods of it in any state.
func drawPods(t *rapid.T) (*batch.Job, []*corev1.Pod) {
	replicas := rapid.SliceOfN(rapid.Int32Range(0, 5), 1, 3).Draw(t, "replicas")
	var tasks []batch.TaskSpec
	for i, replicas := range replicas {
		task := task(string(rune('a'+i)), replicas, "")
		task.MinAvailable = pointer(rapid.Int32Range(0, replicas).Draw(t, "task minimum"))
		tasks = append(tasks, task)
	}
	job := jobOf(tasks...)
	job.Spec.MinAvailable = rapid.Int32Range(0, job.TotalReplicas()).Draw(t, "minAvailable")
	phases := rapid.SampledFrom([]corev1.PodPhase{pending, running, succeeded, failed, unknown, terminating, ""})
	var pods []*corev1.Pod
	for i, replicas := range replicas {
		pods = append(pods, podsOf(job, i, rapid.SliceOfN(phases, 0, int(replicas)+1).Draw(t, "pods")...)...)
	}
	return job, pods
}

func TestCountsAlwaysAddUpToThePods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, pods := drawPods(t)
		// What was counted before must not shine through.
		status := &batch.JobStatus{Pending: 7, Unknown: 3, TaskStatusCount: map[string]batch.TaskState{"gone": {}}}
		count(status, pods)
		sum := status.Pending + status.Running + status.Succeeded + status.Failed + status.Unknown + status.Terminating
		if int(sum) != len(pods) {
			t.Fatalf("%d pods are counted as %d: %+v", len(pods), sum, status)
		}
		byPhase := map[corev1.PodPhase]int32{}
		for _, task := range status.TaskStatusCount {
			for phase, number := range task.Phase {
				byPhase[phase] += number
			}
		}
		for phase, want := range map[corev1.PodPhase]int32{
			pending: status.Pending, running: status.Running, succeeded: status.Succeeded, failed: status.Failed, unknown: status.Unknown,
		} {
			if byPhase[phase] != want {
				t.Fatalf("the tasks together have %d pods %s, the Job has %d", byPhase[phase], phase, want)
			}
		}
	})
}

func TestWithoutChangeThePhaseComesToRestAndTheStatusStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job, pods := drawPods(t)
		_, _, surplus := MissingAndSurplus(job, pods, nil, make([]string, len(job.Spec.Tasks)), 500)
		marked := make([]*corev1.Pod, len(surplus))
		for i, pod := range surplus {
			marked[i] = pod.DeepCopy()
			marked[i].DeletionTimestamp = &metav1.Time{}
		}
		// podsOf gives no UIDs, so the surplus is found by name.
		pods = substituteByName(pods, marked)
		job.Status.State.Phase = rapid.SampledFrom(allPhases).Draw(t, "phase")
		group := groupIn(scheduling.PodGroupInqueue, rapid.SampledFrom([]string{"", "2 cpu short"}).Draw(t, "message"))
		const longestWay = 4 // "" → Pending → Running → Completed, and once more
		for range longestWay {
			job.Status = *Observe(job, pods, group, Trouble{}, noon)
		}
		again := Observe(job, pods, group, Trouble{}, noon.Add(time.Hour))
		if !apiequality.Semantic.DeepEqual(&job.Status, again) {
			t.Fatalf("the status changes for ever: %+v, then %+v", job.Status, again)
		}
	})
}

func substituteByName(pods, marked []*corev1.Pod) []*corev1.Pod {
	for _, substitute := range marked {
		for i, pod := range pods {
			if pod.Name == substitute.Name {
				pods[i] = substitute
			}
		}
	}
	return pods
}

func TestTheStatusOfAJob(t *testing.T) {
	t.Run("says why it waits until it runs", func(t *testing.T) {
		job := jobOf(task("a", 2, ""))
		step := func(want batch.JobState, pods []*corev1.Pod, group *scheduling.PodGroup) {
			t.Helper()
			job.Status = *Observe(job, pods, group, Trouble{}, noon)
			got := job.Status.State
			if got.Phase != want.Phase || got.Reason != want.Reason || got.Message != want.Message {
				t.Fatalf("got %s, %q, %q, want %s, %q, %q", got.Phase, got.Reason, got.Message, want.Phase, want.Reason, want.Message)
			}
		}
		step(batch.JobState{Phase: batch.Pending, Reason: "PodGroupPending",
			Message: "scheduler volcano has not let PodGroup sim-1f2e into queue default yet"}, nil, groupIn("", ""))
		step(batch.JobState{Phase: batch.Pending, Reason: "NotEnoughResources", Message: "queue default is 3 cpu short"},
			nil, groupIn(scheduling.PodGroupPending, "queue default is 3 cpu short"))
		step(batch.JobState{Phase: batch.Pending}, nil, groupIn(scheduling.PodGroupInqueue, ""))
		step(batch.JobState{Phase: batch.Pending, Reason: "NotEnoughResources", Message: "1 of 2 pods has room"},
			podsOf(job, 0, pending, pending), groupIn(scheduling.PodGroupInqueue, "1 of 2 pods has room"))
		step(batch.JobState{Phase: batch.Running}, podsOf(job, 0, running, running), groupIn(scheduling.PodGroupRunning, "old news"))
		// The gang is evicted, and no pod is made until it is admitted again.
		step(batch.JobState{Phase: batch.Running}, podsOf(job, 0, terminating, terminating), groupIn(scheduling.PodGroupInqueue, ""))
		step(batch.JobState{Phase: batch.Pending, Reason: "NotEnoughResources", Message: "the cluster is 2 cpu short"},
			nil, groupIn(scheduling.PodGroupPending, "the cluster is 2 cpu short"))
	})
	t.Run("says what is wrong until the end", func(t *testing.T) {
		refused := Trouble{ReasonFailedCreate, "quota used up"}
		job := jobOf(task("a", 2, ""))
		job.Status.State.Phase = batch.Running
		status := Observe(job, podsOf(job, 0, running), groupIn(scheduling.PodGroupRunning, ""), refused, noon)
		if status.State.Message != "quota used up" || status.State.Reason != ReasonFailedCreate {
			t.Errorf("the state is %+v", status.State)
		}
		job.Status = *status
		if status = Observe(job, podsOf(job, 0, running, running), nil, Trouble{}, noon); status.State.Message != "" {
			t.Errorf("the trouble is over, the message is still %q", status.State.Message)
		}
		status = Observe(job, podsOf(job, 0, failed, failed), nil, refused, noon)
		if status.State.Phase != batch.Failed || status.State.Reason != ReasonTaskBelowMinAvailable {
			t.Errorf("a finished Job tells of its end, not of %+v", status.State)
		}
	})
	t.Run("stays as it is while the spec is invalid", func(t *testing.T) {
		job := jobOf(task("a", 2, ""))
		invalid := Trouble{ReasonInvalidSpec, "spec.minAvailable: Invalid value: 9"}
		if status := Observe(job, nil, nil, invalid, noon); status.State.Phase != batch.Pending || status.State.Message != invalid.Message {
			t.Errorf("a new Job is %+v", status.State)
		}
		job.Status.State.Phase = batch.Running
		job.Spec.MinAvailable = 9
		status := Observe(job, podsOf(job, 0, succeeded, succeeded), nil, invalid, noon)
		if status.State.Phase != batch.Running || status.Succeeded != 2 || status.State.Reason != ReasonInvalidSpec {
			t.Errorf("a running Job is %+v", status)
		}
	})
	t.Run("has the phases with their times", func(t *testing.T) {
		job := jobOf(task("a", 1, ""))
		job.CreationTimestamp = metav1.NewTime(noon)
		at := noon
		for _, phases := range [][]corev1.PodPhase{{pending}, {running}, {running}, {succeeded}} {
			at = at.Add(time.Minute)
			job.Status = *Observe(job, podsOf(job, 0, phases...), groupIn(scheduling.PodGroupInqueue, ""), Trouble{}, at)
		}
		var history []batch.JobPhase
		for _, condition := range job.Status.Conditions {
			history = append(history, condition.Status)
		}
		if len(history) != 3 || history[0] != batch.Pending || history[1] != batch.Running || history[2] != batch.Completed {
			t.Errorf("the history is %v", history)
		}
		if got := job.Status.RunningDuration; got == nil || got.Duration != 2*time.Minute {
			t.Errorf("it ran from 12:02 to 12:04, runningDuration is %v", got)
		}
		if job.Status.Version != 1 || !job.Status.State.LastTransitionTime.Time.Equal(noon.Add(4*time.Minute)) {
			t.Errorf("version %d, last transition %s", job.Status.Version, job.Status.State.LastTransitionTime)
		}
	})
	t.Run("has a bounded history of phases", func(t *testing.T) {
		job := jobOf(task("a", 1, ""))
		for range 3 * maxConditions {
			for _, phase := range []corev1.PodPhase{pending, running} {
				job.Status = *Observe(job, podsOf(job, 0, phase), groupIn(scheduling.PodGroupInqueue, ""), Trouble{}, noon)
			}
		}
		if got := len(job.Status.Conditions); got != maxConditions {
			t.Errorf("%d conditions are kept, want %d", got, maxConditions)
		}
	})
}

func TestAJobThatWaitsForPodsToEndNamesTheOneThatDoesNot(t *testing.T) {
	job := jobOf(task("w", 2, ""))
	job.Spec.MinAvailable = 2
	pods := podsOf(job, 0, running, running)
	pods[0].Finalizers, pods[0].DeletionTimestamp, pods[0].DeletionGracePeriodSeconds = []string{"example.com/hold"}, pointer(metav1.NewTime(noon)), pointer(int64(0))
	pods[1].Spec.NodeName, pods[1].DeletionTimestamp = "n1", pointer(metav1.NewTime(noon.Add(30*time.Second)))
	for _, phase := range []batch.JobPhase{batch.Restarting, batch.Aborting, batch.Completing, batch.Terminating} {
		job.Status = batch.JobStatus{State: batch.JobState{Phase: phase, Reason: "PodFailed", Message: "pod x failed"}, Version: 1}
		job.Spec.MaxRetry = 3
		status := Observe(job, pods, nil, Trouble{}, noon.Add(6*time.Second))
		if s := status.State; s.Phase != phase || s.Reason != ReasonPodsTerminating || s.Message != "pod "+pods[0].Namespace+"/"+pods[0].Name+" is being deleted and has the finalizer example.com/hold" {
			t.Errorf("while it is %s the state is %+v", phase, s)
		}
		if left := OverdueLeft(status, pods, noon.Add(6*time.Second)); left != 29*time.Second {
			t.Errorf("while it is %s it is looked at again after %s", phase, left)
		}
		job.Status = *status
		job.Status = *Observe(job, pods, nil, Trouble{}, noon.Add(time.Minute))
		if !strings.HasSuffix(job.Status.State.Message, "; 1 more do not end") {
			t.Errorf("while it is %s and both hang the state is %+v", phase, job.Status.State)
		}
		if s := Observe(job, nil, nil, Trouble{}, noon.Add(time.Minute)).State; s.Reason == ReasonPodsTerminating {
			t.Errorf("without pods the state is %+v", s)
		}
	}
}
