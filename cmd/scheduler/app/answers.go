package app

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/answers"
	"hekla.sh/hekla/internal/answers/gate"
	"hekla.sh/hekla/internal/answers/publish"
)

// serveAnswers serves answers on their address, by HTTPS, and publishes what the API server needs to pass questions on. A process that does not
// lead answers that it cannot answer, if no other answers at all.
func (o *options) serveAnswers(ctx context.Context, client kubernetes.Interface, r *runner, logger logr.Logger) (*server, error) {
	asked, err := gate.New(client)
	if err != nil {
		return nil, fmt.Errorf("--answers-address: %w", err)
	}
	go asked.Run(ctx)
	namespace, service, _ := strings.Cut(o.answersService, "/")
	publication, err := publish.New(client, publish.Options{
		Namespace: namespace, Service: service, APIService: publish.APIService, Endpoint: o.answersEndpoint, Port: portOf(o.answersAddress), Leads: r.isSynced.Load,
		Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("--answers-address: %w", err)
	}
	if o.answersService != "" {
		r.announce = publication.Poke
		go publication.Run(ctx)
	}
	server := answers.New(r.scheduler.Questions(), asked, logger)
	server.Diagnoses(r.diagnose)
	server.Snapshots(r.snapshot)
	return serve(o.answersAddress, server.Handler(), publication.TLS(), logger)
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
	for flag, address := range map[string]string{"answers-address": o.answersAddress, "answers-endpoint": o.answersEndpoint} {
		if _, _, err := net.SplitHostPort(address); address != "" && (err != nil || portOf(address) == 0) {
			invalid(flag, address, "must be HOST:PORT or :PORT")
		}
	}
	if namespace, name, ok := strings.Cut(o.answersService, "/"); o.answersService != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		invalid("answers-service", o.answersService, "must be NAMESPACE/NAME")
	}
	if o.answersAddress == "" && (o.answersService != "" || o.answersEndpoint != "") {
		invalid("answers-address", "", "must be set with --answers-service and --answers-endpoint")
	}
	if o.answersEndpoint != "" && o.answersService == "" {
		invalid("answers-endpoint", o.answersEndpoint, "has no meaning without --answers-service")
	}
}
