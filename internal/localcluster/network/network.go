package network

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Effect is what happens to a request. The zero value lets it pass.
type Effect struct {
	// Delay is how long the request takes until it is passed on; of a watch, how long each event takes.
	Delay time.Duration
	// Refused requests are answered 503 and not passed on.
	Refused bool
	// Lost is the answer: the request is passed on and carried out, and then the connection breaks.
	Lost bool
}

// Network is a network in front of an API server. Its methods may be called from several goroutines at once.
type Network struct {
	next *httputil.ReverseProxy

	mutex  sync.Mutex
	effect func(*http.Request) Effect
	cut    chan struct{} // nil unless the network is cut; closed when it is whole again
}

// To returns a network in front of the API server of a configuration. The requests have the credentials of that, if it
// has any, and otherwise those that clients send.
func To(config *rest.Config) (*Network, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	n := &Network{next: httputil.NewSingleHostReverseProxy(target)}
	n.next.Transport, n.next.FlushInterval = transport, -1
	n.next.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	return n, nil
}

// SetEffect has a function say what happens to each request from now on; nil for nothing. It may be called from several
// goroutines at once.
func (n *Network) SetEffect(effect func(*http.Request) Effect) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.effect = effect
}

// Sever cuts the network: nothing passes, also of what has begun, and neither side is told.
func (n *Network) Sever() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.cut == nil {
		n.cut = make(chan struct{})
	}
}

// Heal undoes Sever.
func (n *Network) Heal() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.cut != nil {
		close(n.cut)
		n.cut = nil
	}
}

// IsWatch reports whether a request asks for events.
func IsWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// lets waits as long as the network takes, and reports whether the client still waits.
func (n *Network) lets(ctx context.Context, delay time.Duration) bool {
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
	n.mutex.Lock()
	cut := n.cut
	n.mutex.Unlock()
	if cut != nil {
		select {
		case <-cut:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// pass ends the request if its client does not wait any more.
func (n *Network) pass(ctx context.Context, delay time.Duration) {
	if !n.lets(ctx, delay) {
		panic(http.ErrAbortHandler)
	}
}

// ServeHTTP passes a request on.
func (n *Network) ServeHTTP(reply http.ResponseWriter, request *http.Request) {
	n.mutex.Lock()
	effectOf := n.effect
	n.mutex.Unlock()
	var effect Effect
	if effectOf != nil {
		effect = effectOf(request)
	}
	switch {
	case effect.Refused:
		n.pass(request.Context(), 0)
		http.Error(reply, "refused on purpose", http.StatusServiceUnavailable)
	case IsWatch(request):
		n.pass(request.Context(), 0)
		late := &lateEvents{ResponseWriter: reply, chunks: make(chan chunk, 1<<12), delay: effect.Delay}
		var writer sync.WaitGroup
		writer.Go(func() { late.deliver(request.Context(), n) })
		defer writer.Wait()
		defer close(late.chunks)
		n.next.ServeHTTP(late, request)
	case effect.Lost:
		n.pass(request.Context(), effect.Delay)
		n.next.ServeHTTP(unread{reply.Header().Clone()}, request)
		panic(http.ErrAbortHandler)
	default:
		n.pass(request.Context(), effect.Delay)
		n.next.ServeHTTP(reply, request)
		n.pass(request.Context(), 0)
	}
}

// unread is where an answer goes that is lost.
type unread struct{ header http.Header }

func (u unread) Header() http.Header            { return u.header }
func (unread) Write(answer []byte) (int, error) { return len(answer), nil }
func (unread) WriteHeader(int)                  {}

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

func (e *lateEvents) deliver(ctx context.Context, n *Network) {
	for c := range e.chunks {
		if !n.lets(ctx, time.Until(c.sent.Add(e.delay))) {
			continue
		}
		if _, err := e.ResponseWriter.Write(c.text); err == nil {
			_ = http.NewResponseController(e.ResponseWriter).Flush()
		}
	}
}
