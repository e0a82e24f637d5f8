package usage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/usage"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// noon is when everything happens unless it is said otherwise.
var noon = fixture.Birth.Add(12 * time.Hour)

// loaded is a model with the plugin, an engine that asks it, and a pod that waits.
func loaded(tb testing.TB, arguments string, objects ...runtime.Object) *harness.Model {
	tb.Helper()
	m := harness.ForPlugin(tb, usage.Factory(), arguments).Placing()
	m.Policy.Configuration.Metrics = map[string]string{"interval": "1m"}
	return m.Set(objects).Set(fixture.Queue("q"), fixture.Group("g", "q", 1), fixture.Pod("waits", fixture.In("g")))
}

// best is the node that the pod that waits would get.
func best(m *harness.Model, session *framework.Session) string {
	if n := session.Placer.Best(m.TaskNamed("waits")); n != nil {
		return n.Name
	}
	return ""
}

func refusal(m *harness.Model, node string) string {
	return m.Policy.Filters[0].RefuseNode(m.TaskNamed("waits").Class, m.NodeNamed(node))
}

func score(m *harness.Model, node string) int64 {
	return m.Policy.Scorers[0].ScoreNode(m.TaskNamed("waits").Class, m.NodeNamed(node))
}

func started(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		start := metav1.NewTime(at)
		p.Status.StartTime = &start
	}
}

func limited(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = fixture.List(text) }
}

func TestANodeAboveItsThresholdTakesNoPods(t *testing.T) {
	const cpu, memory = "node(s) had a CPU load above the threshold of usage", "node(s) had a memory load above the threshold of usage"
	for name, test := range map[string]struct {
		arguments   string
		cpu, memory float64
		after       time.Duration // since it was measured
		want        string
	}{
		"idle":                          {"", 0, 0, 0, ""},
		"at the threshold":              {"", 80, 80, 0, ""},
		"CPU above it":                  {"", 80.01, 0, 0, cpu},
		"memory above it":               {"", 0, 80.01, 0, memory},
		"a threshold of its own":        {"thresholds: {cpu: 50.5}", 51, 0, 0, cpu},
		"and the default for the other": {"thresholds: {cpu: 50.5}", 0, 79, 0, ""},
		"nothing at all may be in use":  {"thresholds: {mem: 0}", 0, 0.01, 0, memory},
		"everything may be in use":      {"thresholds: {cpu: 100, mem: 100}", 100, 100, 0, ""},
		"measured five minutes ago":     {"", 90, 0, 5 * time.Minute, cpu},
		"measured longer ago than that": {"", 90, 0, 5*time.Minute + 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := loaded(t, test.arguments, fixture.Node("n", "cpu=8 memory=8Gi")).Measure("n", noon, test.cpu, test.memory)
			session := s.OpenAt(noon.Add(test.after))
			if got := refusal(s, "n"); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
			if got := best(s, session); got == "n" != (test.want == "") {
				t.Errorf("the pod would go to %q", got)
			}
		})
	}
}

func TestLoadsThatChange(t *testing.T) {
	t.Run("a node that was never measured passes and scores nothing", func(t *testing.T) {
		s := loaded(t, "", fixture.Node("n", "cpu=8 memory=8Gi"))
		s.OpenAt(noon)
		if refusal(s, "n") != "" || score(s, "n") != 0 {
			t.Errorf("it is refused (%q) or scores %d", refusal(s, "n"), score(s, "n"))
		}
	})

	t.Run("a new load is looked at at once", func(t *testing.T) {
		s := loaded(t, "", fixture.Node("a", "cpu=8 memory=8Gi"), fixture.Node("b", "cpu=8 memory=8Gi")).Measure("a", noon, 10, 10).Measure("b", noon, 90, 10)
		if got := best(s, s.OpenAt(noon)); got != "a" {
			t.Fatalf("the best node is %s", got)
		}
		s.Measure("a", noon, 90, 10).Measure("b", noon, 20, 10)
		if got := best(s, s.OpenAt(noon)); got != "b" {
			t.Errorf("after the load has changed it is %s", got)
		}
		s.Measure("b", noon, 90, 10)
		if got := best(s, s.OpenAt(noon)); got != "" {
			t.Errorf("where all are busy it is %s", got)
		}
	})

	t.Run("the scheduler wakes when a load is too old to refuse", func(t *testing.T) {
		s := loaded(t, "", fixture.Node("a", "cpu=8"), fixture.Node("b", "cpu=8")).Measure("a", noon, 90, 0).Measure("b", noon, 10, 0)
		s.OpenAt(noon)
		wake := s.Policy.WakeAt()
		if want := noon.Add(5*time.Minute + 1); !wake.Equal(want) {
			t.Fatalf("it wakes at %v, want %v", wake, want)
		}
		s.OpenAt(wake)
		if refusal(s, "a") != "" || !s.Policy.WakeAt().IsZero() {
			t.Errorf("then it is refused (%q), and it wakes again at %v", refusal(s, "a"), s.Policy.WakeAt())
		}
	})
}

func TestTheScoreIsWhatIsLeft(t *testing.T) {
	running := fixture.On("n")
	for name, test := range map[string]struct {
		arguments   string
		cpu, memory float64
		pods        []*corev1.Pod
		want        string // in points, at 8 CPUs and 8Gi
	}{
		"idle":                           {"", 0, 0, nil, "500.000"},
		"half of the CPU":                {"", 50, 0, nil, "375.000"},
		"half of both":                   {"", 50, 50, nil, "250.000"},
		"busy":                           {"", 100, 100, nil, "0.000"},
		"by weights":                     {"cpu.weight: 3\nmemory.weight: 1\nusage.weight: 1", 100, 0, nil, "25.000"},
		"of no weights":                  {"cpu.weight: 0\nmemory.weight: 0", 0, 0, nil, "0.000"},
		"too old":                        {"", -1, 0, nil, "0.000"},
		"a pod that runs for long":       {"", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=4 memory=4Gi"), started(noon.Add(-time.Hour)))}, "500.000"},
		"one that just started":          {"", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=4 memory=4Gi"), started(noon.Add(-30*time.Second)))}, "325.000"},
		"one that has yet to start":      {"", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=4 memory=4Gi"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })}, "325.000"},
		"one that is over":               {"", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=4 memory=4Gi"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, "500.000"},
		"one that asks for nothing":      {"estimator: {be_cpu: 4, be_mem: 4Gi}", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks(""), started(noon))}, "250.000"},
		"of its limit, too":              {"estimator: {burst_ratio: 0.5}", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=2"), limited("cpu=6"), started(noon))}, "393.750"},
		"at risk, it counts for more":    {"estimator: {request_ratio: 0.5, risk_threshold: 0.2, risk_factor: 1.5}", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=8"), started(noon))}, "312.500"},
		"but for no more than its limit": {"estimator: {request_ratio: 0.9, risk_threshold: 0.2, risk_factor: 10}", 0, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=4"), started(noon))}, "375.000"},
		"more than there is":             {"", 90, 0, []*corev1.Pod{fixture.Pod("p", running, fixture.Asks("cpu=8"), started(noon))}, "250.000"},
	} {
		t.Run(name, func(t *testing.T) {
			s := loaded(t, test.arguments, fixture.Node("n", "cpu=8 memory=8Gi"))
			for _, pod := range test.pods {
				s.Set(pod)
			}
			at := noon
			if test.cpu < 0 {
				test.cpu, at = 0, noon.Add(time.Hour)
			}
			s.Measure("n", noon, test.cpu, test.memory).OpenAt(at)
			if got := fmt.Sprintf("%.3f", float64(score(s, "n"))/framework.Point); got != test.want {
				t.Errorf("it scores %s points, want %s", got, test.want)
			}
		})
	}
}

// Without the estimate all would go to the node that was idle when it was measured.
func TestPodsPlacedInOneCycleSpread(t *testing.T) {
	s := loaded(t, "", fixture.Node("a", "cpu=8 memory=8Gi"), fixture.Node("b", "cpu=8 memory=8Gi")).Measure("a", noon, 10, 0).Measure("b", noon, 15, 0)
	for i := range 4 {
		s.Set(fixture.Pod(fmt.Sprint("p", i), fixture.In("g"), fixture.Asks("cpu=1 memory=1Gi")))
	}
	session := s.OpenAt(noon)
	x := session.Begin()
	var nodes []string
	for i := range 4 {
		task := s.Task(fixture.Key(fmt.Sprint("p", i)))
		n := session.Placer.Best(task)
		x.Place(task, n)
		nodes = append(nodes, n.Name)
	}
	if got := strings.Join(nodes, " "); got != "a b a b" {
		t.Errorf("they go to %s", got)
	}
	x.Undo()
	if got := best(s, session); got != "a" {
		t.Errorf("once that is undone the best node is %s", got)
	}
}

func TestArgumentsOfAnotherFormAreRefused(t *testing.T) {
	for arguments, want := range map[string]string{
		"usage.weight: -1":                 "usage.weight is -1: it must be a whole number from 0 to 1000000",
		"thresholds: {cpu: 101}":           `cpu is a number from 0 to 100, not "101"`,
		"thresholds: {mem: much}":          `mem is a number from 0 to 100, not "much"`,
		"thresholds: {memory: 80}":         `a mapping of cpu, mem, and "memory" is none of these`,
		"thresholds: {CPUUsageAvg.5m: 80}": `"CPUUsageAvg.5m" is none of these`,
		"estimator: {risk_factor: 0.9}":    "risk_factor is a number from 1 to 1000",
		"estimator: {request_ratio: NaN}":  "request_ratio is a number from 0 to 1",
		"estimator: {be_mem: a lot}":       `be_mem is a quantity of at least 0, not "a lot"`,
		"estimator: {be_cpu: -1}":          `be_cpu is a quantity of at least 0, not "-1"`,
		"estimator: {be_memory: 1Gi}":      `"be_memory" is none of these`,
	} {
		_, err := conf.ParseArguments([]byte(arguments), usage.Factory().Spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
}
