package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/pkg/cluster/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measuredAt is what the sources of these tests say of the time.
var measuredAt = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// serve starts a server on loopback.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// vector is an answer of Prometheus: instances and values in turn.
func vector(pairs ...string) string {
	var samples []string
	for i := 0; i < len(pairs); i += 2 {
		samples = append(samples, fmt.Sprintf(`{"metric":{"instance":%q},"value":[%d,%q]}`, pairs[i], measuredAt.Unix(), pairs[i+1]))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
}

// servePrometheus answers the two queries as a Prometheus does.
func servePrometheus(t *testing.T, cpu, memory string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/query" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch query := r.FormValue("query"); {
		case strings.Contains(query, "node_cpu_seconds_total") && strings.Contains(query, "[10m:30s]"):
			_, _ = io.WriteString(w, cpu)
		case strings.Contains(query, "node_memory_MemAvailable_bytes") && strings.Contains(query, "[10m:30s]"):
			_, _ = io.WriteString(w, memory)
		default:
			http.Error(w, `{"status":"error","errorType":"bad_data","error":"nobody asks for `+query+`"}`, http.StatusBadRequest)
		}
	})
}

// read asks a source once, as the meter would.
func read(t *testing.T, api *rest.Config, block map[string]string) ([]cache.Measured, error) {
	t.Helper()
	s, err := New(api, nil, logr.Discard()).source(block)
	if err != nil {
		return nil, err
	}
	return readOnce(t.Context(), s)
}

func TestSourcesSayHowBusyNodesAre(t *testing.T) {
	t.Run("Prometheus", func(t *testing.T) {
		address := servePrometheus(t,
			vector("node-2", "25", "node-1:9100", "50.5", "broken", "NaN", "without-memory", "1", "over", "120"),
			vector("node-1:9100", "10", "node-2", "0", "broken", "7", "without-cpu", "1", "over", "-3"))
		got, err := read(t, nil, map[string]string{"address": address})
		if err != nil {
			t.Fatal(err)
		}
		want := []cache.Measured{
			{Node: "node-1", At: measuredAt, CPU: 505_000, Memory: 100_000}, {Node: "node-2", At: measuredAt, CPU: 250_000},
			{Node: "over", At: measuredAt, CPU: 1_000_000},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("Elasticsearch", func(t *testing.T) {
		var asked map[string]any
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			if r.URL.Path != "/metrics-of-*/_search" || user != "reader" || password != "opensesame" {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			_ = json.NewDecoder(r.Body).Decode(&asked)
			_, _ = io.WriteString(w, `{"aggregations":{"hosts":{"buckets":[
			{"key":"node-1","cpu":{"value":0.5},"mem":{"value":0.25}}, {"key":"node-2","cpu":{"value":null},"mem":{"value":0.25}}]}}}`)
		})
		block := map[string]string{"type": "elasticsearch", "address": address, "elasticsearch.index": "metrics-of-*",
			"elasticsearch.username": "reader", "elasticsearch.password": "opensesame", "elasticsearch.hostnameFieldName": "agent.name"}
		before := time.Now()
		got, err := read(t, nil, block)
		if err != nil || len(got) != 1 || got[0].Node != "node-1" || got[0].CPU != 500_000 || got[0].Memory != 250_000 || got[0].At.Before(before) {
			t.Errorf("it says %+v (%v)", got, err)
		}
		if text := fmt.Sprint(asked); !strings.Contains(text, "field:agent.name") || !strings.Contains(text, "gte:now-10m") {
			t.Errorf("it was asked %s", text)
		}
		block["elasticsearch.password"] = "wrong"
		if _, err := read(t, nil, block); err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "wrong") {
			t.Errorf("with another password: %v", err)
		}
	})
	t.Run("the metrics server", func(t *testing.T) {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/nodes" || r.Header.Get("Authorization") != "Bearer secret" {
				http.Error(w, "no", http.StatusForbidden)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"NodeMetricsList","items":[
			{"metadata":{"name":"node-2"},"timestamp":"2026-03-04T05:06:07Z","window":"10s","usage":{"cpu":"1250m","memory":"1Gi"}},
			{"metadata":{"name":"node-1"},"timestamp":"2026-03-04T05:06:07Z","usage":{"cpu":"250000001n","memory":"512Ki"}},
			{"metadata":{"name":"node-3"},"timestamp":"2026-03-04T05:06:07Z","usage":{"cpu":"1"}}]}`)
		})
		got, err := read(t, &rest.Config{Host: address, BearerToken: "secret"}, map[string]string{"type": "metrics_server"})
		want := []cache.Measured{
			{Node: "node-1", At: measuredAt, CPU: 251, Memory: 512 << 10, Absolute: true}, // a part of a thousandth counts as one
			{Node: "node-2", At: measuredAt, CPU: 1250, Memory: 1 << 30, Absolute: true},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (%v)", diff, err)
		}
	})
	t.Run("a Prometheus adapter, in the version that it has", func(t *testing.T) {
		for _, served := range []string{"v1beta1", "v1beta2"} {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				value := map[string]string{"node_cpu_usage_avg": "250m", "node_memory_usage_avg": "1"}
				metric, isOurs := strings.CutPrefix(r.URL.Path, "/apis/custom.metrics.k8s.io/"+served+"/nodes/*/")
				if !isOurs || value[metric] == "" {
					http.NotFound(w, r)
					return
				}
				_, _ = fmt.Fprintf(w, `{"items":[{"describedObject":{"kind":"Node","name":"node-1"},"timestamp":"2026-03-04T05:06:07Z","value":%q}]}`, value[metric])
			})
			got, err := read(t, &rest.Config{Host: address}, map[string]string{"type": "prometheus_adaptor"})
			want := []cache.Measured{{Node: "node-1", At: measuredAt, CPU: 250_000, Memory: 1_000_000}}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %s (%v)", served, diff, err)
			}
		}
	})
}

func TestASourceThatMakesNoSenseIsAnError(t *testing.T) {
	tooLong := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`)
		for range maxAnswer/1024 + 1 {
			_, _ = io.WriteString(w, strings.Repeat(" ", 1024))
		}
	})
	for name, test := range map[string]struct {
		block map[string]string
		want  string
	}{
		"nobody there":      {map[string]string{"address": "http://127.0.0.1:1"}, "refused"},
		"no Prometheus":     {map[string]string{"address": serve(t, http.NotFound)}, "404"},
		"no JSON":           {map[string]string{"address": servePrometheus(t, "hello", "")}, "ask Prometheus"},
		"a scalar":          {map[string]string{"address": servePrometheus(t, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`, "")}, "a scalar, not a vector"},
		"an endless answer": {map[string]string{"address": tooLong}, "longer than"},
		"no Elasticsearch":  {map[string]string{"type": "elasticsearch", "address": servePrometheus(t, "", "")}, "404"},
		"no URL":            {map[string]string{"type": "elasticsearch", "address": "here"}, `address is "here"`},
		"no metrics-server": {map[string]string{"type": "metrics_server"}, "404"},
		"no adapter":        {map[string]string{"type": "prometheus_adaptor"}, "404"},
		"nobody knows it":   {map[string]string{"type": "abacus"}, `type is "abacus"`},
		"no address":        {map[string]string{"type": "prometheus"}, "address is not given"},
		"not even one":      {map[string]string{"type": "elasticsearch"}, "address is not given"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, &rest.Config{Host: serve(t, http.NotFound)}, test.block)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want one that says %s", err, test.want)
			}
		})
	}
}

// recorder receives the loads and the log.
type recorder struct {
	mutex    sync.Mutex
	measured []cache.Measured
	lines    []string
}

func (r *recorder) report(m ...cache.Measured) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.measured = append(r.measured, m...)
}

func (r *recorder) log(prefix, args string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lines = append(r.lines, prefix+args)
}

func (r *recorder) seen() (measured, lines int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.measured), len(r.lines)
}

// run starts a meter that runs until the test ends or the function is called.
func run(t *testing.T, r *recorder) (*Meter, func()) {
	t.Helper()
	m := New(nil, r.report, funcr.New(r.log, funcr.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Run(ctx)
	}()
	stop := func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
	}
	t.Cleanup(stop)
	return m, stop
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestTheMeter(t *testing.T) {
	t.Run("asks again and again", func(t *testing.T) {
		r := &recorder{}
		m, stop := run(t, r)
		m.Use(map[string]string{"address": servePrometheus(t, vector("n", "1"), vector("n", "2")), "interval": "5ms"})
		eventually(t, "five answers", func() bool { n, _ := r.seen(); return n >= 5 })
		m.Use(nil)
		time.Sleep(50 * time.Millisecond)
		before, _ := r.seen()
		time.Sleep(50 * time.Millisecond)
		if after, lines := r.seen(); after != before || lines != 0 {
			t.Errorf("asked nobody it reports %d, and has logged %v", after-before, r.lines)
		}
		stop()
	})
	t.Run("logs what is wrong when that changes", func(t *testing.T) {
		var mutex sync.Mutex
		asked, status := 0, http.StatusBadGateway
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			mutex.Lock()
			defer mutex.Unlock()
			asked++
			if status != http.StatusOK {
				http.Error(w, "", status)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, vector("n", "1"))
		})
		r := &recorder{}
		m, stop := run(t, r)
		m.Use(map[string]string{"address": address, "interval": "5ms"})
		eventually(t, "five questions", func() bool { mutex.Lock(); defer mutex.Unlock(); return asked >= 5 })
		if measured, lines := r.seen(); measured != 0 || lines != 1 {
			t.Errorf("%d nodes are reported and %d lines are logged, want none and 1: %v", measured, lines, r.lines)
		}
		mutex.Lock()
		status = http.StatusOK
		mutex.Unlock()
		eventually(t, "an answer", func() bool { n, lines := r.seen(); return n > 0 && lines == 2 })
		stop()
	})
	t.Run("is not held up by a source that does not answer", func(t *testing.T) {
		release := make(chan struct{})
		silent := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
		t.Cleanup(func() { close(release) })
		r := &recorder{}
		m, stop := run(t, r)
		m.Use(map[string]string{"address": silent})
		time.Sleep(20 * time.Millisecond)
		m.Use(map[string]string{"address": servePrometheus(t, vector("n", "1"), vector("n", "2"))})
		eventually(t, "an answer of the other", func() bool { n, _ := r.seen(); return n == 1 })
		m.Use(map[string]string{"address": silent})
		time.Sleep(20 * time.Millisecond)
		stop()
		if _, lines := r.seen(); lines != 0 {
			t.Errorf("logged is %v", r.lines)
		}
	})
}
