package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/process"
	"hekla.sh/hekla/test/apitest"
)

// twice shows a series twice.
type twice struct{ of *prometheus.Desc }

func (c twice) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.of }

func (c twice) Collect(metrics chan<- prometheus.Metric) {
	for range 2 {
		metrics <- prometheus.MustNewConstMetric(c.of, prometheus.GaugeValue, 1)
	}
}

func TestASeriesThatCannotBeShownTakesNoOtherWithIt(t *testing.T) {
	bad, good := twice{prometheus.NewDesc("bad", "", nil, nil)}, prometheus.NewGauge(prometheus.GaugeOpts{Name: "good"})
	metrics.Registry.MustRegister(bad, good)
	t.Cleanup(func() { metrics.Registry.Unregister(bad); metrics.Registry.Unregister(good) })
	port, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	options := metricsOptions(address, false)
	options.ExtraHandlers = process.Profiles()
	server, err := metricsserver.NewServer(options, &rest.Config{}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Start(t.Context()) }()
	for path, want := range map[string]string{
		"/metrics":             "\ngood 0\n",
		"/metrics?again":       `promhttp_metric_handler_errors_total{cause="gathering"}`,
		"/debug/pprof/cmdline": "app.test",
	} {
		apitest.Eventually(t, func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(text), want)) {
				err = fmt.Errorf("%s: %s without %q: %.500s", path, response.Status, want, text)
			}
			return err
		})
	}
}
