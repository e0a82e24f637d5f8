package app

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/leader"
	"hekla.sh/hekla/internal/metrics"
	"hekla.sh/hekla/internal/process"
	"hekla.sh/hekla/internal/version"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// NewCommand returns the scheduler as a command, with what the extensions add to its actions and plugins. Its context
// is the request to stop in good order.
func NewCommand(extensions ...scheduler.Extension) *cobra.Command {
	o := newOptions()
	command := &cobra.Command{
		Use:   "hekla-scheduler",
		Short: "Place the pods of batch jobs",
		Args:  process.NoArguments,
		// A mistake in the configuration of a server deserves a sentence, not a page of flags.
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if o.showVersion {
				_, err := fmt.Fprintln(command.OutOrStdout(), "hekla-scheduler", version.Version)
				return err
			}
			o.complete()
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(command, scheduler.NewRegistry(extensions...))
		},
	}
	o.addFlags(command.Flags())
	return command
}

// run runs the scheduler until the context ends or it cannot go on; the latter is an error.
func (o *options) run(command *cobra.Command, registry *framework.Registry) error {
	ctx := command.Context()
	logger, err := process.Log(o.verbosity, o.logFormat)
	if err != nil {
		return err
	}
	for _, sentence := range o.ineffective() {
		logger.Info("Warning: " + sentence)
	}
	if o.printConfig && o.schedulerConfigMap == "" {
		return o.printTo(command, o.fileSource(), registry)
	}
	restConfig, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return fmt.Errorf("no way to the API server (--kubeconfig=%q, --master=%q): %w", o.kubeconfig, o.master, err)
	}
	restConfig.UserAgent = "hekla-scheduler/" + version.Version
	clients, err := apiserver.Connect(restConfig, o.qps, o.burst)
	if err != nil {
		return err
	}
	src := o.sourceOn(clients)
	if o.printConfig {
		return o.printTo(command, src, registry)
	}
	process.LeaveCores()
	collectLater()
	return o.schedule(ctx, restConfig, clients, src, registry, logger)
}

// Run runs the scheduler as the command with these flags does, on a connection that the caller has made and with the
// caller's log. It leaves the process as it is, so that there may be several in one.
func Run(ctx context.Context, connection *rest.Config, logger logr.Logger, flags []string, extensions ...scheduler.Extension) error {
	o := newOptions()
	set := pflag.NewFlagSet("hekla-scheduler", pflag.ContinueOnError)
	o.addFlags(set)
	if err := set.Parse(flags); err != nil {
		return err
	}
	o.complete()
	if err := o.validate(); err != nil {
		return err
	}
	clients, err := apiserver.Connect(connection, o.qps, o.burst)
	if err != nil {
		return err
	}
	return o.schedule(ctx, connection, clients, o.sourceOn(clients), scheduler.NewRegistry(extensions...), logger)
}

// sourceOn is where the configuration comes from when there is an API server.
func (o *options) sourceOn(clients *apiserver.Clients) source {
	// A file wins: it is what Volcano's users have.
	if namespace, name, _ := o.configMap(); name != "" && o.schedulerConf == "" {
		return configMap{client: clients.Core, namespace: namespace, name: name}
	}
	return o.fileSource()
}

func (o *options) fileSource() source {
	if o.schedulerConf == "" {
		return noSource{}
	}
	return file{path: o.schedulerConf, poll: filePoll}
}

// printTo prints the configuration that a start would put in force, and what in it has no effect.
func (o *options) printTo(command *cobra.Command, src source, registry *framework.Registry) error {
	out, d, catalogue := command.OutOrStdout(), src.read(command.Context()), registry.Catalogue()
	if d.place == "" {
		_, err := out.Write(conf.Default(catalogue).YAML())
		return err
	}
	if d.problem != nil {
		return fmt.Errorf("%s: %w", d.place, d.problem)
	}
	configuration, err := conf.Parse(d.text, catalogue)
	if err != nil {
		return fmt.Errorf("%s:\n%w", d.place, err)
	}
	if _, err := registry.Build(configuration); err != nil {
		return fmt.Errorf("%s: %w", d.place, err)
	}
	for _, notice := range configuration.Notices {
		fmt.Fprintf(command.ErrOrStderr(), "hekla-scheduler: %s: %s\n", d.place, notice)
	}
	_, err = out.Write(configuration.YAML())
	return err
}

// schedule serves, waits for leadership, and leads.
func (o *options) schedule(ctx context.Context, restConfig *rest.Config, clients *apiserver.Clients, src source,
	registry *framework.Registry, logger logr.Logger) error {
	numbers := metrics.New()
	chosen := &policies{registry: registry, catalogue: registry.Catalogue(), logger: logger.WithName("configuration"),
		judge: numbers, isStrict: o.disableDefaultConf, self: ownPod(ctx, clients.Core)}
	r, err := newRunner(o, clients, src, chosen, numbers, logger)
	if err != nil {
		return err
	}
	isAlive := r.isAlive
	lead := func(ctx context.Context) error { return r.lead(ctx, context.WithoutCancel(ctx)) }
	if o.election.LeaderElect {
		election, err := leader.NewElection(restConfig, o.election.LeaderElectionConfiguration)
		if err != nil {
			return err
		}
		r.leader = election.Leader
		isAlive = func() error {
			if err := election.Check(); err != nil {
				return err
			}
			return r.isAlive()
		}
		lead = func(ctx context.Context) error {
			logger.Info("Waiting for leadership", "candidate", election.Identity(),
				"lease", o.election.ResourceNamespace+"/"+o.election.ResourceName)
			return election.Lead(ctx, func(leading context.Context) error { return r.lead(ctx, leading) })
		}
	}
	if o.enableMetrics || o.enablePprof {
		s, err := o.serveMetrics(restConfig, o.metricsHandler(numbers.Handler()), logger)
		if err != nil {
			return err
		}
		defer s.close()
	}
	if o.enableHealthz {
		s, err := o.serve(o.healthzAddress, healthHandler(isAlive, r.isReady, chosen.warning), logger)
		if err != nil {
			return err
		}
		defer s.close()
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	closeQuestions := o.openQuestions(ctx, clients.Core, r, logger.WithName("answers"), fail)
	logger.Info("Scheduler starts", "version", version.Version, "schedulerNames", o.schedulerNames)
	err = lead(ctx)
	if problem := closeQuestions(); problem != nil {
		err = problem
	}
	if err != nil {
		logger.Error(err, "Scheduler ends")
		return err
	}
	logger.Info("Scheduler ends", "reason", "it was asked to stop")
	return nil
}
