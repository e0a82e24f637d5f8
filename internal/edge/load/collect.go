package load

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/resources"
)

// collection holds the measurements of each node so far.
type collection map[string]*measurement

type measurement struct {
	at                time.Time
	cpu, memory       int64
	hasCPU, hasMemory bool
}

// of returns the measurement of a node. Its time is the earliest of its parts.
func (c collection) of(node string, at time.Time) *measurement {
	m := c[node]
	if m == nil {
		m = &measurement{at: at}
		c[node] = m
	}
	if at.Before(m.at) {
		m.at = at
	}
	return m
}

// addCPU and addMemory add a load as a fraction, 1 being the whole node.
func (c collection) addCPU(node string, part float64, at time.Time) {
	if value, ok := millionths(part); ok && node != "" {
		m := c.of(node, at)
		m.cpu, m.hasCPU = max(m.cpu, value), true
	}
}

func (c collection) addMemory(node string, part float64, at time.Time) {
	if value, ok := millionths(part); ok && node != "" {
		m := c.of(node, at)
		m.memory, m.hasMemory = max(m.memory, value), true
	}
}

func millionths(part float64) (int64, bool) {
	if math.IsNaN(part) || math.IsInf(part, 0) {
		return 0, false
	}
	return int64(math.Round(min(max(part, 0), 1) * resources.Million)), true
}

// events returns the nodes with both loads, by name.
func (c collection) events() []cache.Measured {
	var events []cache.Measured
	for node, m := range c {
		if m.hasCPU && m.hasMemory {
			events = append(events, cache.Measured{Node: node, At: m.at, CPU: m.cpu, Memory: m.memory})
		}
	}
	slices.SortFunc(events, func(a, b cache.Measured) int { return cmp.Compare(a.Node, b.Node) })
	return events
}

// transport connects to a source outside the API server.
func transport(block map[string]string) http.RoundTripper {
	plain := http.DefaultTransport.(*http.Transport).Clone()
	if block["tls.insecureSkipVerify"] == "true" {
		plain.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	return bounded{plain}
}

// bounded limits the length of answers. Reading a longer one is an error.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = &boundedBody{ReadCloser: response.Body, left: maxAnswer}
	}
	return response, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	return n, err
}
