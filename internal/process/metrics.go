package process

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// mostScrapes are answered at a time; further ones are told to come later.
const mostScrapes = 2

// Registry has the metrics of a program.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Metrics serves the metrics of a registry. A series that cannot be shown is left out, and counted in
// promhttp_metric_handler_errors_total of the same registry: the others must not go with it.
func Metrics(registry Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: mostScrapes, Registry: registry, ErrorHandling: promhttp.ContinueOnError})
}
