package metrics

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	controllers "hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/edge"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/internal/edge/intake"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/test/fixture"
)

// ofQuotas are the metrics of controllers that serve a ClusterQueue.
type ofQuotas struct {
	registry *prometheus.Registry
	next     func() // a Workload is admitted, and another evicted
}

func quotas(t *testing.T) ofQuotas {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := controllers.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.Ungrouped(&batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "j"}, Spec: batch.JobSpec{Queue: "a"}}, "InvalidSpec")
	q := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}
	q.Spec.CohortName = "all"
	q.Spec.ResourceGroups = []v1beta2.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []v1beta2.FlavorQuotas{{Name: "f",
		Resources: []v1beta2.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("4")}}}}}}
	q.Status.FlavorsReservation = []v1beta2.FlavorUsage{{Name: "f", Resources: []v1beta2.ResourceUsage{{Name: "cpu", Total: resource.MustParse("6")}}}}
	read := settings.OfClusterQueue(q)
	next := func() {
		m.ClusterQueue(q, &read, 0, true)
		m.ClusterQueueShare("quota", "all", 125)
		m.WorkloadEvicted("quota", types.NamespacedName{Namespace: "n", Name: "l"}, v1beta2.Preempted)
		before := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "w"}}
		after := before.DeepCopy()
		after.Status.Admission = &v1beta2.Admission{ClusterQueue: "quota"}
		conditions.Reserve(after, "quota", time.Now())
		conditions.Admit(after, time.Now())
		m.WorkloadMoved(before, after)
	}
	next()
	return ofQuotas{registry, next}
}

// serving serves the metrics of a scheduler that has placed, evicted and refused pods, and those of controllers.
func serving(t *testing.T) (server *httptest.Server, next func()) {
	t.Helper()
	r := victims(t)
	r.now = r.now.Add(time.Minute)
	result := r.scheduler.Cycle(r.now, nil)
	r.Plans(r.scheduler.Cluster(), result.Decisions.Plans, result.Decisions.Ended)
	r.Bind(binder.Outcome{Result: binder.Bound, Created: time.Now()})
	r.Watch(func() intake.Stats { return intake.Stats{} }, func() edge.OutboxStats { return edge.OutboxStats{} })
	victim := result.Decisions.Plans[0].Evictions[0].Pod.Name
	r.cycle(cache.Delete{Object: fixture.Pod(victim)}, cache.Set{Object: fixture.Queue("c", fixture.Capped("cpu=9 memory=9Gi"))},
		cache.Set{Object: fixture.Node("gpus", "cpu=1 nvidia.com/gpu=1")}, cache.Set{Object: fixture.Group("trains", "c", 1)},
		cache.Set{Object: fixture.Pod("t1", fixture.In("trains"), fixture.On("gpus"), fixture.Asks("nvidia.com/gpu=1"))},
		cache.Set{Object: &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "w", UID: "w"}}})
	r.Workloads(&workloads.Tally{Rounds: 1, Reserved: 1})
	_ = r.Handler() // which shows errors of scrapes, too
	of := quotas(t)
	server = httptest.NewServer(promhttp.HandlerFor(prometheus.Gatherers{r.registry, of.registry}, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return server, func() {
		of.next()
		r.Workloads(&workloads.Tally{Rounds: 1, Reserved: 1})
		r.now = r.now.Add(time.Minute)
		r.cycle(cache.Set{Object: fixture.Queue("c", fixture.Capped("cpu=8 memory=8Gi"))})
	}
}

// read is a scrape, and its content type.
func read(t *testing.T, server *httptest.Server) (text []byte, kind string) {
	t.Helper()
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return text, response.Header.Get("Content-Type")
}

// scrape has the families by the names that queries use.
func scrape(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	server, _ := serving(t)
	text, _ := read(t, server)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]*dto.MetricFamily{}
	for name, family := range families {
		named[name] = family
		if family.GetType() == dto.MetricType_HISTOGRAM {
			named[name+"_bucket"], named[name+"_sum"], named[name+"_count"] = family, family, family
		}
	}
	return named
}

// labelsOf are the labels of a family as a query sees them.
func labelsOf(name string, family *dto.MetricFamily) (labels []string) {
	for _, metric := range family.Metric {
		for _, pair := range metric.Label {
			labels = append(labels, pair.GetName())
		}
	}
	if strings.HasSuffix(name, "_bucket") {
		labels = append(labels, "le")
	}
	return labels
}

var (
	seriesPattern  = regexp.MustCompile(`\b((?:hekla|volcano|kueue)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcherPattern = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	byPattern      = regexp.MustCompile(`by \(([^)]*)\)`)
	legendPattern  = regexp.MustCompile(`\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}`)
)

// problemsOf says what of a query is not in a scrape: a series, or a label that it selects or groups by. legend is the
// text shown with it.
func problemsOf(query, legend string, families map[string]*dto.MetricFamily) (problems []string) {
	var labels []string
	found := seriesPattern.FindAllStringSubmatch(query, -1)
	if len(found) == 0 {
		return []string{"names no series of ours"}
	}
	for _, series := range found {
		family := families[series[1]]
		if family == nil {
			problems = append(problems, "there is no series "+series[1])
			continue
		}
		of := labelsOf(series[1], family)
		labels = append(labels, of...)
		for _, matcher := range matcherPattern.FindAllStringSubmatch(series[2], -1) {
			if !slices.Contains(of, matcher[1]) {
				problems = append(problems, "series "+series[1]+" has no label "+matcher[1])
			}
		}
	}
	groups := byPattern.FindAllStringSubmatch(query, -1)
	for _, group := range groups {
		for _, label := range strings.Split(group[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) {
				problems = append(problems, "it groups by "+label+", which no series has")
			}
		}
	}
	for _, shown := range legendPattern.FindAllStringSubmatch(legend, -1) {
		isKept := slices.Contains(labels, shown[1])
		for _, group := range groups {
			isKept = isKept && slices.Contains(strings.Split(strings.ReplaceAll(group[1], " ", ""), ","), shown[1])
		}
		if !isKept {
			problems = append(problems, "it shows the label "+shown[1]+", which the result has not")
		}
	}
	return problems
}

const monitoring = "../../installer/monitoring"

func TestEachPanelQueriesWhatTheSchedulerShows(t *testing.T) {
	families, panels, ids := scrape(t), 0, map[string]string{}
	asked := newMonitor(t)
	files, err := filepath.Glob(monitoring + "/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("the dashboards are %v: %v", files, err)
	}
	for _, file := range files {
		var dashboard struct {
			UID, Title string
			Panels     []struct {
				Title   string
				Targets []struct{ Expr, LegendFormat string }
			}
			Templating struct {
				List []struct {
					Name  string
					Query any
				}
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if other := ids[dashboard.UID]; other != "" || dashboard.UID == "" {
			t.Errorf("%s and %s have one uid", file, other)
		}
		ids[dashboard.UID] = file
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				panels++
				for _, problem := range append(problemsOf(target.Expr, target.LegendFormat, families), asked.problemsOf(t, target.Expr)...) {
					t.Errorf("%s, panel %q: %s: %s", filepath.Base(file), panel.Title, target.Expr, problem)
				}
			}
		}
		for _, variable := range dashboard.Templating.List {
			query, _ := variable.Query.(string)
			of, label, isSeries := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(query, "label_values("), ")"), ", ")
			if isSeries && (families[of] == nil || !slices.Contains(labelsOf(of, families[of]), label)) {
				t.Errorf("%s: the variable %s has no values: %s", file, variable.Name, query)
			}
		}
	}
	if panels < 40 {
		t.Errorf("only %d queries were looked at", panels)
	}
}

func TestEachAlertQueriesWhatTheSchedulerShows(t *testing.T) {
	families, asked := scrape(t), newMonitor(t)
	text, err := os.ReadFile(monitoring + "/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			for _, problem := range append(problemsOf(rule.Expr, rule.Annotations["summary"], families), asked.problemsOf(t, rule.Expr)...) {
				t.Errorf("alert %s: %s: %s", rule.Alert, rule.Expr, problem)
			}
			if alerts[rule.Alert] || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("alert %s is there twice, or lacks its severity, summary or description", rule.Alert)
			}
			if _, err := model.ParseDuration(rule.For); rule.For != "" && err != nil {
				t.Errorf("alert %s: %v", rule.Alert, err)
			}
			alerts[rule.Alert] = true
		}
	}
	if len(alerts) < 8 {
		t.Errorf("only %d alerts were looked at", len(alerts))
	}
}

func TestAQueryOfWhatIsNotThereIsFound(t *testing.T) {
	families := scrape(t)
	for query, want := range map[string]string{
		"sum(hekla_no_such_total)":                   "there is no series hekla_no_such_total",
		`hekla_queue_pending_pods{tenant="a"}`:       "series hekla_queue_pending_pods has no label tenant",
		"sum by (tenant) (hekla_queue_pending_pods)": "it groups by tenant, which no series has",
		"up": "names no series of ours",
		"sum by (le) (rate(hekla_cycles_total[5m]))":             "it groups by le, which no series has",
		"sum by (queue) (max by (queue) (hekla_asks)) {{state}}": "it shows the label state, which the result has not",
	} {
		query, legend, _ := strings.Cut(query, " {{")
		if legend != "" {
			legend = "{{" + legend
		}
		if got := problemsOf(query, legend, families); !slices.Contains(got, want) {
			t.Errorf("%s: found is %v, want %q", query, got, want)
		}
	}
}
