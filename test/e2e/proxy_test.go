package e2e

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// slowServer is the API server behind a network that delays, or that is cut.
type slowServer struct {
	next       *httputil.ReverseProxy
	kubeconfig string

	mutex sync.Mutex
	delay func(*http.Request) time.Duration
	cut   chan struct{} // nil unless the network is cut; closed when it is whole again
	bound int
}

// slowly puts a network before the API server, which delays a request, or each event of a watch, by so much.
func slowly(t *testing.T, delay func(*http.Request) time.Duration) *slowServer {
	t.Helper()
	transport, err := rest.TransportFor(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cluster.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	s := &slowServer{delay: delay, next: httputil.NewSingleHostReverseProxy(target)}
	s.next.Transport, s.next.FlushInterval = transport, -1
	s.next.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.heal()
		server.CloseClientConnections()
		server.Close()
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["slow"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["slow"] = &clientcmdapi.Context{Cluster: "slow"}
	config.CurrentContext = "slow"
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

// sever cuts the network: nothing passes, also of what has begun, and neither side is told.
func (s *slowServer) sever() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.cut = make(chan struct{})
}

func (s *slowServer) heal() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.cut != nil {
		close(s.cut)
		s.cut = nil
	}
}

// lets waits as long as the network takes, and reports whether the client still waits.
func (s *slowServer) lets(ctx context.Context, delay time.Duration) bool {
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
	s.mutex.Lock()
	cut := s.cut
	s.mutex.Unlock()
	if cut != nil {
		select {
		case <-cut:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (s *slowServer) pass(ctx context.Context, delay time.Duration) {
	if !s.lets(ctx, delay) {
		panic(http.ErrAbortHandler)
	}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func isBinding(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/binding") }

func (s *slowServer) ServeHTTP(reply http.ResponseWriter, request *http.Request) {
	delay := s.delay(request)
	if isWatch(request) {
		s.pass(request.Context(), 0)
		late := &lateEvents{ResponseWriter: reply, chunks: make(chan chunk, 1<<12), delay: delay}
		var writer sync.WaitGroup
		writer.Go(func() { late.deliver(request.Context(), s) })
		defer writer.Wait()
		defer close(late.chunks)
		s.next.ServeHTTP(late, request)
		return
	}
	s.pass(request.Context(), delay)
	s.mutex.Lock()
	if isBinding(request) {
		s.bound++
	}
	s.mutex.Unlock()
	s.next.ServeHTTP(reply, request)
	s.pass(request.Context(), 0)
}

// lateEvents are those of a watch, each of which comes some time after it was sent.
type lateEvents struct {
	http.ResponseWriter
	chunks chan chunk
	delay  time.Duration
}

type chunk struct {
	text []byte
	sent time.Time
}

func (e *lateEvents) Write(text []byte) (int, error) {
	e.chunks <- chunk{bytes.Clone(text), time.Now()}
	return len(text), nil
}

// Flush does nothing: deliver does.
func (e *lateEvents) Flush() {}

func (e *lateEvents) deliver(ctx context.Context, s *slowServer) {
	for c := range e.chunks {
		if !s.lets(ctx, time.Until(c.sent.Add(e.delay))) {
			continue
		}
		if _, err := e.ResponseWriter.Write(c.text); err == nil {
			_ = http.NewResponseController(e.ResponseWriter).Flush()
		}
	}
}

// bindings counts the bindings that have reached the API server.
func (s *slowServer) bindings() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.bound
}
