package apiserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestRequestsAreTimedByKind(t *testing.T) {
	date := time.Now()
	l := timed{answering(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPatch:
			return nil, errors.New("connection refused")
		case r.Method == http.MethodPost:
			return &http.Response{StatusCode: http.StatusTooManyRequests, Status: "429 Too Many Requests"}, nil
		}
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{"Date": {date.UTC().Format(http.TimeFormat)}}}, nil
	}), newLatencies()}
	c := &Clients{latencies: l.latencies}
	if _, ok := c.ClockAhead(); ok {
		t.Error("a clock is known before the first answer")
	}
	send := func(method, path string) {
		response, err := l.RoundTrip(httptest.NewRequest(method, path, nil))
		if err == nil && response.Body != nil {
			_ = response.Body.Close()
		}
	}
	for range kept + 10 {
		send(http.MethodPost, "/api/v1/namespaces/a/pods/p/binding")
	}
	send(http.MethodGet, "/api/v1/namespaces/a/pods/p")
	send(http.MethodPatch, "/apis/scheduling.volcano.sh/v1beta1/namespaces/a/podgroups/g/status")
	send(http.MethodGet, "/api/v1/pods?watch=true")
	all := map[string]Latency{}
	for _, one := range c.Latencies() {
		all[one.Request] = one
	}
	if b := all["create pods/binding"]; b.Count != kept+10 || b.Failed != kept+10 || b.LastFailure != "429 Too Many Requests" || b.Longest < b.P99 || b.P99 < b.Median {
		t.Errorf("bindings are %+v", b)
	}
	if g := all["get pods"]; g.Count != 1 || g.Failed != 0 {
		t.Errorf("reads are %+v", g)
	}
	if p := all["patch podgroups/status"]; p.Failed != 1 || p.LastFailure != "connection refused" {
		t.Errorf("patches are %+v", p)
	}
	if len(all) != 3 {
		t.Errorf("timed are %v, want three kinds and no watch", all)
	}
	if ahead, ok := c.ClockAhead(); !ok || ahead.Abs() > 2*time.Second { // a slow machine takes a while for the requests
		t.Errorf("the clock is ahead by %s, %t", ahead, ok)
	}
	for _, skew := range []time.Duration{time.Minute, -time.Minute} {
		date = time.Now().Add(skew)
		send(http.MethodGet, "/api/v1/nodes/n")
		if ahead, _ := c.ClockAhead(); (ahead - skew).Abs() > 2*time.Second {
			t.Errorf("the clock is ahead by %s, want %s", ahead, skew)
		}
	}
}

func TestTheClientOfTheProcessIsLeftAlone(t *testing.T) {
	if _, err := Connect(&rest.Config{Host: "http://127.0.0.1:1"}, 1, 1); err != nil {
		t.Fatal(err)
	}
	if _, isMeasured := http.DefaultClient.Transport.(timed); isMeasured {
		t.Error("requests to others are timed, too")
	}
}
