package process

import (
	"fmt"

	"github.com/spf13/cobra"
)

// NoArguments refuses what is no flag, except a redirection that no shell has seen: the manifests of Volcano have it.
func NoArguments(_ *cobra.Command, arguments []string) error {
	for _, argument := range arguments {
		if argument != "2>&1" {
			return fmt.Errorf("argument %q is not understood: there are only flags", argument)
		}
	}
	return nil
}
