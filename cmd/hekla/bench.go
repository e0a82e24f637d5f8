package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/benchmark"
	"hekla.sh/hekla/internal/localcluster"
)

func newBenchCommand() *cobra.Command {
	var options benchmark.Options
	var output string
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many pods a second are bound, beside a plain loop of Binding requests",
		Long: `Starts a fresh local cluster and lets two contenders bind pods there, in turn: the yardstick, a plain loop that sends one
Binding request after the other and decides nothing; and hekla-scheduler, started as hekla up starts it once all pods
are there. Prints what it measured, and what was wrong with it if anything was.

Nothing else should run on the machine meanwhile; the report says what did.

Exit codes: 0 measured and right, 1 not measured, or a pod, gang or node is not as it must be.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return bench(command, options, output) },
	}
	flags := command.Flags()
	flags.IntVar(&options.Nodes, "nodes", 1000, "number of nodes")
	flags.IntVar(&options.Pods, "pods", 5000, "number of pods in each measurement")
	flags.IntVar(&options.Gang, "gang", 100, "number of pods in a gang")
	flags.IntVar(&options.Runs, "runs", 3, "how often both are measured; which of them begins alternates")
	flags.BoolVar(&options.PodsRun, "kwok-pods", true, "let bound pods become Running, which takes from the API server in both measurements")
	flags.StringVarP(&output, "output", "o", "json", "json or text")
	command.AddCommand(newBenchJobsCommand())
	return command
}

func newBenchJobsCommand() *cobra.Command {
	var options benchmark.JobOptions
	var output string
	command := &cobra.Command{
		Use:   "jobs",
		Short: "Measure how many pods a second are made of Jobs, beside a plain loop of requests",
		Long: `Starts a fresh local cluster without nodes and lets two contenders make the pods of Jobs there, in turn: the yardstick, a
plain loop that creates one PodGroup or pod after the other and decides nothing; and hekla-controllers, started as hekla
up starts them once all Jobs are there. No scheduler runs: the benchmark admits every PodGroup when it sees it.

Nothing else should run on the machine meanwhile; the report says what did.

Exit codes: 0 measured and right, 1 not measured, or a Job has not the pods that it must have.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return benchJobs(command, options, output) },
	}
	flags := command.Flags()
	flags.IntVar(&options.Jobs, "jobs", 1000, "number of Jobs in each measurement")
	flags.IntVar(&options.Pods, "pods", 10, "number of pods of each Job")
	flags.IntVar(&options.Runs, "runs", 3, "how often both are measured; which of them begins alternates")
	flags.StringVarP(&output, "output", "o", "json", "json or text")
	return command
}

func bench(command *cobra.Command, options benchmark.Options, output string) error {
	measured, err := whatIsMeasured(command.Context(), "scheduler", output)
	if err != nil {
		return err
	}
	options.Version, options.Manifests, options.ServiceAccount = measured.version, measured.manifests, measured.account
	options.Progress, options.StartScheduler = command.ErrOrStderr(), measured.start
	report, err := benchmark.Run(command.Context(), options)
	if err != nil {
		return err
	}
	return writeReport(command.OutOrStdout(), report, output)
}

func benchJobs(command *cobra.Command, options benchmark.JobOptions, output string) error {
	measured, err := whatIsMeasured(command.Context(), "controllers", output)
	if err != nil {
		return err
	}
	options.Version, options.Manifests, options.ServiceAccount = measured.version, measured.manifests, measured.account
	options.Progress, options.StartControllers = command.ErrOrStderr(), measured.start
	report, err := benchmark.RunJobs(command.Context(), options)
	if err != nil {
		return err
	}
	return writeReport(command.OutOrStdout(), report, output)
}

// measuredComponent is the component that a benchmark is about.
type measuredComponent struct {
	version   string
	manifests []*unstructured.Unstructured
	account   types.NamespacedName
	start     func(context.Context, *localcluster.Cluster) (*localcluster.Process, error)
}

func whatIsMeasured(ctx context.Context, name, output string) (*measuredComponent, error) {
	if output != "json" && output != "text" {
		return nil, fmt.Errorf("--output %q: it must be json or text", output)
	}
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
	manifests, err := installer()
	if err != nil {
		return nil, err
	}
	return &measuredComponent{
		version:   strings.TrimSpace(strings.TrimPrefix(string(said), c.executable())),
		manifests: manifests,
		account:   types.NamespacedName{Namespace: systemNamespace, Name: c.serviceAccount},
		start: func(ctx context.Context, cluster *localcluster.Cluster) (*localcluster.Process, error) {
			if err := c.run(ctx, cluster); err != nil {
				return nil, err
			}
			processes := cluster.Processes()
			return processes[slices.IndexFunc(processes, func(p *localcluster.Process) bool { return p.Name == c.executable() })], nil
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
	var err error
	if output == "text" {
		err = report.WriteText(out)
	} else {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if count := len(report.Wrong()); count > 0 {
		return fmt.Errorf("the numbers count for nothing: the report holds %d violations", count)
	}
	return nil
}
