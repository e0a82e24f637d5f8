package lifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

var allPhases = []batch.JobPhase{"", batch.Pending, batch.Running, batch.Restarting, batch.Aborting, batch.Aborted,
	batch.Completing, batch.Completed, batch.Terminating, batch.Terminated, batch.Failed}

var (
	onEvent    = fixture.OnEvent
	onExitCode = fixture.OnExitCode
	after      = fixture.After
)

func TestEveryPhaseFollowsItsActions(t *testing.T) {
	active := map[bus.Action]batch.JobPhase{
		bus.AbortJobAction: batch.Aborting, bus.TerminateJobAction: batch.Terminating, bus.CompleteJobAction: batch.Completing,
		bus.RestartJobAction: batch.Restarting, bus.RestartTaskAction: batch.Restarting,
		bus.RestartPartitionAction: batch.Restarting, bus.RestartPodAction: batch.Restarting,
	}
	stopped := map[bus.Action]batch.JobPhase{bus.ResumeJobAction: batch.Restarting, bus.TerminateJobAction: batch.Terminating}
	want := map[batch.JobPhase]map[bus.Action]batch.JobPhase{
		"": active, batch.Pending: active, batch.Running: active,
		batch.Restarting: {bus.AbortJobAction: batch.Aborting, bus.TerminateJobAction: batch.Terminating, bus.CompleteJobAction: batch.Completing},
		batch.Aborting:   stopped, batch.Aborted: stopped,
	}
	for _, phase := range allPhases {
		for _, action := range append(slices.Clone(validation.JobActions()), bus.SyncJobAction, bus.OpenQueueAction, "") {
			to, follows := Transition(phase, action)
			wanted, wantFollows := want[phase][action]
			if follows != wantFollows || follows && to != wanted {
				t.Errorf("%s in phase %q leads to %q (%t), want %q (%t)", action, phase, to, follows, wanted, wantFollows)
			}
		}
	}
}

func TestPoliciesAnswerEvents(t *testing.T) {
	// TestEveryEventIsAnsweredWithEveryAction goes through event × action × level × phase: the policy must lead where
	// the phase's table says, and only for its own event.
	t.Run("every event with every action", func(t *testing.T) {
		for _, happened := range validation.PolicyEvents()[1:] {
			for _, answered := range validation.PolicyEvents() {
				for _, action := range validation.JobActions() {
					for _, ofTask := range []bool{true, false} {
						job := jobOf(task("a", 2, ""))
						policy := onEvent(action, answered)
						if happened == bus.PodPendingEvent {
							policy = after(time.Minute, policy)
						}
						if ofTask {
							job.Spec.Tasks[0].Policies = batch.LifecyclePolicies{policy}
						} else {
							job.Spec.Policies = batch.LifecyclePolicies{policy}
						}
						found := Occurrence{Event: happened, Task: 0, Index: 1, Since: noon.Add(-time.Hour), What: "it happened"}
						due, _ := Demands(job, []Occurrence{found}, func(o *Occurrence) time.Time { return o.Since }, noon)
						fitting := answered == happened || answered == bus.AnyEvent
						if (len(due) == 1) != fitting {
							t.Fatalf("%s happened, the policy for %s demands %v", happened, answered, due)
						}
						for _, phase := range []batch.JobPhase{batch.Pending, batch.Running} {
							to, follows := Transition(phase, action)
							followed := Chosen(phase, due)
							if (len(followed) == 1) != (fitting && follows) {
								t.Fatalf("%s on %s in phase %s: %v is followed", action, happened, phase, followed)
							}
							if len(followed) == 0 {
								continue
							}
							job.Status = batch.JobStatus{State: batch.JobState{Phase: phase}}
							status := Follow(job, nil, followed, noon)
							if status.State.Phase != to || status.State.Reason != string(happened) || (status.RetryCount == 1) != (to == batch.Restarting) ||
								(status.Version == 0) != IsPartial(action) {
								t.Fatalf("%s on %s in phase %s leads to %+v", action, happened, phase, status)
							}
						}
					}
				}
			}
		}
	})
	t.Run("by the task before the job, and the first policy decides", func(t *testing.T) {
		job := jobOf(task("a", 2, ""), task("b", 2, ""))
		job.Spec.Policies = batch.LifecyclePolicies{onExitCode(bus.TerminateJobAction, 3), onEvent(bus.AbortJobAction, bus.AnyEvent)}
		job.Spec.Tasks[0].Policies = batch.LifecyclePolicies{onExitCode(bus.RestartPodAction, 3), onEvent(bus.RestartTaskAction, bus.PodFailedEvent)}
		for _, test := range []struct {
			name string
			o    Occurrence
			want bus.Action
		}{
			{"the task's exit code", Occurrence{Event: bus.PodFailedEvent, Task: 0, exitCodes: []int32{3}}, bus.RestartPodAction},
			{"any container's exit code", Occurrence{Event: bus.PodFailedEvent, Task: 0, exitCodes: []int32{1, 3}}, bus.RestartPodAction},
			{"the task's event", Occurrence{Event: bus.PodFailedEvent, Task: 0, exitCodes: []int32{4}}, bus.RestartTaskAction},
			{"another event of the task", Occurrence{Event: bus.PodEvictedEvent, Task: 0}, bus.AbortJobAction},
			{"the Job's exit code", Occurrence{Event: bus.PodFailedEvent, Task: 1, exitCodes: []int32{3}}, bus.TerminateJobAction},
			{"the Job's event", Occurrence{Event: bus.PodFailedEvent, Task: 1}, bus.AbortJobAction},
			{"an event of no task", Occurrence{Event: bus.JobUpdatedEvent, Task: None}, bus.AbortJobAction},
		} {
			if got := answer(job, &test.o); got == nil || got.Action != test.want {
				t.Errorf("%s is answered by %+v, want %s", test.name, got, test.want)
			}
		}
		if got := answer(job, &Occurrence{Event: bus.PodPendingEvent, Task: 1}); got != nil {
			t.Errorf("a pod that was just made is answered by %+v", got)
		}
	})
	t.Run("after a timeout when that is over", func(t *testing.T) {
		job := jobOf(task("a", 2, ""))
		job.Spec.Policies = batch.LifecyclePolicies{
			after(time.Minute, onEvent(bus.AbortJobAction, bus.PodPendingEvent)), after(30*time.Second, onEvent(bus.RestartJobAction, bus.PodFailedEvent)),
		}
		found := []Occurrence{
			{Event: bus.PodPendingEvent, Task: 0, Index: 0, Since: noon, What: "pod a-0 is pending"},
			{Event: bus.PodFailedEvent, Task: 0, Index: 1, Since: noon, What: "pod a-1 failed"},
		}
		for _, test := range []struct {
			after time.Duration
			due   int
			wait  time.Duration
		}{{10 * time.Second, 0, 20 * time.Second}, {30 * time.Second, 1, 30 * time.Second}, {time.Minute, 2, 0}} {
			due, wait := Demands(job, found, func(o *Occurrence) time.Time { return o.Since }, noon.Add(test.after))
			if len(due) != test.due || wait != test.wait {
				t.Errorf("after %s: %d due, next in %s; want %d and %s", test.after, len(due), wait, test.due, test.wait)
			}
		}
		due, _ := Demands(job, found[:1], func(o *Occurrence) time.Time { return o.Since }, noon.Add(time.Hour))
		if due[0].Message != "pod a-0 is pending, for more than 1m0s: AbortJob" {
			t.Errorf("the message is %q", due[0].Message)
		}
	})
	t.Run("with the most final action of several, in any order", func(t *testing.T) {
		complete, abort := Demand{Action: bus.CompleteJobAction}, Demand{Action: bus.AbortJobAction}
		pod, task := Demand{Action: bus.RestartPodAction, index: 1}, Demand{Action: bus.RestartTaskAction, task: 1}
		for _, asked := range [][]Demand{{complete, abort, pod}, {pod, abort, complete}} {
			if got := Chosen(batch.Running, asked); len(got) != 1 || got[0] != complete {
				t.Errorf("of %v is followed %v", asked, got)
			}
		}
		if got := Chosen(batch.Running, []Demand{pod, task}); !slices.Equal(got, []Demand{task, pod}) {
			t.Errorf("both parts are to be restarted at once, not %v", got)
		}
		if got := Chosen(batch.Completing, []Demand{abort}); got != nil {
			t.Errorf("a Job that is completing follows %v", got)
		}
	})
}

func TestOnlyWhatIsMeantIsRestarted(t *testing.T) {
	job := jobOf(task("a", 4, ""), task("b", 2, ""))
	job.Spec.Tasks[0].PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2}
	pods := append(podsOf(job, 0, failed, running, terminating, running), podsOf(job, 1, running, succeeded)...)
	for _, test := range []struct {
		name string
		d    Demand
		want []string
	}{
		{"a pod", Demand{Action: bus.RestartPodAction, task: 0, index: 1}, []string{"sim-a-1"}},
		{"a partition", Demand{Action: bus.RestartPartitionAction, task: 0, index: 1}, []string{"sim-a-0", "sim-a-1"}},
		{"a partition of which one is going", Demand{Action: bus.RestartPartitionAction, task: 0, index: 2}, []string{"sim-a-3"}},
		{"a task", Demand{Action: bus.RestartTaskAction, task: 1, index: 0}, []string{"sim-b-0", "sim-b-1"}},
		{"an undivided task's partition", Demand{Action: bus.RestartPartitionAction, task: 1, index: 0}, []string{"sim-b-0", "sim-b-1"}},
		{"the Job, by its version", Demand{Action: bus.RestartJobAction, task: None, index: None}, nil},
	} {
		var got []string
		for _, pod := range Targets(job, pods, []Demand{test.d}) {
			got = append(got, pod.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v is restarted, want %v", test.name, got, test.want)
		}
	}
}

func TestAnActionForMoreThanTheEventNamesIsWidened(t *testing.T) {
	for _, test := range []struct{ asked, want Demand }{
		{Demand{Action: bus.RestartPodAction, task: 0, index: 1}, Demand{Action: bus.RestartPodAction, task: 0, index: 1}},
		{Demand{Action: bus.RestartPodAction, task: 0, index: None}, Demand{Action: bus.RestartTaskAction, task: 0, index: None}},
		{Demand{Action: bus.RestartTaskAction, task: None, index: None}, Demand{Action: bus.RestartJobAction, task: None, index: None}},
		{Demand{Action: bus.AbortJobAction, task: 0, index: 1}, Demand{Action: bus.AbortJobAction, task: None, index: None}},
	} {
		if got := widened(test.asked); got != test.want {
			t.Errorf("%v becomes %v, want %v", test.asked, got, test.want)
		}
	}
}

// happened are the events that are there to be answered.
func happened(job *batch.Job, pods []*corev1.Pod, group *scheduling.PodGroup, unseen ...string) []bus.Event {
	var events []bus.Event
	for _, o := range Occurrences(job, pods, sets.New(unseen...), group) {
		if !slices.Contains(events, o.Event) {
			events = append(events, o.Event)
		}
	}
	return events
}

func TestEventsAreReadOffTheState(t *testing.T) {
	withPolicy := func(tasks ...batch.TaskSpec) *batch.Job {
		job := jobOf(tasks...)
		job.Spec.Policies = batch.LifecyclePolicies{onEvent(bus.AbortJobAction, bus.AnyEvent)}
		return job
	}
	recorded := func(job *batch.Job, pods []*corev1.Pod) *batch.Job {
		count(&job.Status, pods)
		return job
	}
	two := func() *batch.Job { return withPolicy(task("a", 2, "")) }
	restarted := podsOf(two(), 0, running, running)
	restarted[0].Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}}
	restarted[1].Status.InitContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
	updated := two()
	updated.Generation, updated.Status.ObservedGeneration = 3, 2
	unobserved := two()
	unobserved.Generation = 3
	outdated := two()
	outdated.Status.Version = 1
	shrunk := recorded(withPolicy(task("a", 1, "")), podsOf(two(), 0, running, running))
	enough := withPolicy(task("a", 2, ""))
	enough.Spec.MinSuccess = pointer[int32](1)
	recordedTwo := func() *batch.Job { return recorded(two(), podsOf(two(), 0, running, running)) }
	type events = []bus.Event
	for _, test := range []struct {
		name  string
		job   *batch.Job
		pods  []*corev1.Pod
		group scheduling.PodGroupPhase
		want  events
	}{
		{"all is well", two(), podsOf(two(), 0, running, running), scheduling.PodGroupRunning, nil},
		{"a pod waits", two(), podsOf(two(), 0, running, pending), scheduling.PodGroupRunning, events{bus.PodPendingEvent}},
		{"a pod failed", two(), podsOf(two(), 0, running, failed), scheduling.PodGroupRunning, events{bus.PodFailedEvent}},
		{"a task completed", two(), podsOf(two(), 0, succeeded, succeeded), scheduling.PodGroupCompleted, events{bus.TaskCompletedEvent}},
		{"a task ended with a failure", two(), podsOf(two(), 0, succeeded, failed), scheduling.PodGroupCompleted, events{bus.PodFailedEvent, bus.TaskFailedEvent}},
		{"containers restart too often", two(), restarted, scheduling.PodGroupRunning, events{bus.TaskFailedEvent}},
		{"a torn gang", two(), podsOf(two(), 0, running, pending), scheduling.PodGroupUnknown, events{bus.JobUnknownEvent, bus.PodPendingEvent}},
		{"a phase from before the restart", two(), podsOf(two(), 0, pending, pending), scheduling.PodGroupUnknown, events{bus.PodPendingEvent}},
		{"a changed spec", updated, podsOf(two(), 0, running, running), scheduling.PodGroupRunning, events{bus.JobUpdatedEvent}},
		{"a spec seen for the first time", unobserved, podsOf(two(), 0, running, running), scheduling.PodGroupRunning, nil},
		{"outdated pods", outdated, podsOf(two(), 0, failed, failed), scheduling.PodGroupRunning, nil},
		{"a pod is going", recordedTwo(), podsOf(two(), 0, running, terminating), scheduling.PodGroupRunning, events{bus.PodEvictedEvent}},
		{"a pod is gone", recordedTwo(), podsOf(two(), 0, running), scheduling.PodGroupRunning, events{bus.PodEvictedEvent}},
		{"a finished pod was cleaned up", recorded(two(), podsOf(two(), 0, succeeded, running)), podsOf(two(), 0, running, running)[1:], scheduling.PodGroupRunning, nil},
		{"scaled down", shrunk, podsOf(two(), 0, running, terminating), scheduling.PodGroupRunning, nil},
		{"minSuccess is reached", enough, podsOf(two(), 0, succeeded, failed), scheduling.PodGroupRunning, nil},
	} {
		if got := happened(test.job, test.pods, groupIn(test.group, "")); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if got := happened(recordedTwo(), podsOf(two(), 0, running), nil, "sim-a-1"); got != nil {
		t.Errorf("a pod that the cache does not show yet: %v", got)
	}
	if got := happened(jobOf(task("a", 1, "")), podsOf(two(), 0, failed), nil); got != nil {
		t.Errorf("a Job without policies: %v", got)
	}
}

func TestAFailureTellsItsExitCodesAndTime(t *testing.T) {
	job := jobOf(task("a", 1, ""))
	job.Spec.Policies = batch.LifecyclePolicies{onExitCode(bus.AbortJobAction, 137)}
	pod := podsOf(job, 0, failed)[0]
	ended := func(code int32, at time.Time) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(at)}}}
	}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended(0, noon.Add(time.Hour))}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended(1, noon), {}, ended(137, noon.Add(time.Minute))}
	found := Occurrences(job, []*corev1.Pod{pod}, nil, nil)
	if o := found[0]; !slices.Equal(o.exitCodes, []int32{1, 137}) || !o.Since.Equal(noon.Add(time.Minute)) || o.What != "pod sim-a-0 failed with exit code 1" {
		t.Errorf("the occurrence is %+v", o)
	}
}
