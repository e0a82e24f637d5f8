package guarantees

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// runs is a job of one pod that runs on a node since some seconds.
func runs(name, queue, node, asks string, second int, options ...func(*corev1.Pod)) []runtime.Object {
	start := metav1.NewTime(fixture.Birth.Add(time.Duration(second) * time.Second))
	options = append(options, fixture.In(name), fixture.On(node), fixture.Asks(asks), func(p *corev1.Pod) { p.Status.StartTime = &start })
	return []runtime.Object{fixture.Group(name, queue, 1), fixture.Pod(name, options...)}
}

// waits is a job of some pods that wait.
func waits(name, queue, asks string, minimum int32, pods ...string) []runtime.Object {
	objects := []runtime.Object{fixture.Group(name, queue, minimum)}
	for i, pod := range pods {
		objects = append(objects, fixture.Pod(pod, fixture.In(name), fixture.As("worker", i), fixture.Asks(asks)))
	}
	return objects
}

func TestWhoLeaves(t *testing.T) {
	optedOut := fixture.Annotated(yunikorn.AllowPreemptionKey, "false")
	for name, test := range map[string]struct {
		things []any
		want   string // the pods that leave, by name
	}{
		"under a ceiling one victim elsewhere rather than two here": {[]any{fixture.Node("n1", "cpu=9"), fixture.Node("n2", "cpu=4"),
			fixture.Queue("p", fixture.Capped("cpu=8")), fixture.Queue("q1", fixture.Below("p")), fixture.Queue("q2", fixture.Below("p"), fixture.Guaranteed("cpu=4")),
			runs("a", "q1", "n1", "cpu=2", 3), runs("b", "q1", "n1", "cpu=2", 2), runs("c", "q1", "n2", "cpu=4", 1), waits("x", "q2", "cpu=4", 1, "x0")}, "c"},
		"under a ceiling the fewest that have opted out": {[]any{fixture.Node("n1", "cpu=9"), fixture.Node("n2", "cpu=4"),
			fixture.Queue("p", fixture.Capped("cpu=8")), fixture.Queue("q1", fixture.Below("p")), fixture.Queue("q2", fixture.Below("p"), fixture.Guaranteed("cpu=4")),
			runs("a", "q1", "n1", "cpu=2", 3, optedOut), runs("b", "q1", "n1", "cpu=2", 2, optedOut), runs("c", "q1", "n2", "cpu=4", 1, optedOut),
			waits("x", "q2", "cpu=4", 1, "x0")}, "c"},
		"beyond its minimum each pod asks by itself": {[]any{fixture.Node("n1", "cpu=8"), fixture.Queue("q1"), fixture.Queue("q2", fixture.Guaranteed("cpu=3")),
			runs("a", "q1", "n1", "cpu=2", 1), runs("b", "q1", "n1", "cpu=2", 2), runs("c", "q1", "n1", "cpu=3", 3),
			fixture.Group("x", "q2", 1), fixture.Pod("x0", fixture.In("x"), fixture.On("n1"), fixture.Asks("cpu=1")),
			fixture.Pod("x1", fixture.In("x"), fixture.Asks("cpu=2")), fixture.Pod("x2", fixture.In("x"), fixture.Asks("cpu=2"))}, "c"},
		"a gang asks for all its pods": {[]any{fixture.Node("n1", "cpu=6"), fixture.Queue("q1"), fixture.Queue("q2", fixture.Guaranteed("cpu=5")),
			runs("a", "q1", "n1", "cpu=3", 1), runs("b", "q1", "n1", "cpu=3", 2), waits("x", "q2", "cpu=3", 2, "x0", "x1")}, ""},
		"no pod of the same application": {[]any{fixture.Node("n1", "cpu=4"), fixture.Queue("q1"), fixture.Queue("q2", fixture.Guaranteed("cpu=2")),
			runs("a", "q1", "n1", "cpu=2", 1), runs("b", "q1", "n1", "cpu=2", 2, fixture.Labelled(yunikorn.AppIDKey, "app")),
			fixture.Group("x", "q2", 1), fixture.Pod("x0", fixture.In("x"), fixture.Asks("cpu=2"), fixture.Labelled(yunikorn.AppIDKey, "app"))}, "a"},
		"a common queue keeps what it has of its guarantee": {[]any{fixture.Node("n1", "cpu=4"), fixture.Queue("p", fixture.Guaranteed("cpu=8")),
			fixture.Queue("q1", fixture.Below("p")), fixture.Queue("q2", fixture.Below("p"), fixture.Guaranteed("cpu=4")),
			runs("a", "q1", "n1", "cpu=4", 1), waits("x", "q2", "cpu=2", 2, "x0", "x1")}, "a"},
		"the priority in the middle of the order": {[]any{fixture.Node("n1", "cpu=4"), fixture.PriorityClass("low", -5), fixture.Queue("q1"),
			fixture.Queue("q2", fixture.Guaranteed("cpu=2")), runs("a", "q1", "n1", "cpu=2", 1), runs("b", "q1", "n1", "cpu=2", 2, optedOut),
			waits("x", "q2", "cpu=2", 1, "x0")}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := loop.New(t, configuration)
			for _, things := range test.things {
				w.Set(things)
			}
			var names []string
			for _, plan := range w.CycleAfter(time.Hour).Plans {
				for _, e := range plan.Evictions {
					names = append(names, e.Pod.Name)
					if e.Rule != "G4" || !strings.HasPrefix(e.Message, "by rule G4 job ") {
						t.Errorf("%s leaves by %s: %s", e.Pod.Name, e.Rule, e.Message)
					}
				}
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("%q leave, want %q", got, test.want)
			}
		})
	}
}

func TestWhyAJobWaits(t *testing.T) {
	w := loop.New(t, configuration).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("q1"), fixture.Queue("q2", fixture.Guaranteed("cpu=2")))
	early := waits("early", "q2", "cpu=2", 1, "early0")
	early[1].(*corev1.Pod).CreationTimestamp = metav1.NewTime(w.Now)
	w.Set(runs("a", "q1", "n1", "cpu=4", 1)).Set(waits("large", "q2", "cpu=3", 1, "large0")).Set(waits("none", "q1", "cpu=1", 1, "none0")).Set(early)
	w.Cycle()
	for job, want := range map[string]string{
		"large": "NotGuaranteed: no pods of other queues are evicted for the job; queue q2 has what it is guaranteed: cpu holds 0 of 2, asks for 3",
		"none":  "NotGuaranteed: no pods of other queues are evicted for the job; no queue from q1 up to root is guaranteed what is asked for",
		"early": "Delayed: the job has not waited long enough to take room from others; may take room from others from ",
	} {
		v := w.JobNamed(job).Verdict
		if got := string(v.Code) + ": " + v.Sentence(); !strings.HasPrefix(got, want) {
			t.Errorf("job %s: %s, want %s", job, got, want)
		}
	}
	if wake := w.Result.Wake; wake.IsZero() || !wake.Equal(w.JobNamed("early").Verdict.RetryAt) {
		t.Errorf("the scheduler wakes at %s, and the job may take room from %s on", wake, w.JobNamed("early").Verdict.RetryAt)
	}
}
