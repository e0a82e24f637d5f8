// Command hekla is what a person uses: a local cluster in one command, and what-if questions without any cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "hekla:", err)
		os.Exit(exitCode(err))
	}
}

// newCommand returns the root; each subcommand has a file of its own.
func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "hekla",
		Short:         "Hekla schedules batch jobs on Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newUpCommand(), newDownCommand(), newDemoCommand(), newSimulateCommand(), newBenchCommand())
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
