package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"hekla.sh/hekla/pkg/cluster/cache"
)

// What is asked for, by the label instance of node_exporter, in percent (source: Volcano, which asks node by node).
const (
	cpuQuery    = `avg_over_time((100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100))[` + window + `:30s])`
	memoryQuery = `100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[` + window + `:30s])`
)

// prometheus asks a Prometheus. The label instance says which node a number is of: its name, perhaps with a port.
type prometheus struct{ api prometheusv1.API }

func newPrometheus(block map[string]string) (source, error) {
	if block["address"] == "" {
		return nil, errors.New("metrics: address is not given")
	}
	client, err := api.NewClient(api.Config{Address: block["address"], RoundTripper: transport(block)})
	if err != nil {
		return nil, fmt.Errorf("metrics: address is %q: %w", block["address"], err)
	}
	return prometheus{prometheusv1.NewAPI(client)}, nil
}

func (p prometheus) read(ctx context.Context) ([]cache.Measured, error) {
	found := collection{}
	for _, part := range []struct {
		query string
		add   func(string, float64, time.Time)
	}{{cpuQuery, found.addCPU}, {memoryQuery, found.addMemory}} {
		value, _, err := p.api.Query(ctx, part.query, time.Time{})
		if err != nil {
			return nil, fmt.Errorf("ask Prometheus %s: %w", part.query, err)
		}
		samples, ok := value.(model.Vector)
		if !ok {
			return nil, fmt.Errorf("ask Prometheus %s: it answers with a %s, not a vector", part.query, value.Type())
		}
		for _, sample := range samples {
			node := string(sample.Metric[model.InstanceLabel])
			if host, _, err := net.SplitHostPort(node); err == nil {
				node = host
			}
			part.add(node, float64(sample.Value)/100, sample.Timestamp.Time())
		}
	}
	return found.events(), nil
}
