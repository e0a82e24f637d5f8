package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/cluster/cache"
)

// extension is an API that the API server delegates to another server.
type extension struct {
	host   string
	client *http.Client
}

func newExtension(config *rest.Config) (*extension, error) {
	if config == nil {
		return nil, errors.New("metrics: there is no API server to ask")
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &extension{host: strings.TrimSuffix(host.String(), "/"), client: client}, nil
}

// longestAnswer is far more than a list of the metrics of ten thousand nodes.
const longestAnswer = 64 << 20

// get reads an object. isServed is false if the API server knows no such path.
func (e *extension) get(ctx context.Context, path string, object any) (isServed bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.host+path, nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := e.client.Do(request)
	if err != nil {
		return false, fmt.Errorf("ask the API server for %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		err := fmt.Errorf("ask the API server for %s: it answers %s: %s", path, response.Status, strings.TrimSpace(string(text)))
		return response.StatusCode != http.StatusNotFound, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err == nil {
		err = bounds.UnmarshalJSON(text, object)
	}
	if err != nil {
		return true, fmt.Errorf("ask the API server for %s: %w", path, err)
	}
	return true, nil
}

// metricsServer asks the API metrics.k8s.io, which returns amounts in use, not fractions.
type metricsServer struct{ *extension }

func newMetricsServer(config *rest.Config) (source, error) {
	e, err := newExtension(config)
	return metricsServer{e}, err
}

func (m metricsServer) read(ctx context.Context) ([]cache.Measured, error) {
	var list struct {
		Items []struct {
			Metadata  metav1.ObjectMeta   `json:"metadata"`
			Timestamp metav1.Time         `json:"timestamp"`
			Usage     corev1.ResourceList `json:"usage"`
		} `json:"items"`
	}
	asked := time.Now()
	if _, err := m.get(ctx, "/apis/metrics.k8s.io/v1beta1/nodes", &list); err != nil {
		return nil, err
	}
	var events []cache.Measured
	for _, item := range list.Items {
		cpu, hasCPU := item.Usage[corev1.ResourceCPU]
		memory, hasMemory := item.Usage[corev1.ResourceMemory]
		if hasCPU && hasMemory {
			events = append(events, cache.Measured{Node: item.Metadata.Name, At: orElse(item.Timestamp, asked), Absolute: true,
				CPU: cpu.MilliValue(), Memory: memory.Value()})
		}
	}
	slices.SortFunc(events, func(a, b cache.Measured) int { return cmp.Compare(a.Node, b.Node) })
	return events, nil
}

// customMetrics asks the API custom.metrics.k8s.io for two metrics of nodes, as fractions. A Prometheus adapter must be
// configured to provide them (source: Volcano).
type customMetrics struct{ *extension }

func newCustomMetrics(config *rest.Config) (source, error) {
	e, err := newExtension(config)
	return customMetrics{e}, err
}

const (
	cpuMetric    = "node_cpu_usage_avg"
	memoryMetric = "node_memory_usage_avg"
)

func (m customMetrics) read(ctx context.Context) ([]cache.Measured, error) {
	found := collection{}
	for _, part := range []struct {
		metric string
		add    func(string, float64, time.Time)
	}{{cpuMetric, found.addCPU}, {memoryMetric, found.addMemory}} {
		if err := m.readOne(ctx, part.metric, part.add); err != nil {
			return nil, err
		}
	}
	return found.events(), nil
}

// readOne reads a metric of all nodes, in whichever version of the API there is.
func (m customMetrics) readOne(ctx context.Context, metric string, add func(string, float64, time.Time)) error {
	var list struct {
		Items []struct {
			Object    corev1.ObjectReference `json:"describedObject"`
			Timestamp metav1.Time            `json:"timestamp"`
			Value     resource.Quantity      `json:"value"`
		} `json:"items"`
	}
	var err error
	asked := time.Now()
	for _, version := range []string{"v1beta2", "v1beta1"} {
		var isServed bool
		isServed, err = m.get(ctx, "/apis/custom.metrics.k8s.io/"+version+"/nodes/*/"+metric, &list)
		if isServed {
			break
		}
	}
	for _, item := range list.Items {
		add(item.Object.Name, item.Value.AsApproximateFloat64(), orElse(item.Timestamp, asked))
	}
	return err
}

// orElse returns a time, or another if the first is zero.
func orElse(at metav1.Time, other time.Time) time.Time {
	if at.IsZero() {
		return other
	}
	return at.Time
}
