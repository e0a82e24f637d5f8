package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// simulateFlags are the flags of `hekla simulate`.
type simulateFlags struct {
	files     []string
	config    string
	now       string
	output    string
	cycles    int
	maxCycles int
	stable    bool
	grace     bool
	explain   bool
	names     []string
}

func newSimulateCommand() *cobra.Command {
	f := &simulateFlags{}
	command := &cobra.Command{
		Use:   "simulate -f PATH…",
		Short: "Say what the scheduler would decide for these manifests, without any cluster",
		Long: `Runs the real scheduler against the cluster that the manifests describe, with a clock of its own, and prints what it
decides. PATH is a file, a folder or - for the standard input; what kubectl get -o yaml prints is accepted as it is. The
scheduler's configuration is read from a ConfigMap with the key ` + manifests.ConfigurationKey + ` among the manifests, or from
--config.

Exit codes: 0 done, 1 something was not understood, 3 not stable within --max-cycles.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return simulate(command, f) },
	}
	flags := command.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "file, folder or - with manifests (may be repeated)")
	flags.StringVar(&f.config, "config", "", "file with the scheduler's configuration, or with its ConfigMap; wins over one among the manifests")
	flags.IntVar(&f.cycles, "cycles", 1, "how many cycles to run")
	flags.BoolVar(&f.stable, "until-stable", false, "run until two cycles in a row decide nothing")
	flags.IntVar(&f.maxCycles, "max-cycles", 1000, "the most cycles with --until-stable")
	flags.StringVar(&f.now, "now", "", "when it begins, RFC 3339 (default: the newest creationTimestamp of the input)")
	flags.BoolVar(&f.grace, "grace", false, "pods that are evicted or being deleted live out their grace period")
	flags.BoolVar(&f.explain, "explain", false, "with -o json, add why each job waits at the end, and what was decided of it")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	flags.StringArrayVar(&f.names, "scheduler-name", []string{schedulingv1beta1.DefaultSchedulerName}, "the schedulerName of pods to place (may be repeated)")
	command.MarkFlagsMutuallyExclusive("cycles", "until-stable")
	return command
}

func simulate(command *cobra.Command, f *simulateFlags) error {
	options := simulator.Options{SchedulerNames: f.names, Cycles: f.cycles, UntilStable: f.stable, MaxCycles: f.maxCycles, Grace: f.grace, Explain: f.explain}
	if f.output != "text" && f.output != "json" {
		return fmt.Errorf("--output %q: it must be text or json", f.output)
	}
	if f.explain && f.output != "json" {
		return errors.New("--explain needs --output json")
	}
	if f.cycles < 1 || f.maxCycles < 1 {
		return errors.New("--cycles and --max-cycles must be 1 or more")
	}
	if f.now != "" {
		now, err := time.Parse(time.RFC3339, f.now)
		if err != nil {
			return fmt.Errorf("--now %q: it must be a time such as 2026-03-02T07:00:00Z", f.now)
		}
		options.Now = now
	}
	input, err := manifests.Read(f.files, command.InOrStdin())
	if err != nil {
		return err
	}
	policy, err := simulatedPolicy(input, f.config, command)
	if err != nil {
		return err
	}
	report, err := simulator.Run(input, policy, options)
	if err != nil && !errors.Is(err, simulator.ErrNotStable) {
		return err
	}
	write := report.WriteText
	if f.output == "json" {
		write = report.WriteJSON
	}
	if problem := write(command.OutOrStdout()); problem != nil {
		return problem
	}
	if err != nil {
		return notStable{fmt.Errorf("%w within %d cycles", err, f.maxCycles)}
	}
	return nil
}

// notStable makes the exit code 3.
type notStable struct{ error }

func (notStable) ExitCode() int { return 3 }

// simulatedPolicy is what the configuration says: that of the file, else that among the manifests, else the default.
func simulatedPolicy(input *manifests.Input, file string, command *cobra.Command) (*framework.Policy, error) {
	registry := scheduler.NewRegistry()
	text, place := []byte(input.Configuration), input.ConfigurationPlace
	if file != "" {
		var err error
		if text, err = manifests.ReadConfiguration(file); err != nil {
			return nil, err
		}
		place = file
	}
	if len(text) == 0 && file == "" {
		return registry.Build(conf.Default(registry.Catalogue()))
	}
	configuration, err := conf.Parse(text, registry.Catalogue())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	for _, notice := range configuration.Notices {
		fmt.Fprintf(command.ErrOrStderr(), "%s: %s: %s\n", command.Root().CommandPath(), place, notice)
	}
	return registry.Build(configuration)
}
