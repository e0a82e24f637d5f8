package tdm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/tdm"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// zones is a model with the plugin and a queue.
func zones(tb testing.TB, arguments string, objects ...runtime.Object) *harness.Model {
	tb.Helper()
	return harness.ForPlugin(tb, tdm.Factory(), arguments).Set(objects).Set(fixture.Queue("q"))
}

func clock(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-03-04 "+text)
	if err != nil {
		panic(err)
	}
	return t
}

func inZone(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[schedulingv1beta1.RevocableZoneKey] = zone }
}

func zoned(value string) func(*corev1.Pod) {
	return fixture.Annotated(schedulingv1beta1.RevocableZoneKey, value)
}
func marked(value string) func(*corev1.Pod) {
	return fixture.Annotated(schedulingv1beta1.PreemptableKey, value)
}

func noted(key, value string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Annotations[key] = value }
}

const (
	minAvailable   = schedulingv1beta1.JDBMinAvailableKey
	maxUnavailable = schedulingv1beta1.JDBMaxUnavailableKey
	preemptable    = schedulingv1beta1.PreemptableKey
)

func TestRevocableNodesTakePodsAtTheirHours(t *testing.T) {
	const closed, unknown, others = "node(s) were in a revocable zone that is closed", "node(s) were in a revocable zone that is not configured",
		"node(s) were in a revocable zone, which the pod may not use"
	const day, night, always = "day", "night", "always"
	for name, test := range map[string]struct {
		zone, at string
		option   func(*corev1.Pod)
		refusal  string
		score    int64
	}{
		"no zone":                              {"", "12:00:00", zoned("*"), "", 0},
		"open":                                 {day, "12:00:00", zoned("*"), "", 100},
		"not open yet":                         {day, "08:59:59", zoned("*"), closed, 0},
		"open just now":                        {day, "09:00:00", zoned("*"), "", 100},
		"open for a moment":                    {day, "17:29:59", zoned("*"), "", 100},
		"closed just now":                      {day, "17:30:00", zoned("*"), closed, 0},
		"past midnight, before it":             {night, "23:00:00", zoned("*"), "", 100},
		"past midnight, after it":              {night, "02:00:00", zoned("*"), "", 100},
		"past midnight, in the morning":        {night, "06:00:00", zoned("*"), closed, 0},
		"always":                               {always, "03:33:33", zoned("*"), "", 100},
		"of no argument":                       {"other", "12:00:00", zoned("*"), unknown, 0},
		"a pod that says nothing":              {day, "12:00:00", fixture.Annotated("x", "y"), others, 0},
		"a pod of one zone only":               {day, "12:00:00", zoned("day"), others, 0},
		"a pod that may be evicted":            {day, "12:00:00", marked("true"), "", 100},
		"a pod that may not":                   {day, "12:00:00", marked("false"), others, 0},
		"a pod whose mark cannot be read":      {day, "12:00:00", marked("yes please"), others, 0},
		"a pod that may be evicted, elsewhere": {day, "12:00:00", func(p *corev1.Pod) { marked("true")(p); zoned("night")(p) }, others, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := zones(t, "tdm.revocable-zone.day: 09:00-17:30\ntdm.revocable-zone.night: 22:00-06:00\ntdm.revocable-zone.always: 12:00-12:00",
				fixture.Node("n", "cpu=9", inZone(test.zone)), fixture.Group("g", "q", 1), fixture.Pod("p", fixture.In("g"), test.option))
			s.OpenAt(clock(test.at))
			n, class := s.Node("n"), s.TaskNamed("p").Class
			if diff := cmp.Diff(test.refusal, s.Policy.Filters[0].RefuseNode(class, n)); diff != "" {
				t.Error(diff)
			}
			if got := s.Policy.Scorers[0].ScoreNode(class, n); got != test.score*framework.Point {
				t.Errorf("the score is %d", got)
			}
		})
	}
}

func TestTheHoursAreThoseOfTheSchedulersClock(t *testing.T) {
	s := zones(t, "tdm.revocable-zone.day: 09:00-17:30", fixture.Node("n", "cpu=9", inZone("day")), fixture.Group("g", "q", 1),
		fixture.Pod("p", fixture.In("g"), zoned("*")))
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for zone, want := range map[string]bool{"Atlantic/Reykjavik": true, "Asia/Tokyo": false} {
		offset := map[string]int{"Atlantic/Reykjavik": 0, "Asia/Tokyo": 9 * 3600}[zone]
		s.OpenAt(noon.In(time.FixedZone(zone, offset)))
		if takes := s.Policy.Filters[0].RefuseNode(s.TaskNamed("p").Class, s.Node("n")) == ""; takes != want {
			t.Errorf("at noon UTC in %s the node takes pods: %t", zone, takes)
		}
	}
}

func TestWhatIsKnownOfANodeDoesNotOutliveItsHours(t *testing.T) {
	s := zones(t, "tdm.revocable-zone.day: 09:00-17:30", fixture.Node("n", "cpu=9", inZone("day")), fixture.Group("g", "q", 1),
		fixture.Pod("plain", fixture.In("g")), fixture.Pod("p", fixture.In("g"), zoned("*")))
	engine := s.Placing().Engine
	for _, at := range []string{"08:00:00", "08:59:59", "09:00:00", "12:00:00", "17:29:59", "17:30:00", "18:00:00"} {
		s.OpenAt(clock(at))
		takes := at >= "09:00:00" && at < "17:30:00"
		if got := engine.Best(s.TaskNamed("p")) != nil; got != takes {
			t.Errorf("at %s the node takes the pod: %t", at, got)
		}
		if engine.Best(s.TaskNamed("plain")) != nil {
			t.Errorf("at %s the node takes a pod of the same shape that may not use it", at)
		}
	}
}

func TestHoursThatCannotBeReadAreRefused(t *testing.T) {
	for _, argument := range []string{"tdm.revocable-zone.z: soon", "tdm.revocable-zone.z: 09:00", "tdm.revocable-zone.z: 09:00-25:00",
		"tdm.revocable-zone.z: 09:00-12:00-13:00", "tdm.revocable-zone.z: 9-12", "tdm.evict.period: 0s", "tdm.evict.period: often"} {
		if _, err := conf.ParseArguments([]byte(argument), tdm.Factory().Spec); err == nil {
			t.Errorf("%s is accepted", argument)
		} else if !strings.Contains(err.Error(), strings.Split(argument, ":")[0]) {
			t.Errorf("%s: the error does not name the argument: %v", argument, err)
		}
	}
	empty, err := conf.ParseArguments([]byte(`tdm.revocable-zone.z: ""`), tdm.Factory().Spec)
	if err == nil {
		_, err = tdm.Factory().New(conf.Switches{}, empty)
	}
	if err == nil || !strings.Contains(err.Error(), "tdm.revocable-zone.z") {
		t.Errorf("hours that are empty: %v", err)
	}
}

func TestWhatMayBeEvictedPreemptsNothing(t *testing.T) {
	const mayNot = "tdm (the pod that waits may be evicted itself, or use revocable nodes)"
	w := harness.ForPlugin(t, tdm.Factory(), "tdm.revocable-zone.z: 00:00-02:00").Set(fixture.Queue("q"), fixture.Node("n", "cpu=9"), fixture.Node("r", "cpu=9", inZone("z")),
		fixture.Group("plain", "q", 1), fixture.Pod("plain", fixture.In("plain")),
		fixture.Group("marked", "q", 1, noted(preemptable, "true")), fixture.Pod("by-group", fixture.In("marked")),
		fixture.Pod("not-itself", fixture.In("marked"), marked("false")), fixture.Pod("by-itself", fixture.In("plain"), marked("true")),
		fixture.Pod("zoned", fixture.In("plain"), zoned("*")),
		fixture.Group("g", "q", 1), fixture.Pod("v", fixture.In("g"), fixture.On("n")), fixture.Pod("stray", fixture.In("g"), fixture.On("r")))
	s := w.Open()
	for _, q := range []struct{ preemptor, task, victims, want string }{
		{"plain", "plain", "v", "yes"},
		{"plain", "plain", "stray", "tdm (they stand on revocable nodes)"},
		{"plain", "plain", "v stray", "yes"},
		{"plain", "", "v", "yes"},
		{"plain", "by-itself", "v", mayNot},
		{"plain", "zoned", "v", mayNot},
		{"marked", "by-group", "v", mayNot},
		{"marked", "not-itself", "v", "yes"},
		{"marked", "", "v", mayNot},
	} {
		if got := w.Vote(harness.Question{Session: s, Preemptor: q.preemptor, For: q.task, Victims: q.victims}); got != q.want {
			t.Errorf("%s %s asks for %s: %q, want %q", q.preemptor, q.task, q.victims, got, q.want)
		}
		if got := w.Vote(harness.Question{Session: s, Reclaim: true, Preemptor: q.preemptor, For: q.task, Victims: q.victims}); got != "" {
			t.Errorf("for another queue it says %q", got)
		}
	}
	for job, want := range map[string]bool{"plain": true, "marked": false, "g": false} {
		if got := s.IsStarving(w.JobNamed(job)); got != want {
			t.Errorf("job %s is starving: %t", job, got)
		}
	}
	if a, b := w.JobNamed("plain"), w.JobNamed("marked"); s.CompareJobs(a, b) >= 0 || s.CompareJobs(b, a) <= 0 {
		t.Error("a job that may be evicted is not behind one that may not")
	}
}

func TestTheSumOfAPlanStaysWithinTheBudget(t *testing.T) {
	const spent = "tdm (the disruption budget of their job is spent)"
	budgets := map[string][2]string{"two-missing": {maxUnavailable, "2"}, "half-missing": {maxUnavailable, "50%"}, "two-there": {minAvailable, "2"}, "unreadable": {maxUnavailable, "some"}, "free": {"x", "y"}}
	w := harness.ForPlugin(t, tdm.Factory(), "").Set(fixture.Queue("q"), fixture.Node("n", "cpu=99"), fixture.Group("preemptor", "q", 1), fixture.Pod("t", fixture.In("preemptor")))
	for job, budget := range budgets {
		w.Set(fixture.Group(job, "q", 1, noted(budget[0], budget[1])))
		for i := range 4 {
			w.Set(fixture.Pod(fmt.Sprintf("%s-%d", job, i), fixture.In(job), fixture.On("n")))
		}
	}
	s := w.Open()
	for job, want := range map[string]int{"two-missing": 2, "half-missing": 2, "two-there": 2, "unreadable": 0, "free": 4} {
		x := s.Begin()
		for i := range 4 {
			victim := fmt.Sprintf("%s-%d", job, i)
			got, expected := w.Vote(harness.Question{Session: s, Preemptor: "preemptor", For: "t", Victims: victim}), "yes"
			if i >= want {
				expected = spent
			}
			if got != expected {
				t.Errorf("%s, with %d gone: %q, want %q", job, i, got, expected)
			}
			if got == "yes" {
				w.EvictPods(x, victim)
			}
		}
		x.Undo()
		all := strings.Join([]string{job + "-0", job + "-1", job + "-2"}, " ")
		if got := w.Vote(harness.Question{Session: s, Preemptor: "preemptor", For: "t", Victims: all}); (got == "yes") != (want >= 3) {
			t.Errorf("%s, three together: %q", job, got)
		}
	}
}
