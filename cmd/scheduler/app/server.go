package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"hekla.sh/hekla/internal/keypair"
	"hekla.sh/hekla/internal/process"
)

// certificateLife is that of the certificate of the metrics, which no client verifies and nothing renews.
const certificateLife = 10 * 365 * 24 * time.Hour

// server serves over HTTP until it is closed.
type server struct {
	http     *http.Server
	listener net.Listener
}

// serve serves what all clients may see.
func (o *options) serve(address string, handler http.Handler, logger logr.Logger) (*server, error) {
	settings, err := o.tls()
	if err != nil {
		return nil, err
	}
	return serve(address, handler, settings, logger)
}

// serve opens an address at once, so that one in use is an error of the start, and serves in the background; by HTTPS
// if there are settings for that.
func serve(address string, handler http.Handler, settings *tls.Config, logger logr.Logger) (*server, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve on %s: %w", address, err)
	}
	if settings != nil {
		listener = tls.NewListener(listener, settings)
	}
	// A profile takes as long as it is asked to, everything else milliseconds.
	s := &server{listener: listener, http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 14,
	}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error(err, "Serving ended", "address", address)
		}
	}()
	return s, nil
}

// serveMetrics serves metrics and profiles: to all clients, or to those that the API server permits to get the path.
func (o *options) serveMetrics(restConfig *rest.Config, handler http.Handler, logger logr.Logger) (*server, error) {
	settings, err := o.tls()
	if err != nil {
		return nil, err
	}
	if !o.authenticateMetrics {
		return serve(o.listenAddress, handler, settings, logger)
	}
	client, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return nil, err
	}
	filter, err := filters.WithAuthenticationAndAuthorization(restConfig, client)
	if err != nil {
		return nil, fmt.Errorf("--authenticate-metrics: %w", err)
	}
	if handler, err = filter(logger.WithName("metrics"), handler); err != nil {
		return nil, fmt.Errorf("--authenticate-metrics: %w", err)
	}
	if settings == nil { // a token is not sent in the clear
		pair, err := keypair.Serving(time.Now(), certificateLife, "localhost", []string{"localhost"}, keypair.Pair{})
		if err != nil {
			return nil, fmt.Errorf("--authenticate-metrics: %w", err)
		}
		settings = &tls.Config{Certificates: []tls.Certificate{*pair.TLS()}, MinVersion: tls.VersionTLS12}
	}
	return serve(o.listenAddress, handler, settings, logger)
}

// address is where the server listens.
func (s *server) address() string { return s.listener.Addr().String() }

func (s *server) close() { _ = s.http.Close() }

// tls returns the settings for HTTPS, nil if there is no certificate.
func (o *options) tls() (*tls.Config, error) {
	if o.certFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file=%s, --tls-private-key-file=%s: %w", o.certFile, o.keyFile, err)
	}
	settings := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if o.caFile == "" {
		return settings, nil
	}
	authorities, err := os.ReadFile(o.caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-cert-file: %w", err)
	}
	settings.ClientCAs, settings.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !settings.ClientCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("--ca-cert-file=%s: it holds no certificate", o.caFile)
	}
	return settings, nil
}

// metricsHandler serves metrics and, if asked for, profiles.
func (o *options) metricsHandler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	if o.enableMetrics {
		mux.Handle("GET /metrics", metrics)
	}
	if o.enablePprof {
		for path, handler := range process.Profiles() {
			mux.Handle("GET "+path, handler)
		}
	}
	return mux
}

// healthHandler serves what the kubelet asks. If a process is ready but not as its configuration asks, warning says
// why.
func healthHandler(isAlive, isReady func() error, warning func() string) http.Handler {
	answer := func(check func() error, detail func() string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			text := "ok"
			if said := detail(); said != "" {
				text += "\nwarning: " + said
			}
			_, _ = w.Write([]byte(text))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", answer(isAlive, func() string { return "" }))
	mux.HandleFunc("GET /readyz", answer(isReady, warning))
	return mux
}
