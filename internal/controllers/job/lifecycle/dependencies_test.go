package lifecycle

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	"hekla.sh/hekla/pkg/apis/batch/dependencies"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

var dependingOn = fixture.DependingOn

func TestTasksThatDependOnOthers(t *testing.T) {
	t.Run("are held back until those have started", func(t *testing.T) {
		notReady := func(pods []*corev1.Pod) []*corev1.Pod {
			pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Ready: true}, {Ready: false}}
			return pods
		}
		a, b := withMin(task("a", 3, ""), 2), task("b", 1, "")
		all := jobOf(a, b, dependingOn(task("c", 1, ""), "", "a", "b"))
		anyOf := jobOf(a, b, dependingOn(task("c", 1, ""), batch.IterationAny, "a", "b"))
		free := jobOf(withMin(task("a", 3, ""), 0), b, dependingOn(task("c", 1, ""), "", "a"))
		for _, test := range []struct {
			name string
			job  *batch.Job
			pods []*corev1.Pod
			held string
		}{
			{"nothing has started", all, nil, "task c waits for task a, of which 0 of 2 pods are ready and task b, of which 0 of 1 pods are ready"},
			{"one task has", all, podsOf(all, 1, running), "task c waits for task a, of which 0 of 2 pods are ready"},
			{"one would do and has", anyOf, podsOf(anyOf, 1, running), ""},
			{"one would do and none has", anyOf, podsOf(anyOf, 1, pending),
				"task c waits for task a, of which 0 of 2 pods are ready or task b, of which 0 of 1 pods are ready"},
			{"enough of both", all, append(podsOf(all, 0, running, succeeded, pending), podsOf(all, 1, running)...), ""},
			{"a container is not ready", all, append(notReady(podsOf(all, 0, running, running)), podsOf(all, 1, running)...),
				"task c waits for task a, of which 1 of 2 pods are ready"},
			{"failed and terminating pods are no help", all, append(podsOf(all, 0, failed, terminating), podsOf(all, 1, running)...),
				"task c waits for task a, of which 0 of 2 pods are ready"},
			{"a task that may have none needs one", free, nil, "task c waits for task a, of which 0 of 1 pods are ready"},
			{"once started it goes on", all, podsOf(all, 2, pending), ""},
		} {
			held := HeldBack(test.job, test.pods)
			if held[0] != "" || held[1] != "" || held[2] != test.held {
				t.Errorf("%s: held back are %q, want the last %q", test.name, held, test.held)
			}
		}
	})
	t.Run("do not count for the gang that they wait for", func(t *testing.T) {
		job := jobOf(withMin(task("a", 3, "1"), 2), dependingOn(task("b", 2, "1"), "", "a"))
		group := builder.PodGroup(job, priority, builder.FromTemplate)
		dependencies.HoldBack(group, job, HeldBack(job, nil))
		if group.Spec.MinMember != 2 || len(group.Spec.MinTaskMember) != 1 || group.Spec.MinResources.Cpu().Value() != 4 {
			t.Errorf("the PodGroup is %+v", group.Spec)
		}
		job.Spec.MinAvailable = 3 // below the sum of 4: any three pods will do
		group = builder.PodGroup(job, priority, builder.FromTemplate)
		dependencies.HoldBack(group, job, HeldBack(job, nil))
		if group.Spec.MinMember != 3 {
			t.Errorf("minMember is %d, all three pods of task a can be had", group.Spec.MinMember)
		}
		group = builder.PodGroup(job, priority, builder.FromTemplate)
		dependencies.HoldBack(group, job, make([]string, 2))
		if group.Spec.MinMember != 3 || group.Spec.MinTaskMember["b"] != 2 {
			t.Errorf("nothing is held back, yet the PodGroup is %+v", group.Spec)
		}
	})
	t.Run("are named by a pending job", func(t *testing.T) {
		job := jobOf(task("a", 1, ""), dependingOn(task("b", 1, ""), "", "a"))
		status := Observe(job, podsOf(job, 0, pending), groupIn("Inqueue", ""), Trouble{}, noon)
		if status.State.Reason != ReasonWaitsForTask || status.State.Message != "task b waits for task a, of which 0 of 1 pods are ready" {
			t.Errorf("the state is %+v", status.State)
		}
		if !slices.Equal(HeldBack(job, podsOf(job, 0, running)), []string{"", ""}) {
			t.Error("task b waits on")
		}
	})
	t.Run("fail the job if those have ended", func(t *testing.T) {
		job := jobOf(task("a", 2, ""), dependingOn(task("b", 1, ""), "", "a"))
		job.Spec.MinAvailable = 3
		for _, test := range []struct {
			name string
			pods []*corev1.Pod
			want string
		}{
			{"all have ended, and not well enough", podsOf(job, 0, failed, succeeded), "task b waits for task a, of which 1 of 2 pods are ready"},
			{"one still runs", podsOf(job, 0, failed, running), ""},
			{"one is missing, and will be made", podsOf(job, 0, failed), ""},
			{"none was made yet", nil, ""},
			{"what waited goes on", podsOf(job, 0, succeeded, succeeded), ""},
		} {
			for _, phase := range []batch.JobPhase{batch.Pending, batch.Running} {
				job.Status.State.Phase = phase
				state := Observe(job, test.pods, nil, Trouble{}, noon).State
				if isDead := state.Phase == batch.Failed && state.Reason == ReasonDependencyFailed && state.Message == test.want; isDead != (test.want != "") {
					t.Errorf("%s, %s: the Job is %s (%s: %s)", test.name, phase, state.Phase, state.Reason, state.Message)
				}
			}
		}
	})
}
