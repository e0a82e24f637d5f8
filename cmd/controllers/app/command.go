package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"hekla.sh/hekla/internal/controllers"
	"hekla.sh/hekla/internal/process"
	"hekla.sh/hekla/internal/version"
	"hekla.sh/hekla/pkg/apis"
)

// Setup adds a controller of a program's own to the manager that runs those of Hekla. It shares their caches,
// leadership and metrics, and its scheme has Kubernetes' types and those of pkg/apis. The cache holds of a pod only its
// metadata and what Hekla's controllers read: requests, node, priority class, phase and container states. An error ends
// the start.
type Setup func(manager.Manager) error

// NewCommand returns the controllers as a command, together with those of others, and the webhooks as its subcommand
// "admission". Its context is the request to stop.
func NewCommand(others ...Setup) *cobra.Command {
	o := newOptions()
	command := &cobra.Command{
		Use:   "hekla-controllers",
		Short: "Run the controllers of Hekla: Jobs, PodGroups of lone pods, Queues",
		Args:  process.NoArguments,
		// A mistake in the configuration of a server deserves a sentence, not a page of flags.
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if o.showVersion {
				_, err := fmt.Fprintln(command.OutOrStdout(), "hekla-controllers", version.Version)
				return err
			}
			o.election.Complete(o.election.ResourceName)
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(command.Context(), others)
		},
	}
	o.addFlags(command.Flags())
	command.AddCommand(newAdmissionCommand())
	// It is a server: its flags need no completion, and it needs no help command.
	command.CompletionOptions.DisableDefaultCmd = true
	return command
}

// run runs the controllers until the context ends or leadership is lost; the latter is an error.
func (o *options) run(ctx context.Context, others []Setup) error {
	logger, err := process.Log(o.verbosity, o.logFormat)
	if err != nil {
		return err
	}
	logf.SetLogger(logger)
	for _, sentence := range o.ineffective() {
		logger.Info("Warning: " + sentence)
	}
	restConfig, err := o.clientConfig()
	if err != nil {
		return err
	}
	process.LeaveCores()
	if err := manage(ctx, restConfig, o, logger, true, metrics.Registry, others); err != nil {
		logger.Error(err, "Controllers end")
		return err
	}
	logger.Info("Controllers end", "reason", "they were asked to stop")
	return nil
}

// Run runs the controllers as the command with these flags does, on a connection that the caller has made and with the
// caller's log. It leaves the process as it is and shows no metrics of its own, so that there may be several in one.
// Its caches fill when it leads, not before: the library holds locks while it waits for those of a replica, and in a
// bubble of testing/synctest that would be for ever.
func Run(ctx context.Context, connection *rest.Config, logger logr.Logger, flags []string, others ...Setup) error {
	o := newOptions()
	set := pflag.NewFlagSet("hekla-controllers", pflag.ContinueOnError)
	o.addFlags(set)
	if err := set.Parse(flags); err != nil {
		return err
	}
	o.election.Complete(o.election.ResourceName)
	if err := o.validate(); err != nil {
		return err
	}
	return manage(ctx, connection, o, logger, false, nil, others)
}

// manage runs the manager with all controllers. Their own numbers are shown by the registerer, if there is one.
func manage(ctx context.Context, connection *rest.Config, o *options, logger logr.Logger, warmsUp bool, registerer prometheus.Registerer,
	others []Setup) error {
	mgr, err := newManager(connection, o, warmsUp, logger)
	if err != nil {
		return err
	}
	for _, setup := range others {
		if err := setup(mgr); err != nil {
			return err
		}
	}
	controllerOptions, err := o.controllerOptions()
	if err != nil {
		return err
	}
	controllerOptions.Registerer = registerer
	if err := controllers.Add(mgr, controllerOptions); err != nil {
		return err
	}
	return keep(ctx, mgr)
}

// keep runs the manager until the context ends. The library does not stop while it waits for the first lists: it would
// keep a core busy until they have come. Nothing is begun by then, so the manager is left as it is.
func keep(ctx context.Context, mgr manager.Manager) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	isFull := make(chan struct{})
	go func() {
		if mgr.GetCache().WaitForCacheSync(running) {
			close(isFull)
			<-ctx.Done()
		}
		stop()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-isFull:
		return <-ended
	default:
		return nil
	}
}

func (o *options) clientConfig() (*rest.Config, error) {
	restConfig, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("no way to the API server (--kubeconfig=%q, --master=%q): %w", o.kubeconfig, o.master, err)
	}
	restConfig.QPS, restConfig.Burst = o.qps, o.burst
	restConfig.UserAgent = "hekla-controllers"
	return restConfig, nil
}

func newManager(restConfig *rest.Config, o *options, warmsUp bool, logger logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apis.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	skip := true
	election := o.election
	served := metricsOptions(addressIf(o.enableMetrics, o.listenAddress), o.authenticateMetrics)
	if o.enablePprof {
		served.ExtraHandlers = process.Profiles()
	}
	mgr, err := manager.New(restConfig, manager.Options{
		Scheme:                 scheme,
		Cache:                  controllers.CacheOptions(),
		Logger:                 logger,
		HealthProbeBindAddress: addressIf(o.enableHealthz, o.healthzAddress),
		Metrics:                served,
		// A replica that waits keeps its caches full, so that it takes over at once.
		// The library would refuse a second manager in the process, since its names are those of metrics.
		Controller:                    controllerconfig.Controller{EnableWarmup: &warmsUp, SkipNameValidation: &skip},
		LeaderElection:                election.LeaderElect,
		LeaderElectionResourceLock:    election.ResourceLock,
		LeaderElectionID:              election.ResourceName,
		LeaderElectionNamespace:       election.ResourceNamespace,
		LeaseDuration:                 &election.LeaseDuration.Duration,
		RenewDeadline:                 &election.RenewDeadline.Duration,
		RetryPeriod:                   &election.RetryPeriod.Duration,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	err = errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", cachesAreFull(mgr.GetCache())))
	return mgr, err
}

// cachesAreFull is the readiness of a replica: it has seen everything there is, whether it leads or waits.
func cachesAreFull(cache cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		if !cache.WaitForCacheSync(request.Context()) {
			return errors.New("the caches are not full yet")
		}
		return nil
	}
}

// authenticateMetricsUsage is of the webhook server, which serves no profiles.
const authenticateMetricsUsage = "Serve /metrics by HTTPS, and only to clients whose token the API server authenticates, and authorizes to get that path."

// metricsPath is where the library serves metrics.
const metricsPath = "/metrics"

// metricsOptions say how metrics are served: to all clients, or to those that the API server permits to get them.
func metricsOptions(address string, authenticates bool) metricsserver.Options {
	options := metricsserver.Options{BindAddress: address, FilterProvider: withoutBadSeries}
	if authenticates {
		options.SecureServing = true // a token is not sent in the clear
		options.FilterProvider = func(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
			authenticate, err := filters.WithAuthenticationAndAuthorization(config, client)
			if err != nil {
				return nil, err
			}
			return func(logger logr.Logger, handler http.Handler) (http.Handler, error) {
				return authenticate(logger, inPlaceOf(handler))
			}, nil
		}
	}
	return options
}

// withoutBadSeries is a filter of the server of metrics by which [process.Metrics] answers.
func withoutBadSeries(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(_ logr.Logger, handler http.Handler) (http.Handler, error) { return inPlaceOf(handler), nil }, nil
}

// inPlaceOf serves the metrics in place of a handler, and what else that serves as it does. The library's own handler
// shows nothing if one series cannot be shown, and takes no other.
func inPlaceOf(handler http.Handler) http.Handler {
	shown := process.Metrics(metrics.Registry)
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.URL.Path == metricsPath {
			shown.ServeHTTP(response, request)
		} else {
			handler.ServeHTTP(response, request)
		}
	})
}

// addressIf returns the address, or what switches a server off.
func addressIf(enabled bool, address string) string {
	if enabled {
		return address
	}
	return "0"
}
