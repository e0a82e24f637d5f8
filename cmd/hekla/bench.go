package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/benchmark"
	"hekla.sh/hekla/internal/benchmark/jobs"
	"hekla.sh/hekla/internal/benchmark/latency"
	"hekla.sh/hekla/internal/benchmark/restart"
	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/internal/benchmark/workloads"
	"hekla.sh/hekla/internal/localcluster"
)

// What is measured by default, and with --quick.
var (
	defaultShapes = []string{"5000x1", "50x100", "500x10", "1x5000"}
	quickShapes   = []string{"1000x1", "10x100", "100x10", "1x1000"}
)

func newBenchCommand() *cobra.Command {
	var options benchmark.Options
	var shapes []string
	var isQuick bool
	command := benchmarkCommand{
		use:   "bench",
		short: "Measure how many pods a second are bound, compared with a loop of concurrent Binding requests",
		long: `Starts a fresh local cluster and lets two contenders bind pods there, in turn: the yardstick, a loop that sends Binding
requests, as many at once as make it fastest, and decides nothing; and hekla-scheduler, started as hekla up starts it once
all pods are there. How many requests at once make the loop fastest is tried first, on the same cluster. Prints what it
measured, and what was wrong with it if anything was.

A load is written as GANGSxMEMBERS: 50x100 is fifty gangs of a hundred pods. The default of four loads with three runs
takes some fifteen minutes, --quick about two.`,
		example: `  hekla bench --quick -o text
  hekla bench --nodes 5000 --shapes 200x100 --runs 1 -o text
  hekla bench latency --rates 25,50,100 -o text`,
		component: "scheduler", bed: &options.Options, wrong: podsAreWrong,
		read: func(flags *pflag.FlagSet) (err error) {
			if isQuick && !flags.Changed("shapes") {
				shapes = quickShapes
			}
			if isQuick && !flags.Changed("runs") {
				options.Runs = 1
			}
			if options.Shapes, err = benchmark.ParseShapes(shapes); err != nil {
				return fmt.Errorf("--shapes: %w", err)
			}
			return nil
		},
		run: func(command *cobra.Command) (benchReport, error) { return benchmark.Run(command.Context(), options) },
	}.build()
	flags := command.Flags()
	flags.IntVar(&options.Nodes, "nodes", 1000, "number of nodes")
	flags.StringSliceVar(&shapes, "shapes", defaultShapes, "loads, each as GANGSxMEMBERS")
	flags.IntVar(&options.Runs, "runs", 3, "how often both are measured with each load; which of them begins alternates")
	flags.BoolVar(&isQuick, "quick", false, "use a fifth of the pods and one run, unless --shapes or --runs say otherwise")
	addLoadFlags(flags, &options.Options, &options.Queues, &options.Backlog)
	command.AddCommand(newBenchLatencyCommand(), newBenchJobsCommand(), newBenchRestartCommand(), newBenchWorkloadsCommand())
	return command
}

func newBenchLatencyCommand() *cobra.Command {
	var options latency.Options
	command := benchmarkCommand{
		use:   "latency",
		short: "Measure how long pods that arrive at a steady rate wait for their nodes",
		long: `Starts a fresh local cluster with hekla-scheduler, started as hekla up starts it, and creates gangs of pods at steady rates, one
rate after the other. Prints how long the pods were there before they had a node, as a watch of the benchmark shows it, and
the CPU time that the scheduler took for each pod.`,
		component: "scheduler", bed: &options.Options, wrong: podsAreWrong,
		run: func(command *cobra.Command) (benchReport, error) { return latency.Run(command.Context(), options) },
	}.build()
	flags := command.Flags()
	flags.IntVar(&options.Nodes, "nodes", 1000, "number of nodes")
	flags.IntSliceVar(&options.Rates, "rates", []int{25, 50, 100, 200}, "pods created per second, one rate after the other")
	flags.DurationVar(&options.Duration, "duration", 20*time.Second, "how long pods are created at each rate")
	flags.IntVar(&options.Gang, "gang", 1, "number of pods in a gang")
	addLoadFlags(flags, &options.Options, &options.Queues, &options.Backlog)
	return command
}

func newBenchJobsCommand() *cobra.Command {
	var options jobs.Options
	command := benchmarkCommand{
		use:   "jobs",
		short: "Measure how many pods a second are made of Jobs, compared with a loop of concurrent requests",
		long: `Starts a fresh local cluster without nodes and lets two contenders make the pods of Jobs there, in turn: the yardstick, a
loop that creates PodGroups and pods, as many at once as make it fastest, and decides nothing; and hekla-controllers, started
as hekla up starts them once all Jobs are there. No scheduler runs: the benchmark admits every PodGroup when it sees it.`,
		component: "controllers", bed: &options.Options, wrong: "a Job has not the pods that it must have",
		run: func(command *cobra.Command) (benchReport, error) { return jobs.Run(command.Context(), options) },
	}.build()
	flags := command.Flags()
	flags.IntVar(&options.Jobs, "jobs", 1000, "number of Jobs in each measurement")
	flags.IntVar(&options.Pods, "pods", 10, "number of pods of each Job")
	flags.IntVar(&options.Runs, "runs", 3, "how often both are measured; which of them begins alternates")
	return command
}

func newBenchWorkloadsCommand() *cobra.Command {
	var options workloads.Options
	command := benchmarkCommand{
		use:   "workloads",
		short: "Measure how many Workloads of Jobs are admitted a second, compared with a loop of concurrent requests",
		long: `Starts a fresh local cluster and lets two contenders admit Workloads there, in turn: the yardstick, a loop that sends three
requests for each Workload, as many at once as make it fastest, and decides nothing; and hekla-scheduler, started as hekla up
starts it, when hekla-controllers has made the Workloads of all Jobs. The Jobs get no pods: no controller manages them.`,
		component: "scheduler", bed: &options.Options, wrong: "a Job was not started",
		run: func(command *cobra.Command) (benchReport, error) {
			controllers, err := whatIsMeasured(command.Context(), "controllers")
			if err != nil {
				return nil, err
			}
			options.Controllers = *controllers
			return workloads.Run(command.Context(), options)
		},
	}.build()
	flags := command.Flags()
	flags.IntVar(&options.Nodes, "nodes", 1000, "number of nodes")
	flags.IntVar(&options.Workloads, "workloads", 2000, "number of Jobs in each measurement")
	flags.IntVar(&options.Runs, "runs", 3, "how often both are measured; which of them begins alternates")
	return command
}

func newBenchRestartCommand() *cobra.Command {
	var options restart.Options
	command := benchmarkCommand{
		use:   "restart",
		short: "Measure how soon a restarted scheduler binds pods in a full cluster",
		long: `Starts a fresh local cluster with hekla-scheduler, started as hekla up starts it, and lets it bind pods. Then it is stopped, a
gang arrives, and it is started again. Prints how long after the start of the process the first and the last pod of the gang
had a node, compared with the time in which a client lists nodes, pods, PodGroups and Queues.`,
		component: "scheduler", bed: &options.Options, wrong: podsAreWrong,
		run: func(command *cobra.Command) (benchReport, error) { return restart.Run(command.Context(), options) },
	}.build()
	flags := command.Flags()
	flags.IntVar(&options.Nodes, "nodes", 5000, "number of nodes")
	flags.IntVar(&options.Pods, "pods", 20000, "number of pods that have nodes before")
	flags.IntVar(&options.Gang, "gang", 100, "number of pods in a gang")
	flags.IntVar(&options.Runs, "runs", 3, "how often the scheduler is restarted")
	flags.BoolVar(&options.Bound, "bound", false, "create the pods with their nodes, so that the scheduler need not place them first")
	return command
}

// podsAreWrong is what the benchmarks of bindings look for.
const podsAreWrong = "a pod, gang or node is not as it must be"

// benchmarkCommand is what the commands differ in, besides their flags.
type benchmarkCommand struct {
	use, short, long, example string
	component                 string                     // which is measured
	bed                       *testbed.Options           // is completed before run
	wrong                     string                     // what makes a report worthless
	read                      func(*pflag.FlagSet) error // reads the flags that are more than values, nil if there are none
	run                       func(*cobra.Command) (benchReport, error)
}

// build returns the command, which measures and writes the report.
func (c benchmarkCommand) build() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: c.use, Short: c.short, Example: c.example, Args: cobra.NoArgs,
		Long: c.long + `

Nothing else should run on the machine meanwhile; the report says what did.

Exit codes: 0 measured and right, 1 not measured, or ` + c.wrong + ".",
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "json" && output != "text" {
				return fmt.Errorf("--output %q: it must be json or text", output)
			}
			if c.read != nil {
				if err := c.read(command.Flags()); err != nil {
					return err
				}
			}
			measured, err := whatIsMeasured(command.Context(), c.component)
			if err != nil {
				return err
			}
			c.bed.Component, c.bed.Progress = *measured, command.ErrOrStderr()
			report, err := c.run(command)
			if err != nil {
				return err
			}
			return writeReport(command.OutOrStdout(), report, output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "json", "json or text")
	return command
}

// addLoadFlags adds what the benchmarks of the scheduler have in common.
func addLoadFlags(flags *pflag.FlagSet, bed *testbed.Options, queues, backlog *int) {
	flags.IntVar(queues, "queues", 1, "number of queues that the gangs are in, in turn")
	flags.IntVar(backlog, "backlog", 0, "number of pods that wait besides, and fit no node")
	flags.BoolVar(&bed.PodsRun, "kwok-pods", false, "let kwok make bound pods Running, which takes from the API server as kubelets would")
}

// whatIsMeasured finds a component and asks it for its version.
func whatIsMeasured(ctx context.Context, name string) (*testbed.Component, error) {
	selected, err := selectComponents([]string{name})
	if err != nil {
		return nil, err
	}
	c := selected[0]
	path, err := c.path()
	if err != nil {
		return nil, err
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	manifests, err := installer(false)
	if err != nil {
		return nil, err
	}
	return &testbed.Component{
		Version:        strings.TrimSpace(strings.TrimPrefix(string(said), c.executable())),
		Manifests:      manifests,
		ServiceAccount: types.NamespacedName{Namespace: systemNamespace, Name: c.serviceAccount},
		Start: func(ctx context.Context, cluster *localcluster.Cluster) (*localcluster.Process, error) {
			if _, err := c.run(ctx, cluster); err != nil {
				return nil, err
			}
			processes := cluster.Processes()
			return processes[slices.IndexFunc(processes, func(p *localcluster.Process) bool { return p.Name == c.process() })], nil
		},
	}, nil
}

// benchReport is what a benchmark has found.
type benchReport interface {
	WriteText(io.Writer) error
	Wrong() []string
}

// writeReport writes the report, and fails if it holds violations.
func writeReport(out io.Writer, report benchReport, output string) error {
	if err := writeAs(out, output, report, report.WriteText); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if count := len(report.Wrong()); count > 0 {
		return fmt.Errorf("the numbers count for nothing: the report holds %d violations", count)
	}
	return nil
}
