package forecast_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/explain/forecast"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// busy is a node of one CPU on which a job has just started, and another job that waits for it.
func busy(t *testing.T, shape func(l *loop.Loop, g *scheduling.PodGroup, pod *corev1.Pod)) *loop.Loop {
	l := loop.New(t, "").Set(fixture.Node("n", "cpu=1"))
	group, pod := fixture.Group("runs", "default", 1), fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=1"), fixture.On("n"))
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: l.Now}
	if shape != nil {
		shape(l, group, pod)
	}
	l.Set(group, pod, fixture.Group("waits", "default", 1), fixture.Pod("waits-0", fixture.In("waits"), fixture.Asks("cpu=1")))
	l.Cycle()
	return l
}

func ask(t *testing.T, l *loop.Loop, name string) *forecast.ETA {
	t.Helper()
	eta, err := l.Scheduler.ETA(l.Now, cluster.GroupID(fixture.Key(name)))
	if err != nil {
		t.Fatal(err)
	}
	return eta
}

func TestRanges(t *testing.T) {
	t.Run("an estimate may be wrong by half", func(t *testing.T) {
		l := busy(t, func(_ *loop.Loop, g *scheduling.PodGroup, _ *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, scheduling.RunningEstimateKey, "1h")
		})
		expectWithin(t, l, 28*time.Minute, 96*time.Minute, forecast.Declared)
	})
	t.Run("a job may end at any time before its deadline", func(t *testing.T) {
		l := busy(t, func(_ *loop.Loop, _ *scheduling.PodGroup, pod *corev1.Pod) {
			seconds := int64(3600)
			pod.Spec.ActiveDeadlineSeconds = &seconds
		})
		expectWithin(t, l, 0, 65*time.Minute, forecast.Declared)
	})
	t.Run("the deadline of a Job counts from its creation", func(t *testing.T) {
		l := busy(t, func(l *loop.Loop, g *scheduling.PodGroup, _ *corev1.Pod) {
			g.CreationTimestamp = metav1.NewTime(l.Now.Add(-30 * time.Minute))
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, scheduling.ActiveDeadlineKey, "1h")
		})
		l.Now = l.Now.Add(time.Second)
		expectWithin(t, l, 0, 35*time.Minute, forecast.Declared)
	})
	t.Run("jobs of the same name ran before", func(t *testing.T) {
		l := loop.New(t, "").Set(fixture.Node("n", "cpu=1"))
		for _, name := range []string{"train-1", "train-2", "train-3", "train-4"} {
			l.Set(fixture.Group(name, "default", 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1")))
			l.Cycle()
			l.Now = l.Now.Add(20 * time.Minute)
			ended := fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1"), fixture.On("n"))
			ended.Status.Phase = corev1.PodSucceeded
			l.Set(ended)
			l.Cycle()
		}
		for _, name := range []string{"train-5", "waits"} {
			l.Set(fixture.Group(name, "default", 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1")))
			l.Cycle()
		}
		expectWithin(t, l, 10*time.Minute, 40*time.Minute, forecast.Measured)
	})
	t.Run("a gang of which only some pods are there again", func(t *testing.T) {
		l := loop.New(t, loop.Evicting("predicates", "capacity", "nodeorder")).Set(fixture.Node("n", "cpu=4"))
		running := fixture.Group("runs", "default", 1, fixture.Wanting("cpu=4"))
		metav1.SetMetaDataAnnotation(&running.ObjectMeta, scheduling.RunningEstimateKey, "1h")
		pod := fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=4"), fixture.On("n"))
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &metav1.Time{Time: l.Now}
		l.Set(running, pod, fixture.Group("waits", "default", 3, fixture.PendingAdmission, fixture.Wanting("cpu=3")),
			fixture.Pod("waits-0", fixture.In("waits"), fixture.Asks("cpu=1")))
		l.Cycle()
		if eta := ask(t, l, "waits"); eta == nil || eta.Earliest == nil || eta.Basis != forecast.Declared {
			t.Errorf("the answer is %+v", eta)
		}
	})
	t.Run("a job that has room starts at once", func(t *testing.T) {
		l := loop.New(t, "").Set(fixture.Node("n", "cpu=1"), fixture.Group("waits", "default", 1),
			fixture.Pod("waits-0", fixture.In("waits"), fixture.Asks("cpu=2")))
		l.Cycle()
		l.Set(fixture.Node("large", "cpu=4"))
		expectWithin(t, l, 0, 10*time.Second, forecast.Room)
	})
}

// expectWithin expects a range for the job that waits that is inside of some times from now.
func expectWithin(t *testing.T, l *loop.Loop, least, most time.Duration, basis forecast.Kind) {
	t.Helper()
	eta := ask(t, l, "waits")
	if eta == nil || eta.Earliest == nil {
		t.Fatalf("there is no range: %+v", eta)
	}
	if first, last := eta.Earliest.Sub(l.Now), eta.Latest.Sub(l.Now); first < least || last > most || last < first || eta.Basis != basis || eta.Assumes == "" {
		t.Errorf("it starts in %s to %s by %s, want within %s to %s by %s", first, last, eta.Basis, least, most, basis)
	}
}

func TestWhereNoStartIsKnown(t *testing.T) {
	t.Run("jobs in the way say nothing", func(t *testing.T) {
		eta := ask(t, busy(t, nil), "waits")
		if eta == nil || !strings.Contains(eta.UnknownBecause, "1 job that holds room or comes before it does not say how long it runs") ||
			!strings.Contains(eta.UnknownBecause, "0 jobs of its queue that had to wait have started") {
			t.Errorf("the answer is %+v", eta)
		}
	})
	t.Run("a job without pods behind one that says nothing", func(t *testing.T) {
		l := loop.New(t, loop.Evicting("predicates", "capacity", "nodeorder")).Set(fixture.Node("n", "cpu=4"))
		l.Set(fixture.Group("runs", "default", 1, fixture.Wanting("cpu=4")), fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=4")))
		l.Cycle()
		l.StartBound()
		l.Set(fixture.Group("waits", "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu=4"), fixture.NeedingOf("worker", 1)))
		l.Cycle()
		eta := ask(t, l, "waits")
		if eta == nil || !strings.Contains(eta.UnknownBecause, "1 job that holds room or comes before it does not say how long it runs") {
			t.Errorf("the answer is %+v", eta)
		}
	})
	t.Run("a job that can never start says so", func(t *testing.T) {
		l := loop.New(t, "").Set(fixture.Node("n", "cpu=1"), fixture.Group("waits", "default", 1),
			fixture.Pod("waits-0", fixture.In("waits"), fixture.Asks("cpu=2")))
		l.Cycle()
		if eta := ask(t, l, "waits"); eta == nil || !eta.Never || eta.Earliest != nil || !strings.HasPrefix(eta.Message, "never, as things are: pod") {
			t.Errorf("the answer is %+v", eta)
		}
	})
	t.Run("a closed queue", func(t *testing.T) {
		l := busy(t, nil).Set(fixture.Queue("default", fixture.Closed))
		l.Cycle()
		if eta := ask(t, l, "waits"); eta == nil || eta.UnknownBecause != "its queue is closed" {
			t.Errorf("the answer is %+v", eta)
		}
	})
	t.Run("a job that runs", func(t *testing.T) {
		if eta := ask(t, busy(t, nil), "runs"); eta != nil {
			t.Errorf("the answer is %+v, want none", eta)
		}
	})
}
