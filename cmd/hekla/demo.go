package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hekla.sh/hekla/internal/demo"
	"hekla.sh/hekla/internal/localcluster"
)

// newDemoCommand returns `hekla demo`.
func newDemoCommand() *cobra.Command {
	var where place
	command := &cobra.Command{
		Use:   "demo",
		Short: "Bring up a local cluster and watch gangs wait and start",
		Long: `Starts a local cluster with two nodes, as hekla up does, submits the jobs of the folder example, adds a node
in the middle, and shows what happens: drawn again in place on a terminal, else line by line. It takes less than a
minute once the Kubernetes programs are built. The cluster stays, for you to play with, until hekla down.

A cluster that runs already is used as it is, and gets one node more. The jobs are in the namespace ` + demo.Namespace + `; those
of a demo before are removed.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			which := given(command, "name", "dir")
			cluster, err := clusterForDemo(command, &where, which)
			if err != nil {
				return err
			}
			show, err := demo.New(cluster, command.OutOrStdout())
			if err != nil {
				return err
			}
			err = show.Run(command.Context())
			if errors.Is(err, context.Canceled) {
				err = errors.New("interrupted")
			}
			if err != nil {
				return fmt.Errorf("%w\nThe cluster goes on running. %s stops it", err, instruction("down", which))
			}
			return sayWhatNext(command.OutOrStdout(), cluster, which)
		},
	}
	where.addFlags(command)
	return command
}

// given repeats those of some flags that were given.
func given(command *cobra.Command, flags ...string) []string {
	var arguments []string
	for _, name := range flags {
		if flag := command.Flag(name); flag.Changed {
			arguments = append(arguments, "--"+name+"="+flag.Value.String())
		}
	}
	return arguments
}

// instruction is what to type for a subcommand, as this execution was typed.
func instruction(subcommand string, arguments []string) string {
	return strings.Join(append([]string{os.Args[0], subcommand}, arguments...), " ")
}

// clusterForDemo brings a cluster up as hekla up does: a new one has two nodes, one that is there stays as it is.
func clusterForDemo(command *cobra.Command, where *place, which []string) (*localcluster.Cluster, error) {
	ctx, progress := command.Context(), command.ErrOrStderr()
	dir, unlock, err := where.lock(ctx, progress)
	if err != nil {
		return nil, err
	}
	_, err = localcluster.Open(dir)
	unlock()
	if errors.Is(err, fs.ErrNotExist) {
		which = append(slices.Clone(which), "--nodes=2")
	} else if err != nil {
		return nil, err
	}
	up := newUpCommand()
	up.SilenceErrors, up.SilenceUsage = true, true
	up.SetArgs(which)
	up.SetErr(progress)
	up.SetOut(io.Discard) // where everything is, is said at the end
	if err := up.ExecuteContext(ctx); err != nil {
		return nil, err
	}
	return localcluster.Open(dir)
}

// sayWhatNext says what can be done with the cluster now.
func sayWhatNext(output io.Writer, cluster *localcluster.Cluster, which []string) error {
	kubectl := cluster.Kubectl()
	if kubectl == "" {
		kubectl = "kubectl"
	}
	var text strings.Builder
	text.WriteString("\nThe cluster goes on running. Try it:\n\n")
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range [][2]string{
		{"export KUBECONFIG=" + cluster.KubeconfigPath(), ""},
		{"alias kubectl=" + kubectl, ""},
		{"kubectl get vcjob,queue -A", "what there is"},
		{"kubectl apply -f example/01-gang-job.yaml", "a job of your own"},
		{"kubectl -n volcano-system edit configmap volcano-scheduler-configmap", "what the scheduler does; in force at once"},
		{instruction("up", append(slices.Clone(which), "--nodes=5")), "more nodes, or fewer"},
		{instruction("down", which), "stop it and remove it"},
	} {
		if row[1] == "" {
			_, _ = fmt.Fprintf(table, "  %s\n", row[0])
		} else {
			_, _ = fmt.Fprintf(table, "  %s\t# %s\n", row[0], row[1])
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(output, text.String())
	return err
}
