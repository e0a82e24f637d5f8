package cdp_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/plugins/cdp"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// Sessions of the test world are an hour after everything was made.
const hour = time.Hour

// scheduled gives the pod its node some time after it was made.
func scheduled(after time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(fixture.Birth.Add(after))})
	}
}

func started(after time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		when := metav1.NewTime(fixture.Birth.Add(after))
		p.Status.StartTime = &when
	}
}

func bound(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }

func TestAPodStaysUntilItsCoolDownIsOver(t *testing.T) {
	const key, cooling = schedulingv1beta1.CooldownTimeKey, "cdp (their cool-down is not over)"
	noted := func(value string) func(*corev1.Pod) { return fixture.Annotated(key, value) }
	labelled := func(value string) func(*corev1.Pod) { return fixture.Labelled(key, value) }
	type options = []func(*corev1.Pod)
	for name, test := range map[string]struct {
		options options
		want    string
	}{
		"nothing said":                           {options{scheduled(hour)}, "yes"},
		"not over":                               {options{scheduled(hour / 2), noted("31m")}, cooling},
		"over just now":                          {options{scheduled(hour / 2), noted("30m")}, "yes"},
		"over for long":                          {options{scheduled(0), noted("1s")}, "yes"},
		"by label":                               {options{scheduled(hour / 2), labelled("31m")}, cooling},
		"the annotation counts before the label": {options{scheduled(hour / 2), labelled("31m"), noted("1m")}, "yes"},
		"unreadable":                             {options{scheduled(hour), noted("soon")}, "yes"},
		"a number without a unit":                {options{scheduled(hour), noted("600")}, "yes"},
		"empty":                                  {options{scheduled(hour), noted("")}, "yes"},
		"less than nothing":                      {options{scheduled(hour), noted("-5m")}, "yes"},
		"longer than there is time":              {options{scheduled(hour), noted("2562047h")}, cooling},
		"bound and not running yet":              {options{scheduled(hour), noted("1m"), bound}, cooling},
		"counted from its node, not its creation": {options{scheduled(hour), noted("59m")}, cooling},
		"with no word on when it got its node":    {options{started(hour / 2), noted("31m")}, cooling},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, cdp.Factory(), "").Set(fixture.Queue("q"), fixture.Node("n", "cpu=9"), fixture.Group("g", "q", 1),
				fixture.Group("preemptor", "q", 1), fixture.Pod("t", fixture.In("preemptor")),
				fixture.Pod("other", fixture.In("g"), fixture.On("n")),
				fixture.Pod("v", append(options{fixture.In("g"), fixture.On("n")}, test.options...)...))
			s := w.Open()
			for _, reclaim := range []bool{false, true} {
				for _, victims := range []string{"v", "other v"} {
					got := w.Vote(harness.Question{Session: s, Reclaim: reclaim, Preemptor: "preemptor", For: "t", Victims: victims})
					if got != test.want {
						t.Errorf("%s, for another queue %t: %q, want %q", victims, reclaim, got, test.want)
					}
				}
			}
		})
	}
}
