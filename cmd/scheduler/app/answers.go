package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/answers"
	"hekla.sh/hekla/internal/answers/gate"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/internal/answers/relay"
	"hekla.sh/hekla/internal/web"
)

// answerer returns what answers questions, for all addresses on which they are asked.
func (o *options) answerer(ctx context.Context, client kubernetes.Interface, r *runner, logger logr.Logger) (*answers.Server, error) {
	asked, err := gate.New(client)
	if err != nil {
		return nil, fmt.Errorf("--answers-address, --web-address: %w", err)
	}
	go asked.Run(ctx)
	server := answers.New(r.scheduler.Questions(), asked, logger)
	server.Diagnoses(r.diagnose)
	server.Snapshots(r.snapshot)
	server.LedBy(r.leader)
	server.Leads(func() time.Time { return time.Unix(0, r.since.Load()) })
	server.Charts(r.charts)
	return server, nil
}

// publication is what the API server needs to pass questions on to this process.
func (o *options) publication(client kubernetes.Interface, r *runner, logger logr.Logger) (*publish.Publication, error) {
	namespace, service, _ := strings.Cut(o.answersService, "/")
	publication, err := publish.New(client, publish.Options{
		Namespace: namespace, Service: service, APIService: publish.APIService, Further: publish.Visibility(), Endpoint: o.answersEndpoint, Port: portOf(o.answersAddress), Leads: r.isSynced.Load,
		Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("--answers-address: %w", err)
	}
	return publication, nil
}

// serveAnswers serves answers on their address, by HTTPS, and publishes that. A process that does not lead answers that
// it cannot answer, if no other answers at all.
func (o *options) serveAnswers(ctx context.Context, publication *publish.Publication, r *runner, handler http.Handler, logger logr.Logger) (*server, error) {
	if o.answersService != "" {
		poke := publication.Poke
		r.announce.Store(&poke)
		go publication.Run(ctx)
	}
	return serve(o.answersAddress, handler, publication.TLS(), logger)
}

// openQuestions serves questions while the scheduler starts, which need not wait for keys and for what the API
// server says about users. fail ends the scheduler if they cannot be served. The function that is returned closes what
// is served, and says why nothing is.
func (o *options) openQuestions(ctx context.Context, client kubernetes.Interface, r *runner, logger logr.Logger, fail context.CancelCauseFunc) func() error {
	var served []*server
	var err error
	isDone := make(chan struct{})
	r.isOpening.Store(true)
	go func() {
		defer close(isDone)
		if served, err = o.serveQuestions(ctx, client, r, logger); err != nil {
			fail(err)
		}
		r.isOpening.Store(false)
	}()
	return func() error {
		<-isDone
		for _, s := range served {
			s.close()
		}
		return err
	}
}

// serveQuestions serves answers and the web page, each on its address if it has one. The caller closes what is served.
func (o *options) serveQuestions(ctx context.Context, client kubernetes.Interface, r *runner, logger logr.Logger) (served []*server, err error) {
	if o.answersAddress == "" && o.webAddress == "" {
		return nil, nil
	}
	answerer, err := o.answerer(ctx, client, r, logger)
	if err != nil {
		return nil, err
	}
	onPage := answerer.Handler()
	if o.answersAddress != "" {
		publication, err := o.publication(client, r, logger)
		if err != nil {
			return served, err
		}
		s, err := o.serveAnswers(ctx, publication, r, answerer.Handler(), logger)
		if err != nil {
			return served, err
		}
		served = append(served, s)
		if o.answersService != "" {
			onPage = relay.Handler(onPage, r.isSynced.Load, publication.Published, logger.WithName("web"))
		}
	}
	if o.webAddress != "" {
		s, err := o.serve(o.webAddress, web.Handler(onPage), logger.WithName("web"))
		if err != nil {
			return served, fmt.Errorf("--web-address: %w", err)
		}
		served = append(served, s)
	}
	return served, nil
}

// isLoopback reports whether an address can be reached from this host only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// portOf returns the port of HOST:PORT, 0 if it is not one.
func portOf(address string) int {
	port, err := net.LookupPort("tcp", address[strings.LastIndex(address, ":")+1:])
	if err != nil {
		return 0
	}
	return port
}

// validateAnswers says what cannot be meant.
func (o *options) validateAnswers(invalid func(flag string, value any, why string)) {
	for flag, address := range map[string]string{"answers-address": o.answersAddress, "answers-endpoint": o.answersEndpoint, "web-address": o.webAddress} {
		if _, _, err := net.SplitHostPort(address); address != "" && (err != nil || portOf(address) == 0) {
			invalid(flag, address, "must be HOST:PORT or :PORT")
		}
	}
	if namespace, name, ok := strings.Cut(o.answersService, "/"); o.answersService != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		invalid("answers-service", o.answersService, "must be NAMESPACE/NAME")
	}
	if o.webAddress != "" && o.certFile == "" && !isLoopback(o.webAddress) {
		invalid("web-address", o.webAddress, "must be on the loopback interface, such as 127.0.0.1:8090, or come with --tls-cert-file: the page is sent tokens")
	}
	if o.answersAddress == "" && (o.answersService != "" || o.answersEndpoint != "") {
		invalid("answers-address", "", "must be set with --answers-service and --answers-endpoint")
	}
	if o.answersEndpoint != "" && o.answersService == "" {
		invalid("answers-endpoint", o.answersEndpoint, "has no meaning without --answers-service")
	}
}
