package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// PointToHelp has the errors about wrong arguments and flags of a command, and of those below it, end in the command that shows how it is used.
func PointToHelp(command *cobra.Command) {
	pointed := func(c *cobra.Command, err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("%w; %q shows how it is used", err, c.CommandPath()+" --help")
	}
	command.SetFlagErrorFunc(pointed)
	if check := command.Args; check != nil {
		command.Args = func(c *cobra.Command, arguments []string) error { return pointed(c, check(c, arguments)) }
	}
	for _, below := range command.Commands() {
		PointToHelp(below)
	}
}
