package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hekla.sh/hekla/internal/admission"
	"hekla.sh/hekla/internal/admission/certificates"
	"hekla.sh/hekla/internal/process"
	"hekla.sh/hekla/internal/version"
	"hekla.sh/hekla/pkg/apis"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// admissionInterval is how often certificates and registration are looked at: soon enough to mend what another client
// has broken, and next to nothing for the API server.
const admissionInterval = 10 * time.Second

// admissionOptions are the values of the flags of the webhook server.
type admissionOptions struct {
	master, kubeconfig string
	qps                float32
	burst              int
	certFile           string
	keyFile            string
	bundleFile         string
	host               string
	port               int
	namespace          string
	serviceName        string
	url                string
	enabled            []string
	schedulerNames     []string
	configFile         string
	schedulerConfigMap string
	maxQueueDepth      int
	keepsUsedQueues    bool
	cronJobInterval    time.Duration
	keepsOpenQueues    bool
	healthzAddress     string
	enableHealthz      bool
	metricsAddress     string
	enableMetrics      bool
	authenticates      bool
	gracefulShutdown   time.Duration
	verbosity          int
	logFormat          string
	showVersion        bool
	featureGates       process.FeatureGates
	// ineffective says which flags were given that change nothing.
	ineffective func() []string
}

func newAdmissionCommand() *cobra.Command {
	o := &admissionOptions{}
	command := &cobra.Command{
		Use:   "admission",
		Short: "Serve the admission webhooks: defaults and checks for Jobs, Queues, PodGroups and pods",
		Args:  process.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if o.showVersion {
				_, err := fmt.Fprintln(command.OutOrStdout(), "hekla-controllers", version.Version)
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(command.Context())
		},
	}
	o.addFlags(command.Flags())
	return command
}

// addFlags declares the flags under the names that vc-webhook-manager gives them.
func (o *admissionOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.master, "master", "", "Address of the API server; overrides the one in the kubeconfig.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path of a kubeconfig. Empty uses the pod's own ServiceAccount.")
	flags.Float32Var(&o.qps, "kube-api-qps", 50, "Requests per second to the API server at most.")
	flags.IntVar(&o.burst, "kube-api-burst", 100, "Requests to the API server in a burst at most.")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "Certificate of the server, if others make and renew it.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "Private key of that certificate.")
	flags.StringVar(&o.bundleFile, "ca-cert-file", "", "Authorities that the API server is to trust with that certificate.")
	flags.StringVar(&o.host, "listen-address", "", "Address to listen on. Empty is every address of the machine.")
	flags.IntVar(&o.port, "port", 8443, "Port to listen on.")
	flags.StringVar(&o.namespace, "webhook-namespace", "volcano-system", "Namespace of the Service, and of the Secret with the certificates.")
	flags.StringVar(&o.serviceName, "webhook-service-name", "volcano-admission-service", "Service by which the API server finds the server.")
	flags.StringVar(&o.url, "webhook-url", "", "Where the API server finds the server, if there is no Service: https://host:port.")
	flags.StringSliceVar(&o.enabled, "enabled-admission", admission.DefaultEnabled(),
		"What to serve. There are "+strings.Join(admission.Paths(), ", ")+".")
	flags.StringSliceVar(&o.schedulerNames, "scheduler-name", []string{scheduling.DefaultSchedulerName},
		"Name our scheduler goes by; repeat it, or separate by commas, for several.")
	flags.StringVar(&o.configFile, "admission-conf", "", "File with the resource groups of pods.")
	flags.StringVar(&o.schedulerConfigMap, "scheduler-configmap", defaultSchedulerConfigMap, schedulerConfigMapUsage)
	flags.IntVar(&o.maxQueueDepth, "max-queue-depth", 5, "How many levels of queues there may be below root.")
	flags.BoolVar(&o.keepsUsedQueues, "enable-queue-allocated-pods-check", false,
		"Refuse to delete queues in which pods hold room.")
	flags.BoolVar(&o.keepsOpenQueues, "enable-queue-closed-before-delete-check", false, "Refuse to delete queues that are open.")
	flags.DurationVar(&o.cronJobInterval, "shortest-cronjob-interval", 10*time.Second,
		"Refuse CronJobs whose runs would be closer together, up to 1m. 0 allows all. The controllers have the same flag.")
	flags.StringVar(&o.healthzAddress, "healthz-address", ":11251", "Address of /healthz and /readyz.")
	flags.BoolVar(&o.enableHealthz, "enable-healthz", false, "Serve /healthz and /readyz.")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8081", "Address of /metrics.")
	flags.BoolVar(&o.enableMetrics, "enable-metrics", false, "Serve /metrics.")
	flags.BoolVar(&o.authenticates, "authenticate-metrics", false, authenticateMetricsUsage)
	flags.DurationVar(&o.gracefulShutdown, "graceful-shutdown-time", 30*time.Second, "How long requests under way may take when the server stops.")
	flags.IntVarP(&o.verbosity, "v", "v", 0, process.VerbosityUsage)
	flags.StringVar(&o.logFormat, "log-format", process.AutomaticFormat, process.LogFormatUsage)
	flags.BoolVar(&o.showVersion, "version", false, "Print the version, and exit.")
	flags.IntVar(&o.port, "admission-port", 8443, "Another name for --port.")
	_ = flags.MarkHidden("admission-port") // it is there
	o.featureGates.Add(flags)
	superseded := process.AddSuperseded(flags, []process.Superseded{
		{Name: "enable-root-queue-protection", Placeholder: "true",
			Reason: "the ValidatingAdmissionPolicy volcano-root-queue protects the resources of root; delete its binding to stop that"},
		{Name: "enable-cascade-child-queue-close", Placeholder: "false", Reason: "queues below a closed one are always closed, and open with it"},
	})
	o.ineffective = func() []string { return append(superseded(), o.featureGates.Ineffective()...) }
}

// validate says, flag by flag, what cannot be meant.
func (o *admissionOptions) validate() error {
	var problems []error
	invalid := func(flag string, value any, why string) {
		problems = append(problems, fmt.Errorf("--%s=%v: %s", flag, value, why))
	}
	if o.qps <= 0 {
		invalid("kube-api-qps", o.qps, "must be above 0")
	}
	if o.burst < 1 {
		invalid("kube-api-burst", o.burst, "must be at least 1")
	}
	if o.port < 1 || o.port > 65535 {
		invalid("port", o.port, "must be from 1 to 65535")
	}
	if o.gracefulShutdown <= 0 {
		invalid("graceful-shutdown-time", o.gracefulShutdown, "must be above 0")
	}
	if o.cronJobInterval < 0 || o.cronJobInterval > time.Minute {
		invalid("shortest-cronjob-interval", o.cronJobInterval, "must be from 0 to 1m")
	}
	problems = append(problems, process.CheckLog(o.verbosity, o.logFormat)...)
	for _, path := range o.enabled {
		if !slices.Contains(admission.Paths(), path) {
			invalid("enabled-admission", path, "there are "+strings.Join(admission.Paths(), ", "))
		}
	}
	if !isNamespacedName(o.schedulerConfigMap) {
		invalid("scheduler-configmap", o.schedulerConfigMap, "must be NAMESPACE/NAME")
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	options := o.options()
	return options.Validate()
}

// options translates the flags for the server.
func (o *admissionOptions) options() admission.Options {
	return admission.Options{
		Enabled: o.enabled, SchedulerNames: o.schedulerNames, ConfigFile: o.configFile,
		SchedulerConfigMap: keyOf(o.schedulerConfigMap),
		GatesPods:          o.featureGates[process.QueueAdmissionGates], MaxQueueDepth: o.maxQueueDepth,
		ShortestCronJobInterval: o.cronJobInterval,
		KeepsUsedQueues:         o.keepsUsedQueues, KeepsOpenQueues: o.keepsOpenQueues,
		Namespace: o.namespace, ServiceName: o.serviceName, URL: o.url, Address: net.JoinHostPort(o.host, strconv.Itoa(o.port)),
		SecretName: "volcano-admission-secret", CertificateFile: o.certFile, KeyFile: o.keyFile, BundleFile: o.bundleFile,
		Life: certificates.DefaultLife(), Interval: admissionInterval, ShutdownTimeout: o.gracefulShutdown,
	}
}

// run serves until the context ends.
func (o *admissionOptions) run(ctx context.Context) error {
	logger, err := process.Log(o.verbosity, o.logFormat)
	if err != nil {
		return err
	}
	logf.SetLogger(logger)
	for _, sentence := range o.ineffective() {
		logger.Info("Warning: " + sentence)
	}
	restConfig, err := (&options{master: o.master, kubeconfig: o.kubeconfig, qps: o.qps, burst: o.burst}).clientConfig()
	if err != nil {
		return err
	}
	restConfig.UserAgent = "hekla-admission"
	mgr, err := o.newManager(restConfig, logger)
	if err != nil {
		return err
	}
	ready, err := admission.Add(mgr, o.options())
	if err != nil {
		return err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", cachesAreFull(mgr.GetCache())),
		mgr.AddReadyzCheck("webhooks", ready)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (o *admissionOptions) newManager(restConfig *rest.Config, logger logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apis.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	return manager.New(restConfig, manager.Options{
		Scheme: scheme,
		Logger: logger,
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// The Secret and the configurations are read when they are about to be written, from the API server itself.
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		HealthProbeBindAddress:  addressIf(o.enableHealthz, o.healthzAddress),
		Metrics:                 metricsOptions(addressIf(o.enableMetrics, o.metricsAddress), o.authenticates),
		GracefulShutdownTimeout: &o.gracefulShutdown,
	})
}
