package main

import (
	"github.com/spf13/cobra"

	"hekla.sh/hekla/internal/localcluster/supervisor"
)

// superviseName is the command with which hekla up keeps a component running.
const superviseName = "supervise"

// newSuperviseCommand returns the command as which hekla runs in the background of a local cluster. It is not for
// people.
func newSuperviseCommand() *cobra.Command {
	var options supervisor.Options
	command := &cobra.Command{
		Use:    superviseName + " PROGRAM [ARGUMENT...]",
		Short:  "Keep a program of a local cluster running",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			options.Path, options.Arguments, options.Log = arguments[0], arguments[1:], command.ErrOrStderr()
			return supervisor.Run(command.Context(), options)
		},
	}
	command.Flags().StringVar(&options.Name, "name", "", "what the program is called")
	command.Flags().StringVar(&options.Folder, "status", "", "folder that receives its status")
	command.Flags().SetInterspersed(false) // what follows the program is for the program
	return command
}
