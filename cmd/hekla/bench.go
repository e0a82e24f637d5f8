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
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/benchmark"
	"hekla.sh/hekla/pkg/localcluster"
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
	return command
}

func bench(command *cobra.Command, options benchmark.Options, output string) error {
	if output != "json" && output != "text" {
		return fmt.Errorf("--output %q: it must be json or text", output)
	}
	selected, err := selectComponents([]string{"scheduler"})
	if err != nil {
		return err
	}
	scheduler := selected[0]
	path, err := scheduler.path()
	if err != nil {
		return err
	}
	said, err := exec.CommandContext(command.Context(), path, "--version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", path, err)
	}
	options.Version = strings.TrimSpace(strings.TrimPrefix(string(said), scheduler.executable()))
	if options.Manifests, err = installer(); err != nil {
		return err
	}
	options.ServiceAccount = types.NamespacedName{Namespace: systemNamespace, Name: scheduler.serviceAccount}
	options.Progress = command.ErrOrStderr()
	options.StartScheduler = func(ctx context.Context, cluster *localcluster.Cluster) (*localcluster.Process, error) {
		if err := scheduler.run(ctx, cluster); err != nil {
			return nil, err
		}
		processes := cluster.Processes()
		return processes[slices.IndexFunc(processes, func(p *localcluster.Process) bool { return p.Name == scheduler.executable() })], nil
	}
	report, err := benchmark.Run(command.Context(), options)
	if err != nil {
		return err
	}
	return writeReport(command.OutOrStdout(), report, output)
}

// writeReport writes the report, and fails if it holds violations.
func writeReport(out io.Writer, report *benchmark.Report, output string) error {
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
	if count := len(report.Violations); count > 0 {
		return fmt.Errorf("the numbers count for nothing: the report holds %d violations", count)
	}
	return nil
}
