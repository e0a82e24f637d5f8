package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"hekla.sh/hekla/pkg/cluster/cache"
)

const (
	// Metricbeat's names (source: Volcano).
	defaultIndex    = "metricbeat-*"
	defaultHostname = "host.hostname"
	cpuField        = "host.cpu.usage"
	memoryField     = "system.memory.actual.used.pct"
	// maxHosts limits the hosts in an answer. Elasticsearch itself refuses more.
	maxHosts = 10_000
)

// elasticsearch asks an Elasticsearch that Metricbeat writes to. The field of the host's name says which node a number
// is of.
type elasticsearch struct {
	url                string
	username, password string
	query              []byte
	client             *http.Client
}

func newElasticsearch(block map[string]string) (source, error) {
	if block["address"] == "" {
		return nil, errors.New("metrics: address is not given")
	}
	address, err := url.Parse(block["address"])
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("metrics: address is %q: expected a URL", block["address"])
	}
	average := func(field string) map[string]any { return map[string]any{"avg": map[string]any{"field": field}} }
	query, err := json.Marshal(map[string]any{
		"size":  0,
		"query": map[string]any{"range": map[string]any{"@timestamp": map[string]any{"gte": "now-" + window, "lt": "now"}}},
		"aggs": map[string]any{"hosts": map[string]any{
			"terms": map[string]any{"field": cmp.Or(block["elasticsearch.hostnameFieldName"], defaultHostname), "size": maxHosts},
			"aggs":  map[string]any{"cpu": average(cpuField), "mem": average(memoryField)},
		}},
	})
	if err != nil {
		return nil, err
	}
	return &elasticsearch{
		url:      address.JoinPath(cmp.Or(block["elasticsearch.index"], defaultIndex), "_search").String(),
		username: block["elasticsearch.username"], password: block["elasticsearch.password"],
		query: query, client: &http.Client{Transport: transport(block)},
	}, nil
}

func (e *elasticsearch) read(ctx context.Context) ([]cache.Measured, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(e.query))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if e.username != "" {
		request.SetBasicAuth(e.username, e.password)
	}
	asked := time.Now()
	response, err := e.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Elasticsearch: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask Elasticsearch %s: it answers %s", e.url, response.Status)
	}
	type average struct {
		Value *float64 `json:"value"`
	}
	var answer struct {
		Aggregations struct {
			Hosts struct {
				Buckets []struct {
					Key    string  `json:"key"`
					CPU    average `json:"cpu"`
					Memory average `json:"mem"`
				} `json:"buckets"`
			} `json:"hosts"`
		} `json:"aggregations"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("ask Elasticsearch %s: %w", e.url, err)
	}
	found := collection{}
	for _, host := range answer.Aggregations.Hosts.Buckets {
		if host.CPU.Value != nil {
			found.addCPU(host.Key, *host.CPU.Value, asked)
		}
		if host.Memory.Value != nil {
			found.addMemory(host.Key, *host.Memory.Value, asked)
		}
	}
	return found.events(), nil
}
