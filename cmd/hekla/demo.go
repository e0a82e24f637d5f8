package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/demo"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/apis/bounds"
)

// newDemoCommand returns `hekla demo`.
func newDemoCommand() *cobra.Command {
	var where place
	command := &cobra.Command{
		Use:   "demo",
		Short: "Bring up a local cluster and watch gangs wait, start and be evicted",
		Long: `Starts a local cluster with two nodes, as hekla up does, submits the jobs of the folder example, adds a node
in the middle, and shows what happens: drawn again in place on a terminal, else line by line. Then one gang is evicted
for another, and hekla why says of it why it waits, who evicted it and when it starts. That takes about a minute once
the Kubernetes programs are built. The cluster stays, for you to play with, until hekla down.

A cluster that runs already is used as it is, and gets one node more. Evictions are switched on in its configuration,
unless that is neither the default nor that of a demo before. The jobs are in the namespace ` + demo.Namespace + `; those
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
			if err := sayWhy(command.Context(), command.OutOrStdout(), cluster, show.Waits()); err != nil {
				return err
			}
			return sayWhatNext(command.Context(), command.OutOrStdout(), cluster, which, show.Waits())
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
	typed, _ := typedAs(os.Args[0])
	return strings.Join(append([]string{typed, subcommand}, arguments...), " ")
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

// patience is how long the scheduler may take to know when a job starts, which it works out between cycles.
const patience = 20 * time.Second

// sayWhy asks the scheduler about a job, as its user would, and says the answer once it knows when the job starts.
func sayWhy(ctx context.Context, output io.Writer, cluster *localcluster.Cluster, job string) error {
	question := []string{os.Args[0], "why", "vcjob/" + job, "--namespace=" + demo.Namespace}
	ask := func(output io.Writer, flags ...string) error {
		program, _ := newProgram(slices.Concat(question, []string{"--kubeconfig=" + cluster.KubeconfigPath()}, flags),
			genericiooptions.IOStreams{Out: output, ErrOut: io.Discard})
		return program.ExecuteContext(ctx)
	}
	for ends := time.Now().Add(patience); ; {
		var answer bytes.Buffer
		var reply api.Reply[api.Job]
		err := ask(&answer, "--output=json")
		if err == nil {
			err = bounds.UnmarshalJSON(answer.Bytes(), &reply)
		}
		isKnown := err == nil && reply.Answer.ETA != nil && reply.Answer.ETA.Earliest != nil
		if !isKnown && time.Now().Before(ends) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Second):
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("ask the scheduler about job %s: %w", job, err)
		}
		break
	}
	if _, err := fmt.Fprintf(output, "\n$ %s\n", strings.Join(question, " ")); err != nil {
		return err
	}
	return ask(output)
}

// sayWhatNext says what can be done with the cluster now.
func sayWhatNext(ctx context.Context, output io.Writer, cluster *localcluster.Cluster, which []string, job string) error {
	var text strings.Builder
	page, err := pageAddress(ctx, cluster)
	if err != nil {
		return err
	}
	if page != "" {
		fmt.Fprintf(&text, "\nThe same on the web page:\n\n  %s\n", page)
	}
	text.WriteString("\nThe cluster goes on running. Try three commands:\n\n")
	fmt.Fprintf(&text, "  export KUBECONFIG=%s\n", cluster.KubeconfigPath())
	if kubectl := cluster.Kubectl(); kubectl != "" {
		fmt.Fprintf(&text, "  alias kubectl=%s\n", kubectl)
	}
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for _, row := range [][2]string{
		{fmt.Sprintf("%s why vcjob/%s -n %s -w", os.Args[0], job, demo.Namespace), "how it goes on, until it starts"},
		{os.Args[0] + " try -f example/01-gang-job.yaml", "what would happen, without doing it"},
		{os.Args[0] + " jobs -A -o wide", "all jobs, and what they wait for"},
	} {
		_, _ = fmt.Fprintf(table, "  %s\t# %s\n", row[0], row[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n%s stops the cluster and removes it.\n", instruction("down", which))
	_, err = io.WriteString(output, text.String())
	return err
}
