package process

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// twice shows a series twice.
type twice struct{ of *prometheus.Desc }

func (c twice) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.of }

func (c twice) Collect(metrics chan<- prometheus.Metric) {
	for range 2 {
		metrics <- prometheus.MustNewConstMetric(c.of, prometheus.GaugeValue, 1)
	}
}

func TestASeriesThatCannotBeShownIsLeftOutAndCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	good := prometheus.NewGauge(prometheus.GaugeOpts{Name: "good"})
	registry.MustRegister(twice{prometheus.NewDesc("bad", "", nil, nil)}, good)
	handler := Metrics(registry)
	for _, want := range []string{"\ngood 0\n", `promhttp_metric_handler_errors_total{cause="gathering"} 1` + "\n"} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		if recorder.Code != http.StatusOK || !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("a scrape is %d without %q: %s", recorder.Code, want, recorder.Body)
		}
	}
}
