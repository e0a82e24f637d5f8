package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	controllermetrics "hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/edge"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/internal/metrics"
)

// described returns the names of all series of ours with their labels, sorted.
func described(of interface {
	Describe(chan<- *prometheus.Desc)
}) map[string]string {
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		of.Describe(all)
	}()
	text := regexp.MustCompile(`fqName: "((?:volcano|hekla|kueue)_[^"]*)".*variableLabels: \{(.*)\}\}`)
	names := map[string]string{}
	for d := range all {
		if found := text.FindStringSubmatch(d.String()); found != nil {
			names[found[1]] = sorted(strings.Split(found[2], ","))
		}
	}
	return names
}

func sorted(labels []string) string { return strings.Join(slices.Sorted(slices.Values(labels)), ",") }

// documented returns what the tables of a part of the page say.
func documented(part string) map[string]string {
	names := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (?:gauge|counter|histogram) \\| (.*?) ?\\| .*\\|$")
	for _, found := range row.FindAllStringSubmatch(part, -1) {
		names[found[1]] = sorted(strings.Split(strings.ReplaceAll(strings.ReplaceAll(found[2], "`", ""), " ", ""), ","))
	}
	return names
}

func TestEveryMetricIsOnItsPageWithItsLabelsAndNoOther(t *testing.T) {
	of, ofControllers, found := strings.Cut(page(t, "metrics.md"), "## The controllers")
	if !found {
		t.Fatal("the page has no part about the controllers")
	}
	scheduler := metrics.New()
	scheduler.Watch(func() intake.Stats { return intake.Stats{} }, func() edge.OutboxStats { return edge.OutboxStats{} })
	if diff := cmp.Diff(described(scheduler), documented(of)); diff != "" {
		t.Errorf("of the scheduler (-there is +documented):\n%s", diff)
	}
	controllers := prometheus.NewRegistry()
	if _, err := controllermetrics.New(controllers); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(described(controllers), documented(ofControllers)); diff != "" {
		t.Errorf("of the controllers (-there is +documented):\n%s", diff)
	}
	if count := len(described(scheduler)); count < 40 {
		t.Errorf("only %d metrics of the scheduler were looked at", count)
	}
}
