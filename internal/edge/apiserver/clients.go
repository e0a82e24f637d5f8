package apiserver

import (
	"cmp"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"hekla.sh/hekla/pkg/client/clientset/versioned"
)

// Clients are the connections to the API server. All share one HTTP/2 connection and one limit of requests.
type Clients struct {
	// Core speaks protobuf, which costs a fraction of JSON for pods and nodes.
	Core kubernetes.Interface
	// Batch is for Hekla's own kinds, which exist only as JSON.
	Batch versioned.Interface

	qps       float32
	config    *rest.Config
	latencies *latencies
}

// Share returns a limiter with one in n of the allowed requests, but at least one a second.
func (c *Clients) Share(n float32) flowcontrol.RateLimiter {
	return flowcontrol.NewTokenBucketRateLimiter(max(c.qps/n, 1), 1)
}

// API returns the address of the API server with the credentials.
func (c *Clients) API() *rest.Config { return rest.CopyConfig(c.config) }

// Connect makes the clients. qps and burst limit the requests of all of them together; both must be positive.
func Connect(config *rest.Config, qps float32, burst int) (*Clients, error) {
	if qps <= 0 || burst <= 0 {
		return nil, fmt.Errorf("requests per second must be positive: qps is %g, burst is %d", qps, burst)
	}
	given := rest.CopyConfig(config)
	config = rest.CopyConfig(config)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(qps, burst)
	// Lists are large and the API server is near, so decompressing them costs more than receiving them.
	config.DisableCompression = true
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	// Without credentials it is the client that all of the process shares.
	measured := measure(cmp.Or(shared.Transport, http.DefaultTransport))
	transport := &http.Client{Transport: measured, Timeout: shared.Timeout}
	batch, err := newQuickClients(config, transport)
	if err != nil {
		return nil, fmt.Errorf("API client for our own kinds: %w", err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("API client: %w", err)
	}
	return &Clients{Core: core, Batch: batch, qps: qps, config: given, latencies: measured}, nil
}
