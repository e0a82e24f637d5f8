package apiserver

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Latency is how long requests of one kind take, from sending to the header of the answer. Waiting for the limit of
// requests and for the outbox is not part of it. The times are of the latest [kept] requests, in milliseconds.
type Latency struct {
	Request string  `json:"request"` // verb and resource, such as "create pods/binding"
	Count   uint64  `json:"count"`
	Failed  uint64  `json:"failed"` // answered with 4xx or 5xx, or not at all; 404 and 409 are answers
	Median  float64 `json:"medianMillis"`
	P99     float64 `json:"p99Millis"`
	Longest float64 `json:"longestMillis"`
	// LastFailure is the newest failure.
	LastFailure string `json:"lastFailure,omitempty"`
}

// kept is the number of requests of a kind of which the times are kept: enough for a 99th percentile.
const kept = 512

// latencies has the times of all requests.
type latencies struct {
	infos request.RequestInfoFactory

	mutex sync.Mutex
	kinds map[string]*kindOfRequest
	// ahead is by how much the clock of the API server is ahead, measured at a time.
	ahead    time.Duration
	measured time.Time
}

type kindOfRequest struct {
	count, failed uint64
	millis        [kept]float64
	lastFailure   string
}

// timed is the round tripper of a connection, whose requests are timed.
type timed struct {
	http.RoundTripper
	*latencies
}

func newLatencies() *latencies {
	return &latencies{kinds: map[string]*kindOfRequest{},
		infos: request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}}
}

func (l timed) RoundTrip(r *http.Request) (*http.Response, error) {
	name, begin := "other", time.Now()
	if info, err := l.infos.NewRequestInfo(r); err == nil && info.IsResourceRequest {
		if name = info.Verb + " " + info.Resource; info.Subresource != "" {
			name += "/" + info.Subresource
		}
		if info.Verb == "watch" {
			return l.RoundTripper.RoundTrip(r) // it is answered as soon as there is something to say
		}
	}
	response, err := l.RoundTripper.RoundTrip(r)
	end := time.Now()
	failure := ""
	switch {
	case err != nil && r.Context().Err() == nil:
		failure = err.Error()
	case err == nil && response.StatusCode >= http.StatusBadRequest && response.StatusCode != http.StatusNotFound && response.StatusCode != http.StatusConflict:
		failure = response.Status
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	k := l.kinds[name]
	if k == nil {
		k = &kindOfRequest{}
		l.kinds[name] = k
	}
	k.millis[k.count%kept] = float64(end.Sub(begin)) / float64(time.Millisecond)
	if k.count++; failure != "" {
		k.failed++
		k.lastFailure = failure
	}
	if err == nil {
		l.compareClocks(response.Header.Get("Date"), begin, end)
	}
	return response, err
}

// compareClocks compares the time that the API server names, in whole seconds, with that of the request.
func (l *latencies) compareClocks(date string, begin, end time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	switch latest := at.Add(time.Second); {
	case at.After(end):
		l.ahead = at.Sub(end)
	case latest.Before(begin):
		l.ahead = latest.Sub(begin)
	default:
		l.ahead = 0
	}
	l.measured = end
}

// Latencies returns how long requests take, by kind.
func (c *Clients) Latencies() []Latency {
	l := c.latencies
	l.mutex.Lock()
	defer l.mutex.Unlock()
	all := []Latency{}
	for _, name := range slices.SortedFunc(maps.Keys(l.kinds), cmp.Compare[string]) {
		k := l.kinds[name]
		times := slices.Clone(k.millis[:min(k.count, kept)])
		slices.Sort(times)
		all = append(all, Latency{Request: name, Count: k.count, Failed: k.failed, LastFailure: k.lastFailure,
			Median: Percentile(times, 50), P99: Percentile(times, 99), Longest: times[len(times)-1]})
	}
	return all
}

// Percentile returns a percentile of sorted values, 0 if there is none.
func Percentile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// ClockAhead returns by how much the clock of the API server is ahead of the own one, negative if it is behind; to a
// second, and 0 if the difference may be none. ok is false before the first answer.
func (c *Clients) ClockAhead() (ahead time.Duration, ok bool) {
	l := c.latencies
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.ahead, !l.measured.IsZero()
}
