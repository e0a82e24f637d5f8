package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// PointToHelp ends the errors about wrong arguments and flags of a command, and of those below it, with the command
// that shows how it is used.
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

// Explain adds to the error that there is no such command where the commands are listed: cobra finds that out before
// anything is run.
func Explain(err error) error {
	text := err.Error()
	if !strings.HasPrefix(text, "unknown command ") || strings.Contains(text, "--help") {
		return err
	}
	_, program, _ := strings.Cut(strings.SplitN(text, "\n", 2)[0], " for ")
	return fmt.Errorf("%s\n%s --help lists the commands", strings.TrimRight(text, "\n"), strings.Trim(program, `"`))
}
