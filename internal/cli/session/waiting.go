package session

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// silence is how long an answer may take before the user is told what the program waits for.
const silence = 3 * time.Second

// telling says once that the API server takes its time, and once that it asks to come back later, which the client does
// by itself.
type telling struct {
	next http.RoundTripper
	out  io.Writer
	told *told
}

// told is what the user of a session knows already.
type told struct{ slow, busy sync.Once }

func (t *telling) RoundTrip(request *http.Request) (*http.Response, error) {
	about := request.Method + " " + request.URL.Path
	timer := time.AfterFunc(silence, func() {
		t.told.slow.Do(func() {
			_, _ = fmt.Fprintf(t.out, "still waiting for %s to answer %s; Ctrl-C ends it, --request-timeout=10s would limit it\n", request.URL.Host, about)
		})
	})
	defer timer.Stop()
	response, err := t.next.RoundTrip(request)
	if err == nil && response.StatusCode >= http.StatusTooManyRequests && response.Header.Get("Retry-After") != "" {
		t.told.busy.Do(func() {
			_, _ = fmt.Fprintf(t.out, "%s is busy and answers %s with %q; asking again\n", request.URL.Host, about, response.Status)
		})
	}
	return response, err
}
