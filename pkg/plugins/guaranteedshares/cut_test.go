package guaranteedshares

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func ofDaemonSet(p *corev1.Pod) {
	isTrue := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: &isTrue}}
}

// startedAt is a job of one pod that runs since so many seconds after the first.
func startedAt(name, queue, asks string, second int, options ...func(*corev1.Pod)) []runtime.Object {
	start := metav1.NewTime(fixture.Birth.Add(time.Duration(second) * time.Second))
	options = append(options, fixture.In(name), fixture.Asks(asks), fixture.On("n1"), func(p *corev1.Pod) { p.Status.StartTime = &start })
	return []runtime.Object{fixture.Group(name, queue, 1), fixture.Pod(name, options...)}
}

func TestWhatIsBeyondACapabilityLeavesAfterItsDelay(t *testing.T) {
	delay := fixture.QueueAnnotated(schedulingv1beta1.QuotaPreemptionDelayKey, "10s")
	off := fixture.QueueAnnotated(schedulingv1beta1.QuotaPreemptionDelayKey, "0")
	for name, test := range map[string]struct {
		things []any
		want   string // the pods, by name
	}{
		"the pod that started last": {[]any{fixture.Queue("q", fixture.Capped("cpu=4"), delay),
			startedAt("a", "q", "cpu=3", 1), startedAt("b", "q", "cpu=3", 2)}, "b"},
		"none that could stay": {[]any{fixture.Queue("q", fixture.Capped("cpu=4"), delay),
			startedAt("a", "q", "cpu=1", 3), startedAt("b", "q", "cpu=4", 2), startedAt("c", "q", "cpu=3", 1)}, "b"},
		"no pod of a DaemonSet": {[]any{fixture.Queue("q", fixture.Capped("cpu=4"), delay),
			startedAt("a", "q", "cpu=3", 1), startedAt("b", "q", "cpu=3", 2, ofDaemonSet)}, "a"},
		"not below a guarantee": {[]any{fixture.Queue("q", fixture.Capped("cpu=2"), delay), fixture.Queue("l", fixture.Below("q"), fixture.Guaranteed("cpu=4")),
			startedAt("a", "l", "cpu=3", 1), startedAt("b", "l", "cpu=1", 2), startedAt("c", "l", "cpu=1", 3)}, "c"},
		"from the highest queue first": {[]any{fixture.Queue("q", fixture.Capped("cpu=4"), delay), fixture.Queue("l", fixture.Below("q"), fixture.Capped("cpu=5")),
			startedAt("a", "l", "cpu=3", 1), startedAt("b", "l", "cpu=3", 2)}, "b"},
		"not where a queue turns it off": {[]any{fixture.Queue("q", delay), fixture.Queue("l", fixture.Below("q"), fixture.Capped("cpu=4"), off),
			startedAt("a", "l", "cpu=3", 1), startedAt("b", "l", "cpu=3", 2)}, ""},
		"nothing of a resource that is not named": {[]any{fixture.Queue("q", fixture.Capped("memory=1Gi"), delay),
			startedAt("a", "q", "cpu=3", 1), startedAt("b", "q", "cpu=3", 2)}, ""},
		"a gang as a whole": {[]any{fixture.Queue("q", fixture.Capped("cpu=4"), delay), startedAt("a", "q", "cpu=3", -9), fixture.Group("g", "q", 2),
			fixture.Pod("g0", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n1")), fixture.Pod("g1", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n1"))}, "g0 g1"},
		"no part of a gang of which a pod is protected": {[]any{fixture.Queue("q", fixture.Capped("cpu=4"), delay), startedAt("a", "q", "cpu=3", -9), fixture.Group("g", "q", 2),
			fixture.Pod("g0", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n1")),
			fixture.Pod("g1", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n1"), fixture.Annotated(schedulingv1beta1.PreemptableKey, "false"))}, "a"},
		"no part of a gang that a budget keeps": {[]any{fixture.Queue("q", fixture.Capped("cpu=4"), delay), startedAt("a", "q", "cpu=3", -9), fixture.Group("g", "q", 2),
			fixture.Budget("b", "x", 1), fixture.Pod("g0", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n1"), fixture.Labelled("app", "x")),
			fixture.Pod("g1", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n1"), fixture.Labelled("app", "x"))}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16"))
			for _, things := range test.things {
				w.Set(things)
			}
			chosen := func(after time.Duration) string {
				var names []string
				for _, c := range w.OpenAt(fixture.Birth.Add(time.Hour + after)).ChooseVictims() {
					names = append(names, c.Task.Pod.Name)
					if c.Rule != "G12" || !strings.Contains(c.Why, "and may hold") {
						t.Errorf("%s leaves by %q: %s", c.Task.Pod.Name, c.Rule, c.Why)
					}
				}
				slices.Sort(names)
				return strings.Join(names, " ")
			}
			for _, early := range []time.Duration{0, 9 * time.Second} {
				if got := chosen(early); got != "" {
					t.Errorf("after %s %s leave", early, got)
				}
			}
			if got := chosen(10 * time.Second); got != test.want {
				t.Errorf("%q leave, want %q", got, test.want)
			}
		})
	}
}
