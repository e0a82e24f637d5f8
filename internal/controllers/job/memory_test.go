package job

import (
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	"hekla.sh/hekla/test/fixture"

	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestAnOlderVersionThanTheOneWrittenIsOutdated(t *testing.T) {
	name := types.NamespacedName{Namespace: "lab", Name: "sim"}
	m := newMemory()
	if m.outdated(name, "u1", "5", start) {
		t.Error("nothing was written, yet version 5 is outdated")
	}
	m.wrote(name, "u1", "10", start)
	for _, test := range []struct {
		uid     types.UID
		version string
		at      time.Time
		want    bool
	}{
		{"u1", "9", start, true},
		{"u1", "10", start, false},
		{"u1", "11", start, false},
		{"u1", "100", start, false},
		{"u1", "9", start.Add(memoryLasts + time.Second), false},
		{"u1", "not a number", start, false},
	} {
		if got := m.outdated(name, test.uid, test.version, test.at); got != test.want {
			t.Errorf("version %s at %s: outdated is %t", test.version, test.at.Sub(start), got)
		}
	}
	if m.outdated(name, "u2", "9", start) {
		t.Error("a new Job under the name inherits the memory of the old one")
	}
}

// awaited are the pods that were made and have not been seen, by name.
func awaited(m *memory, now time.Time) []string {
	unseen, _ := m.unseen(types.NamespacedName{Namespace: "lab", Name: "sim"}, "u1", now)
	return slices.Sorted(maps.Keys(unseen))
}

func TestAPodIsAwaitedAsItWasWritten(t *testing.T) {
	t.Run("a created pod, until it is seen or for too long", func(t *testing.T) {
		name := types.NamespacedName{Namespace: "lab", Name: "sim"}
		m := newMemory()
		for _, pod := range []string{"sim-a-0", "sim-a-1", "sim-a-2", "sim-a-3"} {
			m.create(name, "u1", pod, start)
		}
		m.create(name, "u1", "sim-a-4", start.Add(time.Second))
		m.settle(name, "u1", "sim-a-1", "p1") // before the reply
		m.created(name, "u1", "sim-a-0", "p0")
		m.created(name, "u1", "sim-a-1", "p1")
		m.created(name, "u1", "sim-a-2", "p2")
		m.settle(name, "u1", "sim-a-2", "p2") // after it
		m.refused(name, "u1", "sim-a-3")
		m.settle(name, "u2", "sim-a-0", "p0") // a pod of another Job of the name
		if got, want := awaited(m, start), []string{"sim-a-0", "sim-a-4"}; !slices.Equal(got, want) {
			t.Errorf("awaited are %v, want %v", got, want)
		}
		if _, wait := m.unseen(name, "u1", start); wait != memoryLasts {
			t.Errorf("the first is awaited for %s, want %s", wait, memoryLasts)
		}
		if got := awaited(m, start.Add(memoryLasts)); !slices.Equal(got, []string{"sim-a-4"}) {
			t.Errorf("in the end %v are awaited", got)
		}
		m.forget(name)
		if got := awaited(m, start); len(got) > 0 {
			t.Errorf("of a forgotten Job %v are awaited", got)
		}
	})
	// The events of a pod that is gone may come after another of its name was created. That one is still awaited.
	// Otherwise it would be created again, and count as deleted by a user.
	t.Run("an event of an earlier pod does not settle a later one", func(t *testing.T) {
		name := types.NamespacedName{Namespace: "lab", Name: "sim"}
		m := newMemory()
		m.create(name, "u1", "sim-a-0", start)
		m.settle(name, "u1", "sim-a-0", "old") // before the reply
		m.created(name, "u1", "sim-a-0", "new")
		m.settle(name, "u1", "sim-a-0", "old") // after it
		if got := awaited(m, start); !slices.Equal(got, []string{"sim-a-0"}) {
			t.Errorf("awaited are %v", got)
		}
		m.settle(name, "u1", "sim-a-0", "new")
		if got := awaited(m, start); len(got) > 0 {
			t.Errorf("it was seen, and awaited are %v", got)
		}
	})
	t.Run("an eviction, until it is answered or the pod is back", func(t *testing.T) {
		job := fixture.BatchJob(fixture.BatchTask("a", 2, ""))
		pods := func(second corev1.PodPhase) []*corev1.Pod {
			var pods []*corev1.Pod
			for index, phase := range []corev1.PodPhase{corev1.PodRunning, second} {
				pod := builder.Pod(job, &job.Spec.Tasks[0], index)
				pod.Status.Phase = phase
				pods = append(pods, pod)
			}
			return pods
		}
		r := &Reconciler{memory: newMemory()}
		name := types.NamespacedName{Namespace: "lab", Name: "sim"}
		gone := lifecycle.Eviction(job, 0, 1)
		r.memory.since(name, job.UID, beginning{gone.Event, 0, 1}, start)
		if got := r.memory.since(name, job.UID, beginning{gone.Event, 0, 1}, start.Add(time.Hour)); !got.Equal(start) {
			t.Errorf("it began at %s", got)
		}
		if found := r.lasting(job, pods(corev1.PodPending), nil); len(found) != 1 || found[0].What != gone.What {
			t.Errorf("while the new pod waits, it is %v", found)
		}
		if found := r.lasting(job, pods(corev1.PodRunning), nil); len(found) != 0 {
			t.Errorf("the pod is back, yet there is %v", found)
		}
		if found := r.lasting(job, pods(corev1.PodPending), nil); len(found) != 0 {
			t.Errorf("what is over came back: %v", found)
		}
	})
}

func TestACommandIsFollowedOnceThoughTheCacheShowsItStill(t *testing.T) {
	m := newMemory()
	name := types.NamespacedName{Namespace: "lab", Name: "sim"}
	m.follow(name, "c1")
	if !m.followed(name, "c1") || m.followed(name, "c2") || m.followed(types.NamespacedName{Name: "sim"}, "c1") {
		t.Error("Commands are mixed up")
	}
	m.follow(name, "c2")
	m.keepFollowed(name, sets.New[types.UID]("c1", "c3"))
	if !m.followed(name, "c1") || m.followed(name, "c2") {
		t.Error("what the cache shows is forgotten, or what it does not is remembered")
	}
	m.keepFollowed(name, nil)
	if len(m.commands) > 0 {
		t.Error("Commands that are gone are remembered")
	}
	m.follow(name, "c1")
	m.forget(name)
	if m.followed(name, "c1") {
		t.Error("Commands of a Job that is gone are remembered")
	}
}

func TestEventsOfPodsAreGatheredForLongerTheMoreThereAre(t *testing.T) {
	name := types.NamespacedName{Namespace: "ns", Name: "sim"}
	m := newMemory()
	for _, test := range []struct {
		pods int32
		want time.Duration
	}{{0, 50 * time.Millisecond}, {10, 50500 * time.Microsecond}, {1000, 100 * time.Millisecond}, {10_000, 550 * time.Millisecond},
		{19_000, time.Second}, {1_000_000, time.Second}} {
		m.wants(name, "uid", test.pods)
		if got := settleTime(m.settle(name, "uid", "sim-a-0", "p")); got != test.want {
			t.Errorf("of a Job of %d pods they are gathered for %s, want %s", test.pods, got, test.want)
		}
		// An earlier Job of the same name, whose pods are going, has nothing to do with it.
		if got := m.settle(name, "earlier", "sim-a-0", "p"); got != 0 {
			t.Errorf("a Job of which nothing is known wants %d pods", got)
		}
	}
}

func TestRefusalsInARowAreCountedByPod(t *testing.T) {
	name := types.NamespacedName{Namespace: "lab", Name: "sim"}
	m := newMemory()
	for _, step := range []struct {
		pod  string
		uid  types.UID
		at   time.Duration
		want int
	}{
		{"sim-a-0", "p1", 0, 1}, {"sim-a-0", "p1", time.Second, 1}, {"sim-a-1", "q1", time.Second, 1}, {"sim-a-0", "p2", time.Minute, 2},
		{"sim-a-0", "p2", time.Minute + 2*lifecycle.RefusalsLast, 2}, {"sim-a-0", "p3", 2*time.Minute + 2*lifecycle.RefusalsLast, 1},
	} {
		if got := m.countRefusal(name, "u1", step.pod, step.uid, start.Add(step.at)); got != step.want {
			t.Errorf("pod %s with UID %s after %s: refused %d times in a row, want %d", step.pod, step.uid, step.at, got, step.want)
		}
	}
}
