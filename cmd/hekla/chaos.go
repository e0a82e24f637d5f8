package main

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"hekla.sh/hekla/internal/chaos"
)

// newChaosCommand returns `hekla chaos`.
func newChaosCommand() *cobra.Command {
	var options chaos.Options
	var output string
	command := &cobra.Command{
		Use:   "chaos",
		Short: "Break what is around the scheduler and the controllers on a local cluster, and check that nothing goes wrong",
		Long: `Starts a fresh local cluster with jobs of several kinds that come and go, and breaks what is around the scheduler and the
controllers meanwhile. Then everything is mended, and it checks: all jobs end, nothing is left of them, nothing is written
at rest, pods never exceeded a quota, and hekla audit finds nothing in the log of the API server. The faults:

` + chaos.DescribeFaults() + `
Which faults happen when follows from --seed. Each is written to standard error, with its time. With --faults none nothing is
broken. Then the heap, the goroutines, the open descriptors and the series of metrics of both programs are read each minute, and
none of them may grow.

Exit codes: 0 no violation, 1 violations, 2 it could not be done.`,
		Example: `  hekla chaos --for 1h -o json
  hekla chaos --for 5m --seed 7 --faults kill,lease
  hekla chaos --for 1h --faults none --jobs 3`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return unreadable{err}
			}
			if options.For <= 0 || options.Jobs <= 0 {
				return unreadable{errors.New("--for and --jobs must be above 0")}
			}
			if err := completeChaos(&options); err != nil {
				return unreadable{err}
			}
			options.Log = command.ErrOrStderr()
			klog.SetLogger(logr.Discard()) // client-go says of each request that fails that it does, and most are to fail
			report, err := chaos.Run(command.Context(), options)
			if err != nil {
				return unreadable{err}
			}
			if err := writeAs(command.OutOrStdout(), output, report, report.WriteText); err != nil {
				return err
			}
			return violatedBy(report.Violations)
		},
	}
	flags := command.Flags()
	flags.DurationVar(&options.For, "for", 2*time.Minute, "how long faults happen; what comes before and after takes minutes more")
	flags.Uint64Var(&options.Seed, "seed", 1, "which faults happen when")
	flags.StringSliceVar(&options.Faults, "faults", nil, "faults that happen, or "+chaos.NoFaults+" (default: all)")
	flags.IntVar(&options.Jobs, "jobs", chaos.DefaultJobs, "how many jobs are unfinished at a time")
	flags.StringVar(&options.Dir, "dir", "", "folder for the cluster, its logs and the audit log (default: a temporary one, which is kept if anything is found)")
	flags.StringVarP(&output, "output", "o", "text", "text or json")
	return command
}

// completeChaos fills in what is installed and started.
func completeChaos(options *chaos.Options) (err error) {
	if options.Manifests, err = installer(false); err != nil {
		return err
	}
	options.Configuration, options.Key = configuration, "volcano-scheduler.conf"
	for _, c := range components {
		if c.lease == "" {
			continue
		}
		if _, err := c.path(); err != nil {
			return err
		}
		options.Components = append(options.Components, chaos.Component{Name: c.process(), Lease: c.lease, BindsPods: c.answers,
			Account: types.NamespacedName{Namespace: systemNamespace, Name: c.serviceAccount}, Start: c.run})
	}
	return nil
}
