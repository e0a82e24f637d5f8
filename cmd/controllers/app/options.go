package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"hekla.sh/hekla/internal/controllers"
	"hekla.sh/hekla/internal/controllers/cronjob"
	"hekla.sh/hekla/internal/controllers/garbagecollector"
	"hekla.sh/hekla/internal/controllers/hypernode"
	"hekla.sh/hekla/internal/controllers/job"
	"hekla.sh/hekla/internal/controllers/jobflow"
	"hekla.sh/hekla/internal/controllers/jobtemplate"
	"hekla.sh/hekla/internal/controllers/podgroup"
	"hekla.sh/hekla/internal/controllers/queue"
	"hekla.sh/hekla/internal/controllers/workload"
	"hekla.sh/hekla/internal/process"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// controllerNames are the controllers there are, under Volcano's names.
var controllerNames = []string{
	job.Name, podgroup.Name, queue.Name, jobflow.Name, jobtemplate.Name, hypernode.Name, cronjob.Name, garbagecollector.Name, workload.Name,
}

// Volcano has no flags for these. A JobFlow or a JobTemplate is looked at in no time: its Jobs do the work. Thousands
// of Workloads may be admitted at a time, and each job is started by a request.
const (
	jobFlowWorkers     = 5
	jobTemplateWorkers = 2
	workloadWorkers    = 10
)

// options are the values of the flags.
type options struct {
	master, kubeconfig      string
	qps                     float32
	burst                   int
	jobWorkers              int
	podGroupWorkers         int
	queueWorkers            int
	cronJobWorkers          int
	cronJobInterval         time.Duration
	garbageWorkers          int
	schedulerNames          []string
	inheritOwnerAnnotations bool
	yunikornLabels          bool
	defaultQueue            string
	allowUncheckedCommands  bool
	controllers             []string
	configMap               string
	schedulerConfigMap      string
	healthzAddress          string
	enableHealthz           bool
	listenAddress           string
	enableMetrics           bool
	authenticateMetrics     bool
	enablePprof             bool
	election                process.Election
	verbosity               int
	logFormat               string
	showVersion             bool
	ineffective             func() []string // the flags that were given and have no effect
}

func newOptions() *options { return &options{election: process.NewElection("vc-controller-manager")} }

func (o *options) addFlags(flags *pflag.FlagSet) {
	superseded := process.AddSuperseded(flags, volcanoFlags)
	o.ineffective = func() []string { return append(superseded(), o.missing()...) }
	flags.StringVar(&o.master, "master", "", "Address of the API server; overrides the one in the kubeconfig.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "Path of a kubeconfig. Empty uses the pod's own ServiceAccount.")
	// Not Volcano's 50 and 100, which would make a thousand pods wait twenty seconds: the API server's own priority
	// levels keep clients apart.
	flags.Float32Var(&o.qps, "kube-api-qps", 2000, "Requests per second to the API server at most.")
	flags.IntVar(&o.burst, "kube-api-burst", 2000, "Requests to the API server in a burst at most.")
	flags.IntVar(&o.jobWorkers, "worker-threads", 16, "How many Jobs to work on at a time.")
	flags.IntVar(&o.podGroupWorkers, "worker-threads-for-podgroup", 5,
		"How many PodGroups of lone pods to work on at a time.")
	flags.IntVar(&o.queueWorkers, "worker-threads-for-queue", 5, "How many Queues to work on at a time.")
	flags.IntVar(&o.cronJobWorkers, "worker-threads-for-cronjob", 3, "How many CronJobs to work on at a time.")
	flags.DurationVar(&o.cronJobInterval, "shortest-cronjob-interval", 10*time.Second,
		"How close together the runs of a CronJob may be, up to 1m: `@every 1s` is followed as if it said this. 0 allows all.")
	flags.IntVar(&o.garbageWorkers, "worker-threads-for-gc", 1, "How many Jobs to delete at a time when they have expired.")
	flags.StringSliceVar(&o.schedulerNames, "scheduler-name", []string{scheduling.DefaultSchedulerName},
		"Name our scheduler goes by; repeat it, or separate by commas, for several. "+
			"Pods of Jobs that name no scheduler get the first.")
	flags.BoolVar(&o.inheritOwnerAnnotations, "inherit-owner-annotations", true,
		"Let lone pods take queue, minimum and volcano.sh/ annotations from their owner.")
	flags.BoolVar(&o.yunikornLabels, "yunikorn-labels", false,
		"Let lone pods name their application and queue by the labels and annotations of YuniKorn.")
	flags.StringVar(&o.defaultQueue, "default-queue", scheduling.DefaultQueue, "Queue of lone pods for which nothing names one.")
	flags.BoolVar(&o.allowUncheckedCommands, "allow-unchecked-queue-commands", false,
		"Follow Commands for queues although the ValidatingAdmissionPolicy "+queue.CommandPolicy+" is not in force, which checks that "+
			"their author may update the queue: every user who may create Commands in namespace "+queue.CommandNamespace+" can close every queue.")
	flags.StringSliceVar(&o.controllers, "controllers", []string{"*"},
		"Controllers to run: * for all, NAME for one, -NAME to leave one out. There are "+
			strings.Join(controllerNames, ", ")+".")
	flags.StringVar(&o.configMap, "controller-configmap", "volcano-system/volcano-controller-configmap",
		"NAMESPACE/NAME of the ConfigMap that says by which labels of nodes HyperNodes are discovered. It need not exist.")
	flags.StringVar(&o.schedulerConfigMap, "scheduler-configmap", defaultSchedulerConfigMap, schedulerConfigMapUsage)
	flags.StringVar(&o.healthzAddress, "healthz-address", ":11251", "Address of /healthz and /readyz.")
	flags.BoolVar(&o.enableHealthz, "enable-healthz", false, "Serve /healthz and /readyz.")
	flags.StringVar(&o.listenAddress, "listen-address", ":8081", "Address of /metrics.")
	flags.BoolVar(&o.enableMetrics, "enable-metrics", false, "Serve /metrics.")
	flags.BoolVar(&o.authenticateMetrics, "authenticate-metrics", false,
		"Serve /metrics and /debug/pprof/ by HTTPS, and only to clients whose token the API server authenticates, and authorizes to get that path.")
	flags.BoolVar(&o.enablePprof, "enable-pprof", false, "Serve /debug/pprof/ on the address of /metrics, which needs --enable-metrics.")
	flags.IntVarP(&o.verbosity, "v", "v", 0, process.VerbosityUsage)
	flags.StringVar(&o.logFormat, "log-format", process.AutomaticFormat, process.LogFormatUsage)
	flags.BoolVar(&o.showVersion, "version", false, "Print the version, and exit.")
	o.election.AddFlags(flags)
}

// validate says, flag by flag, what cannot be meant.
func (o *options) validate() error {
	var problems []error
	invalid := func(flag string, value any, why string) {
		problems = append(problems, fmt.Errorf("--%s=%v: %s", flag, value, why))
	}
	positive := func(flag string, value int) {
		if value < 1 {
			invalid(flag, value, "must be at least 1")
		}
	}
	if o.qps <= 0 {
		invalid("kube-api-qps", o.qps, "must be above 0")
	}
	positive("kube-api-burst", o.burst)
	positive("worker-threads", o.jobWorkers)
	positive("worker-threads-for-podgroup", o.podGroupWorkers)
	positive("worker-threads-for-queue", o.queueWorkers)
	positive("worker-threads-for-cronjob", o.cronJobWorkers)
	positive("worker-threads-for-gc", o.garbageWorkers)
	if len(o.schedulerNames) == 0 || slices.Contains(o.schedulerNames, "") {
		invalid("scheduler-name", strings.Join(o.schedulerNames, ","), "a scheduler without a name has no pods")
	}
	if problems := validation.IsDNS1123Subdomain(o.defaultQueue); len(problems) > 0 {
		invalid("default-queue", o.defaultQueue, "is no name of a queue: "+problems[0])
	}
	if o.cronJobInterval < 0 || o.cronJobInterval > time.Minute {
		invalid("shortest-cronjob-interval", o.cronJobInterval, "must be from 0 to 1m")
	}
	if o.enablePprof && !o.enableMetrics {
		invalid("enable-pprof", o.enablePprof, "needs --enable-metrics, whose server shows profiles, too")
	}
	problems = append(problems, process.CheckLog(o.verbosity, o.logFormat)...)
	configMap := func(flag, value string) {
		if !isNamespacedName(value) {
			invalid(flag, value, "must be NAMESPACE/NAME")
		}
	}
	configMap("controller-configmap", o.configMap)
	configMap("scheduler-configmap", o.schedulerConfigMap)
	if _, err := o.selected(); err != nil {
		problems = append(problems, err)
	}
	problems = append(problems, o.election.Validate()...)
	return errors.Join(problems...)
}

// isNamespacedName reports whether a text is NAMESPACE/NAME.
func isNamespacedName(text string) bool {
	key := keyOf(text)
	return key.Namespace != "" && key.Name != "" && !strings.Contains(key.Name, "/")
}

// The flag that tells where the scheduler's configuration is, which controllers and webhooks go by.
const (
	defaultSchedulerConfigMap = "volcano-system/volcano-scheduler-configmap"
	schedulerConfigMapUsage   = "NAMESPACE/NAME of the ConfigMap with the scheduler's configuration, which says whether it admits workloads. " +
		"It need not exist: then the default is in force."
)

// keyOf is the object that NAMESPACE/NAME names.
func keyOf(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// volcanoFlags are flags of Volcano's controller manager that change nothing here.
var volcanoFlags = []process.Superseded{
	{Name: "max-requeue-num", Placeholder: "15", Reason: "what fails is tried again for as long as it is there, with growing delays"},
	{Name: "detection-period-of-dependson-task", Placeholder: "100ms", Reason: "a task is looked at when the one it waits for changes"},
	{Name: "scheduler-configs", Reason: noShards},
	{Name: "shard-sync-period", Placeholder: "1m0s", Reason: noShards},
	{Name: "enable-node-event-trigger", Placeholder: "true", Reason: noShards},
	{Name: "sharding-configmap", Reason: noShards},
	{Name: "sharding-configmap-namespace", Reason: noShards},
	{Name: "ca-cert-file", Reason: plain},
	{Name: "tls-cert-file", Reason: plain},
	{Name: "tls-private-key-file", Reason: plain},
}

const (
	plain    = "metrics and health are served by HTTP"
	noShards = "nodes are not divided among schedulers"
)

// volcanoOnly are controllers of Volcano that do not exist here. They may be named: leaving one out is what is done
// anyway, and asking for one is told to have no effect.
var volcanoOnly = []string{"sharding-controller", "colocation-config-controller", "colocationconfig-controller"}

// missing says which controllers are asked for that only Volcano has, one sentence each.
func (o *options) missing() []string {
	var sentences []string
	for _, entry := range o.controllers {
		if name := strings.TrimPrefix(entry, "+"); slices.Contains(volcanoOnly, strings.ToLower(name)) {
			sentences = append(sentences, fmt.Sprintf("--controllers=%s has no effect: there is no such controller here", name))
		}
	}
	return sentences
}

// selected returns the names of the controllers that --controllers asks for. Capitals do not count: Volcano writes
// hyperNode-controller.
func (o *options) selected() (map[string]bool, error) {
	chosen := map[string]bool{}
	if slices.Contains(o.controllers, "*") {
		for _, name := range controllerNames {
			chosen[name] = true
		}
	}
	var problems []error
	for _, entry := range o.controllers {
		name, isLeftOut := strings.CutPrefix(entry, "-")
		name = strings.ToLower(strings.TrimPrefix(name, "+"))
		switch {
		case entry == "*" || slices.Contains(volcanoOnly, name):
		case !slices.Contains(controllerNames, name):
			problems = append(problems, fmt.Errorf("--controllers=%s: there is no controller %q; there are %s",
				strings.Join(o.controllers, ","), name, strings.Join(controllerNames, ", ")))
		default:
			chosen[name] = !isLeftOut
		}
	}
	// If only controllers of Volcano's are asked for, none of them runs, and the log says so.
	if len(problems) == 0 && len(o.missing()) == 0 && !slices.Contains(slices.Collect(maps.Values(chosen)), true) {
		problems = append(problems, fmt.Errorf("--controllers=%s: no controller would run; there are %s",
			strings.Join(o.controllers, ","), strings.Join(controllerNames, ", ")))
	}
	return chosen, errors.Join(problems...)
}

// controllerOptions translates the flags for the controllers. They are valid.
func (o *options) controllerOptions() (controllers.Options, error) {
	chosen, err := o.selected()
	result := controllers.Options{
		SchedulerNames:          o.schedulerNames,
		InheritOwnerAnnotations: o.inheritOwnerAnnotations,
		YuniKornLabels:          o.yunikornLabels,
		DefaultQueue:            o.defaultQueue,
		DiscoveryConfigMap:      keyOf(o.configMap),
		SchedulerConfigMap:      keyOf(o.schedulerConfigMap),
		ShortestCronJobInterval: o.cronJobInterval,

		AllowUncheckedQueueCommands: o.allowUncheckedCommands,
	}
	if chosen[job.Name] {
		result.JobWorkers = o.jobWorkers
	}
	if chosen[podgroup.Name] {
		result.PodGroupWorkers = o.podGroupWorkers
	}
	if chosen[queue.Name] {
		result.QueueWorkers = o.queueWorkers
	}
	if chosen[jobflow.Name] {
		result.JobFlowWorkers = jobFlowWorkers
	}
	if chosen[jobtemplate.Name] {
		result.JobTemplateWorkers = jobTemplateWorkers
	}
	result.HyperNodes = chosen[hypernode.Name]
	if chosen[cronjob.Name] {
		result.CronJobWorkers = o.cronJobWorkers
	}
	if chosen[workload.Name] {
		result.WorkloadWorkers = workloadWorkers
	}
	if chosen[garbagecollector.Name] {
		result.GarbageWorkers = o.garbageWorkers
	}
	return result, err
}
