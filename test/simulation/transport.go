package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"hekla.sh/hekla/test/simulation/apiserver"
)

// errors that a client sees when the network or the server fails.
var (
	errRefused = errors.New("connect: connection refused")
	errReset   = errors.New("read: connection reset by peer")
	errEnd     = io.EOF
)

// call is a request that a program has sent and that is not answered.
type call struct {
	from    *incarnation
	request *http.Request
	body    []byte
	key     string
	sent    time.Time
	number  int // in the order of arrival, for calls that are alike
	answer  chan outcome
	isLeft  bool // the client does not wait any more
	heldTo  int  // the step before which it is not served
}

// outcome is what a client sees of a call.
type outcome struct {
	response *apiserver.Response
	stream   *stream
	err      error
}

// keyOf names a call so that the name does not depend on the order of goroutines. How long a watch is to last is
// chance.
func keyOf(from *incarnation, r *http.Request, body []byte) string {
	h := fnv.New32a()
	h.Write(body)
	query := r.URL.Query()
	for _, drop := range []string{"timeout", "timeoutSeconds", "allowWatchBookmarks", "resourceVersionMatch"} {
		query.Del(drop)
	}
	key := fmt.Sprintf("%s %s %s", from, r.Method, r.URL.Path)
	if len(query) > 0 {
		key += "?" + query.Encode()
	}
	if len(body) > 0 {
		key += fmt.Sprintf(" %08x", h.Sum32())
	}
	return key
}

func compareCalls(a, b *call) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
}

// RoundTrip implements [http.RoundTripper]: it waits until the driver serves the request, or the client gives up.
func (i *incarnation) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = read
		_ = r.Body.Close()
	}
	if isDiscovery(r) {
		return i.driver.discover(i, r)
	}
	c := &call{from: i, request: r, body: body, key: keyOf(i, r, body), sent: time.Now(), answer: make(chan outcome, 1)}
	if !i.driver.submit(c) {
		return nil, errRefused
	}
	select {
	case o := <-c.answer:
		return o.toHTTP(r)
	case <-r.Context().Done():
		i.driver.leave(c)
		return nil, r.Context().Err()
	}
}

func (o outcome) toHTTP(r *http.Request) (*http.Response, error) {
	switch {
	case o.err != nil:
		return nil, o.err
	case o.stream != nil:
		return httpResponse(r, http.StatusOK, o.stream.header, o.stream), nil
	}
	return httpResponse(r, o.response.Code, o.response.Header, io.NopCloser(bytes.NewReader(o.response.Body))), nil
}

func httpResponse(r *http.Request, code int, header http.Header, body io.ReadCloser) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: body, ContentLength: -1, Request: r,
	}
}

// isDiscovery reports whether a request asks what the server serves. Clients ask for that while they hold locks, which
// the bubble does not count as waiting.
func isDiscovery(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch parts[0] {
	case "version", "openapi":
		return true
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	}
	return false
}

func isWatch(r *http.Request) bool {
	w := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (w == "true" || w == "1")
}

// isWrite reports whether a call may change something.
func (c *call) isWrite() bool { return c.request.Method != http.MethodGet }

// isLease reports whether a call is part of an election.
func (c *call) isLease() bool { return strings.Contains(c.request.URL.Path, "/leases") }

// stream is a watch as its client reads it.
type stream struct {
	from   *incarnation
	key    string
	path   string // of what is watched
	number int
	cursor *apiserver.Cursor
	header http.Header
	heldTo int       // the step before which nothing is delivered
	until  time.Time // when the server ends it

	heldUntil time.Time // before which nothing is delivered either

	awaitsEnd bool // it is held until something is deleted
	hasMissed bool // and something has been

	tellsOfQuotas bool

	mutex    sync.Mutex
	ready    chan struct{} // has an element if there may be something to read
	buffer   []byte
	end      error // what a reader gets when the buffer is empty
	isClosed bool
	done     <-chan struct{}
}

func compareStreams(a, b *stream) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
}

// Read implements [io.Reader].
func (s *stream) Read(to []byte) (int, error) {
	for {
		s.mutex.Lock()
		if len(s.buffer) > 0 {
			n := copy(to, s.buffer)
			s.buffer = s.buffer[n:]
			s.mutex.Unlock()
			return n, nil
		}
		end := s.end
		s.mutex.Unlock()
		if end != nil {
			return 0, end
		}
		select {
		case <-s.ready:
		case <-s.done:
			s.finish(errReset)
		}
	}
}

// Close implements [io.Closer].
func (s *stream) Close() error {
	s.finish(io.EOF)
	return nil
}

// release lets the stream be delivered again.
func (s *stream) release() {
	s.heldTo, s.heldUntil, s.awaitsEnd, s.hasMissed = 0, time.Time{}, false, false
}

// put gives the client bytes to read.
func (s *stream) put(frame []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.buffer = append(s.buffer, frame...)
	s.wake()
}

// finish ends the stream: no more than what is in the buffer is read.
func (s *stream) finish(why error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.end == nil {
		s.end = why
	}
	s.isClosed = true
	s.wake()
}

func (s *stream) isOver() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.isClosed
}

func (s *stream) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
