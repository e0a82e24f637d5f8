package apiserver

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"hekla.sh/hekla/pkg/client/clientset/versioned"
)

// Clients are the connections to the API server. All share one limit of requests, and all but Bindings one HTTP/2
// connection.
type Clients struct {
	// Core speaks protobuf, which costs a fraction of JSON for pods and nodes.
	Core kubernetes.Interface
	// Bindings is the same over HTTP/1.1. Small requests of which one is like the other cost both sides less there, and
	// large lists and watches on the other connection do not delay them. [BindingConnections] may be in flight.
	Bindings kubernetes.Interface
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
	latencies := newLatencies()
	transport := measured(shared, latencies)
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
	bindings, err := newBindingsClient(config, latencies)
	if err != nil {
		return nil, fmt.Errorf("API client for bindings: %w", err)
	}
	return &Clients{Core: core, Bindings: bindings, Batch: batch, qps: qps, config: given, latencies: latencies}, nil
}

const (
	// BindingConnections is how many bindings may be in flight. The API server takes less for each the more of them it
	// has: it stores those together that wait at the same time. With many more it takes no less.
	BindingConnections = 64
	// keptConnections is how many idle connections the library keeps with one transport. With more requests at once it
	// would open new ones all the time.
	keptConnections = 25
)

// newBindingsClient makes as many transports as are needed to keep all connections, with some to spare: a connection is
// busy for a moment longer than its request.
func newBindingsClient(config *rest.Config, latencies *latencies) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	var all spread
	for range BindingConnections/keptConnections + 2 {
		own := rest.CopyConfig(config)
		// The library gives configurations that are alike the same transport. With functions to dial no two are alike.
		if own.Dial == nil {
			own.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext
		}
		transport, err := rest.TransportFor(own)
		if err != nil {
			return nil, err
		}
		all = append(all, &lane{RoundTripper: transport})
	}
	return kubernetes.NewForConfigAndClient(config, measured(&http.Client{Transport: all, Timeout: config.Timeout}, latencies))
}

// dialTimeout is the library's: how long a connection may take to be made, and how often it is probed.
const dialTimeout = 30 * time.Second

// spread sends each request through the transport that has the fewest in flight.
type spread []*lane

// lane is one of the transports.
type lane struct {
	http.RoundTripper
	inFlight atomic.Int64
}

func (s spread) RoundTrip(r *http.Request) (*http.Response, error) {
	least := s[0]
	for _, l := range s[1:] {
		if l.inFlight.Load() < least.inFlight.Load() {
			least = l
		}
	}
	least.inFlight.Add(1)
	defer least.inFlight.Add(-1)
	return least.RoundTripper.RoundTrip(r)
}

// measured is a client with the same settings, whose requests are timed. Without credentials the library returns the
// client that all of the process shares, which must stay as it is.
func measured(client *http.Client, latencies *latencies) *http.Client {
	return &http.Client{Transport: timed{cmp.Or(client.Transport, http.DefaultTransport), latencies}, Timeout: client.Timeout}
}
