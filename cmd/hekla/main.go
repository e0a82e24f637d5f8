// Command hekla is what a person uses: jobs and queues of a cluster as with vcctl, a local cluster in one command, and
// what-if questions without any cluster. Linked under another name it is vcctl, a plugin of kubectl, or a Slurm-like
// program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	program, called := newProgram(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	if err := program.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", called, cli.Explain(err))
		os.Exit(exitCode(err))
	}
}

// newCommand returns the root with what is hekla's own; each subcommand has a file of its own.
func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "hekla",
		Short:         "Hekla schedules batch jobs on Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newUpCommand(), newDownCommand(), newDemoCommand(), newSimulateCommand(), newAuditCommand(), newChaosCommand(), newBenchCommand(), newImportCommand(), newSuperviseCommand(), newManCommand())
	return command
}

// exitCode returns 1 unless the error asks for another code with a method ExitCode.
func exitCode(err error) int {
	var coder interface{ ExitCode() int }
	if errors.As(err, &coder) {
		return coder.ExitCode()
	}
	return 1
}
