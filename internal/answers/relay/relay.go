// Package relay lets the web page of a process that does not lead show what the leader answers: it passes the questions
// of the page on to where the leader is published.
//
// Invariants:
//
//  1. A question is passed on with the credentials of its reader, and with nothing of this process or of a browser.
//  2. It goes only by HTTPS, to a process that has a certificate of the published authority.
//  3. What was passed on is not passed on again: only the page is relayed, and questions go to the address of answers.
//  4. If the leader is not known, or does not answer, this process says itself that it does not lead.
//
// It must not know questions and answers.
package relay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// life is how long the address of the leader is used until it is looked up again.
	life = 5 * time.Second
	// patience bounds the look-up, dialPatience a connection. An answer may take as long as the leader gives itself.
	patience, dialPatience = 5 * time.Second, 2 * time.Second
	// idleLife is how long a connection to the leader is kept while no page is read.
	idleLife = time.Minute
)

// passed are the headers of a question that the leader gets.
var passed = []string{"Authorization", "Accept", "Accept-Encoding"}

// Lookup finds the address of the leader, HOST:PORT, and the settings by which it is known.
type Lookup func(ctx context.Context) (address string, settings *tls.Config, err error)

// relay passes questions on.
type relay struct {
	own    http.Handler
	leads  func() bool
	lookUp Lookup
	logger logr.Logger

	mutex sync.Mutex
	found *leader
	at    time.Time // when it was looked up
}

// leader is where questions go.
type leader struct {
	address   string
	settings  *tls.Config
	transport *http.Transport
}

// Handler answers with own while this process leads. Otherwise it passes requests that read on to the leader.
func Handler(own http.Handler, leads func() bool, lookUp Lookup, logger logr.Logger) http.Handler {
	return &relay{own: own, leads: leads, lookUp: lookUp, logger: logger}
}

// ServeHTTP implements [http.Handler].
func (r *relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.leads() || request.Method != http.MethodGet {
		r.own.ServeHTTP(w, request)
		return
	}
	to, err := r.leader(request.Context())
	if err != nil {
		r.logger.V(1).Info("The leader is not known", "reason", err.Error())
		r.own.ServeHTTP(w, request)
		return
	}
	proxy := httputil.ReverseProxy{
		Transport: to.transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "https", Host: to.address})
			p.Out.Header = http.Header{"User-Agent": nil} // which would be that of Go
			for _, name := range passed {
				if values := p.In.Header.Values(name); len(values) > 0 {
					p.Out.Header[name] = values
				}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, request *http.Request, err error) {
			r.forget(to)
			r.logger.V(1).Info("The leader does not answer", "address", to.address, "reason", err.Error())
			r.own.ServeHTTP(w, request)
		},
	}
	proxy.ServeHTTP(w, request)
}

// leader returns where questions go now.
func (r *relay) leader(ctx context.Context) (*leader, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.found != nil && time.Since(r.at) < life {
		return r.found, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address, settings, err := r.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	r.at = time.Now()
	if was := r.found; was != nil {
		if was.address == address && was.settings.ServerName == settings.ServerName && was.settings.RootCAs.Equal(settings.RootCAs) {
			return was, nil
		}
		was.transport.CloseIdleConnections()
	}
	r.found = &leader{address: address, settings: settings, transport: &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true,
		DialContext: (&net.Dialer{Timeout: dialPatience}).DialContext, TLSHandshakeTimeout: dialPatience, IdleConnTimeout: idleLife, DisableCompression: true}}
	return r.found, nil
}

// forget makes the next question look the leader up again.
func (r *relay) forget(which *leader) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.found == which {
		r.found = nil
		which.transport.CloseIdleConnections()
	}
}
