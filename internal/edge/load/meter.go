package load

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/pkg/cluster/cache"
)

const (
	// defaultInterval is the interval of requests if the block sets none (source: Volcano).
	defaultInterval = 30 * time.Second
	// patience limits the time of one request.
	patience = 10 * time.Second
	// maxAnswer limits an answer in bytes: some kilobytes for each of ten thousand nodes.
	maxAnswer = 32 << 20
	// window is the time over which sources average loads, if they can (source: Volcano).
	window = "10m"
)

// source is a server that measures nodes.
type source interface {
	// read returns the loads of all its nodes.
	read(ctx context.Context) ([]cache.Measured, error)
}

// Meter asks a source at intervals. Its zero value is not ready for use.
type Meter struct {
	api    *rest.Config
	report func(...cache.Measured)
	logger logr.Logger
	blocks chan map[string]string // holds the newest that was not taken
}

// New returns a meter without a source, which [Meter.Use] sets. It asks only while [Meter.Run] runs. api is the
// connection to the API server.
func New(api *rest.Config, report func(...cache.Measured), logger logr.Logger) *Meter {
	return &Meter{api: api, report: report, logger: logger, blocks: make(chan map[string]string, 1)}
}

// Use puts a `metrics` block in force; nil asks no source. It does not wait. Only one goroutine may call it.
func (m *Meter) Use(block map[string]string) {
	select {
	case <-m.blocks:
	default:
	}
	m.blocks <- block
}

// Run asks until the context ends.
func (m *Meter) Run(ctx context.Context) {
	var block map[string]string
	for ctx.Err() == nil {
		block = m.runBlock(ctx, block)
	}
}

// runBlock asks the source of a block until there is another block, which it returns.
func (m *Meter) runBlock(ctx context.Context, block map[string]string) (next map[string]string) {
	asking, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.ask(asking, block)
	}()
	defer func() {
		stop()
		<-ended
	}()
	select {
	case <-ctx.Done():
	case next = <-m.blocks:
	}
	return next
}

// ask asks the source of a block until the context ends.
func (m *Meter) ask(ctx context.Context, block map[string]string) {
	if len(block) == 0 {
		return
	}
	s, err := m.source(block)
	if err != nil {
		m.logger.Error(err, "How busy nodes are will not be known")
		return
	}
	interval := defaultInterval
	if given, err := time.ParseDuration(block["interval"]); err == nil && given > 0 {
		interval = given
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	problem := ""
	for {
		measured, err := readOnce(ctx, s)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != problem:
			problem = err.Error()
			m.logger.Error(err, "How busy nodes are could not be found out", "retryAfter", interval.String())
		case err == nil && problem != "":
			problem = ""
			m.logger.Info("How busy nodes are is known again", "nodes", len(measured))
		}
		m.report(measured...)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func readOnce(ctx context.Context, s source) ([]cache.Measured, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	measured, err := s.read(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return measured, err
}

// source returns the source that a block names.
func (m *Meter) source(block map[string]string) (source, error) {
	switch block["type"] {
	case "", "prometheus":
		return newPrometheus(block)
	case "elasticsearch":
		return newElasticsearch(block)
	case "prometheus_adaptor":
		return newCustomMetrics(m.api)
	case "metrics_server":
		return newMetricsServer(m.api)
	}
	return nil, fmt.Errorf("metrics: type is %q, which nothing here knows", block["type"])
}
