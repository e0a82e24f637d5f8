package history_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/journal/history"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

func TestBaseName(t *testing.T) {
	for name, want := range map[string]string{
		"train": "train", "train-7": "train", "nightly-28391234": "nightly", "nightly-28391234-x7k2p": "nightly", "a-x7k2p": "a",
		"my-nodes": "my-nodes", "7": "7", "-7": "-7", "train-v2": "train-v2", "etl-2026-11": "etl",
	} {
		if got := history.BaseName(name); got != want {
			t.Errorf("the base of %s is %s, want %s", name, got, want)
		}
	}
}

// followed is a loop of which a history is kept.
type followed struct {
	*loop.Loop
	history *history.History
}

func follow(t *testing.T) *followed {
	return &followed{Loop: loop.New(t, "").Set(fixture.Node("n", "cpu=1")), history: history.New()}
}

// note shows the history what has become of some jobs.
func (s *followed) note(names ...string) {
	var touched []*cluster.Job
	for _, name := range names {
		touched = append(touched, s.Scheduler.Cluster().Job(cluster.GroupID(fixture.Key(name))))
	}
	s.history.Cycle(s.Now, s.Scheduler.Cluster(), &decision.Decisions{}, touched)
}

// run runs a job of one pod for some time, which then ends in a phase.
func (s *followed) run(name string, took time.Duration, phase corev1.PodPhase) {
	s.Set(fixture.Group(name, "default", 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1")))
	s.Cycle()
	s.note(name)
	s.Now = s.Now.Add(took)
	ended := fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1"), fixture.On("n"))
	ended.Status.Phase = phase
	s.Set(ended)
	s.note(name)
}

func TestRunTimes(t *testing.T) {
	s := follow(t)
	s.run("train-1", 20*time.Minute, corev1.PodSucceeded)
	s.run("train-2", 10*time.Minute, corev1.PodSucceeded)
	s.run("train-3", time.Minute, corev1.PodFailed)
	s.run("other", 30*time.Minute, corev1.PodSucceeded)
	of := func(name string) string {
		return fmt.Sprint(s.history.OfName(s.Scheduler.Cluster().Job(cluster.GroupID(fixture.Key(name)))))
	}
	if got := of("train-3"); got != "[10m0s 20m0s]" {
		t.Errorf("jobs of the name ran %s", got)
	}
	if got := fmt.Sprint(s.history.OfQueue("default")); got != "[10m0s 20m0s 30m0s]" {
		t.Errorf("jobs of the queue ran %s", got)
	}
	if got := s.history.Starts("default"); len(got) != 0 {
		t.Errorf("no job had to wait, and starts are %v", got)
	}
}

func TestWhatIsKeptOfANameIsBounded(t *testing.T) {
	s := follow(t)
	for i := range history.PerName + 3 {
		s.run(fmt.Sprintf("train-%d", i), time.Duration(i+1)*time.Minute, corev1.PodSucceeded)
	}
	got := s.history.OfName(s.Scheduler.Cluster().Job(cluster.GroupID(fixture.Key("train-0"))))
	if len(got) != history.PerName || got[0] != 4*time.Minute {
		t.Errorf("%d run times are kept, the least is %s", len(got), got[0])
	}
}

func TestJobsThatAreDeletedWhileTheyRunAreDropped(t *testing.T) {
	s := follow(t)
	for i := range 3 * history.SweepSlack {
		name := fmt.Sprint("job-", i)
		s.run(name, time.Minute, corev1.PodRunning)
		s.Remove(fixture.Pod(name+"-0"), fixture.Group(name, "default", 1))
		s.Cycle()
		s.note()
		if most := 2*s.Scheduler.Cluster().JobCount() + history.SweepSlack; s.history.Running() > most {
			t.Fatalf("%d jobs are kept as running, and all are deleted: at most %d may be", s.history.Running(), most)
		}
	}
}

func TestAStartCountsIfTheJobHadToWait(t *testing.T) {
	s := follow(t)
	s.run("first", time.Minute, corev1.PodRunning)
	s.Set(fixture.Group("second", "default", 1), fixture.Pod("second-0", fixture.In("second"), fixture.Asks("cpu=1")))
	s.Cycle()
	s.note("first", "second")
	if got := s.history.Starts("default"); len(got) != 0 {
		t.Errorf("nothing has started that waited, and starts are %v", got)
	}
	s.Remove(fixture.Pod("first-0"), fixture.Group("first", "default", 1))
	s.Cycle()
	s.note("second")
	if got := s.history.Starts("default"); len(got) != 1 || !got[0].Equal(s.Now) {
		t.Errorf("starts are %v, want one at %s", got, s.Now)
	}
	if at := s.history.Started(s.Scheduler.Cluster().Job(cluster.GroupID(fixture.Key("second")))); !at.Equal(s.Now) {
		t.Errorf("it has started at %s, want %s", at, s.Now)
	}
}

func TestRunTimesFromBeforeTheProcess(t *testing.T) {
	s := follow(t)
	ended := func(name string, start, took time.Duration, phase corev1.PodPhase) {
		s.Set(fixture.Group(name, "default", 2))
		for i := range 2 {
			pod := fixture.Pod(fmt.Sprint(name, "-", i), fixture.In(name), fixture.On("n"))
			began, end := metav1.NewTime(fixture.Birth.Add(start)), metav1.NewTime(fixture.Birth.Add(start+took-time.Duration(i)*time.Second))
			pod.Status.Phase, pod.Status.StartTime = phase, &began
			if took > 0 {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name,
					State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: end}}}}
			}
			s.Set(pod)
		}
	}
	ended("train-1", time.Hour, 20*time.Minute, corev1.PodSucceeded)
	ended("train-2", 0, 10*time.Minute, corev1.PodSucceeded)
	ended("train-3", 0, time.Minute, corev1.PodFailed)
	ended("train-4", 0, 0, corev1.PodSucceeded)
	ended("train-5", 0, 5*time.Minute, corev1.PodRunning)
	s.note("train-1", "train-2", "train-3", "train-4", "train-5")
	if got := fmt.Sprint(s.history.OfName(s.Scheduler.Cluster().Job(cluster.GroupID(fixture.Key("train-1"))))); got != "[10m0s 20m0s]" {
		t.Errorf("jobs of the name ran %s", got)
	}
	s.note("train-1", "train-2")
	if got := s.history.OfQueue("default"); len(got) != 2 {
		t.Errorf("after a second cycle the queue has the run times %v", got)
	}
}
