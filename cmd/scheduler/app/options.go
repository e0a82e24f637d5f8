package app

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"hekla.sh/hekla/internal/process"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// options are the values of the flags.
type options struct {
	master, kubeconfig string
	qps                float32
	burst              int

	schedulerNames        []string
	defaultQueue          string
	maxPlaceholderTimeout time.Duration
	nodeSelector          []string
	usePriorityClasses    bool
	schedulePeriod        time.Duration
	resourceSyncTimeout   time.Duration
	schedulerConf         string
	schedulerConfigMap    string
	disableDefaultConf    bool
	printConfig           bool
	listenAddress         string
	enableMetrics         bool
	enablePprof           bool
	healthzAddress        string
	enableHealthz         bool
	caFile                string
	certFile, keyFile     string
	election              process.Election
	authenticateMetrics   bool
	answersAddress        string
	answersService        string
	answersEndpoint       string
	webAddress            string
	featureGates          process.FeatureGates
	verbosity             int
	logFormat             string
	showVersion           bool
	ineffective           func() []string // the flags that were given and have no effect
}

func newOptions() *options {
	return &options{election: process.NewElection(schedulingv1beta1.DefaultSchedulerName)}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	o.featureGates.Add(flags)
	superseded := process.AddSuperseded(flags, volcanoFlags)
	o.ineffective = func() []string { return append(superseded(), o.featureGates.Ineffective()...) }
	flags.StringVar(&o.master, "master", "", "Address of the API server; overrides the one in the kubeconfig.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path of a kubeconfig. Empty uses the pod's own ServiceAccount.")
	flags.Float32Var(&o.qps, "kube-api-qps", 2000, "Requests per second to the API server at most.")
	flags.IntVar(&o.burst, "kube-api-burst", 2000, "Requests to the API server in a burst at most.")

	flags.StringArrayVar(&o.schedulerNames, "scheduler-name", []string{schedulingv1beta1.DefaultSchedulerName},
		"Place pods with this schedulerName; may be repeated.")
	flags.StringVar(&o.defaultQueue, "default-queue", schedulingv1beta1.DefaultQueue, "Queue of jobs that name none.")
	flags.DurationVar(&o.maxPlaceholderTimeout, "max-placeholder-timeout", yunikorn.DefaultGangTimeout,
		"How long nodes are held at most for pods of YuniKorn's task groups that do not exist yet, whatever placeholderTimeoutInSeconds says.")
	flags.StringSliceVar(&o.nodeSelector, "node-selector", nil,
		"Place pods only on nodes with one of these labels, each as key:value. Empty uses all nodes.")
	flags.BoolVar(&o.usePriorityClasses, "priority-class", true, "Let the PriorityClass of a PodGroup rank its job.")
	flags.DurationVar(&o.schedulePeriod, "schedule-period", time.Second,
		"Longest time between two cycles. Events start one at once.")
	flags.DurationVar(&o.resourceSyncTimeout, "resource-sync-timeout", time.Minute,
		"How long the first lists of all objects may take. After that the process ends with an error that names what is "+
			"missing; it never schedules without. 0 waits for as long as it takes.")

	flags.StringVar(&o.schedulerConf, "scheduler-conf", "",
		"File with actions, tiers and arguments. A change is in force within a second or two.")
	flags.StringVar(&o.schedulerConfigMap, "scheduler-configmap", "",
		"ConfigMap to read them from instead, as NAMESPACE/NAME; its key is "+configurationKey+".")
	flags.BoolVar(&o.disableDefaultConf, "disable-default-scheduler-config", false,
		"End with an error if there is no usable configuration at the start, rather than use the default.")
	flags.BoolVar(&o.printConfig, "print-config", false, "Print the configuration that would be in force, and exit.")

	flags.StringVar(&o.listenAddress, "listen-address", ":8080", "Address of /metrics.")
	flags.BoolVar(&o.enableMetrics, "enable-metrics", false, "Serve /metrics.")
	flags.BoolVar(&o.authenticateMetrics, "authenticate-metrics", false,
		"Serve /metrics and /debug/pprof/ by HTTPS, and only to clients whose token the API server authenticates, and authorizes to get that path.")
	flags.BoolVar(&o.enablePprof, "enable-pprof", false, "Serve /debug/pprof/ on the address of /metrics.")
	flags.StringVar(&o.answersAddress, "answers-address", "",
		"Address where questions are answered by HTTPS (hekla why, try and diag), to those whom the API server permits. Empty answers none.")
	flags.StringVar(&o.answersService, "answers-service", "",
		"NAMESPACE/NAME of the Service by which the API server passes questions on. Empty leaves the API server alone.")
	flags.StringVar(&o.answersEndpoint, "answers-endpoint", "",
		"IP:PORT at which the Service finds this process. Empty: the Service names a host, and the port is that of --answers-address.")
	flags.StringVar(&o.webAddress, "web-address", "",
		"Address of the web page. It shows what the API server permits the reader, by the token that the reader gives. Without --tls-cert-file the "+
			"address must be on the loopback interface. Empty serves no page.")
	flags.StringVar(&o.healthzAddress, "healthz-address", ":11251", "Address of /healthz and /readyz.")
	flags.BoolVar(&o.enableHealthz, "enable-healthz", false, "Serve /healthz and /readyz.")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "Certificate with which to serve all these by HTTPS.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "", "Key that matches --tls-cert-file.")
	flags.StringVar(&o.caFile, "ca-cert-file", "",
		"With --tls-cert-file: authorities by which the certificate of a client is checked, if it sends one.")

	o.election.AddFlags(flags)
	flags.IntVarP(&o.verbosity, "v", "v", 0, process.VerbosityUsage)
	flags.StringVar(&o.logFormat, "log-format", process.AutomaticFormat, process.LogFormatUsage)
	flags.BoolVar(&o.showVersion, "version", false, "Print the version, and exit.")
}

// complete fills in what follows from other flags: schedulers of other names are no rivals.
func (o *options) complete() { o.election.Complete(strings.Join(o.schedulerNames, "-")) }

// validate says, flag by flag, what cannot be meant.
func (o *options) validate() error {
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
	if len(o.schedulerNames) == 0 || slices.Contains(o.schedulerNames, "") {
		invalid("scheduler-name", strings.Join(o.schedulerNames, ","), "a scheduler without a name has no pods")
	}
	if o.defaultQueue == "" {
		invalid("default-queue", "", "must be set")
	}
	if o.maxPlaceholderTimeout <= 0 {
		invalid("max-placeholder-timeout", o.maxPlaceholderTimeout, "must be above 0")
	}
	if o.schedulePeriod <= 0 {
		invalid("schedule-period", o.schedulePeriod, "must be above 0")
	}
	if o.resourceSyncTimeout < 0 {
		invalid("resource-sync-timeout", o.resourceSyncTimeout, "must not be negative")
	}
	if _, _, err := o.configMap(); err != nil {
		problems = append(problems, err)
	}
	for flag, address := range map[string]string{"listen-address": o.listenAddress, "healthz-address": o.healthzAddress} {
		if _, _, err := net.SplitHostPort(address); err != nil {
			invalid(flag, address, "must be HOST:PORT or :PORT")
		}
	}
	if (o.certFile == "") != (o.keyFile == "") {
		invalid("tls-cert-file", o.certFile, "needs --tls-private-key-file, and the other way round")
	}
	if o.caFile != "" && o.certFile == "" {
		invalid("ca-cert-file", o.caFile, "has no meaning without --tls-cert-file")
	}
	problems = append(problems, process.CheckLog(o.verbosity, o.logFormat)...)
	o.validateAnswers(invalid)
	problems = append(problems, o.election.Validate()...)
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// configMap returns where the ConfigMap is; both are empty if none is given.
func (o *options) configMap() (namespace, name string, err error) {
	if o.schedulerConfigMap == "" {
		return "", "", nil
	}
	namespace, name, ok := strings.Cut(o.schedulerConfigMap, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("--scheduler-configmap=%s: must be NAMESPACE/NAME", o.schedulerConfigMap)
	}
	return namespace, name, nil
}
