package plugins

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// parse reads arguments in the form of Go's flag package, which is what manifests use: --name=value, -name=value, or
// the value as an argument of its own.
func parse(arguments []string, declare func(*flag.FlagSet)) error {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	declare(flags)
	err := flags.Parse(arguments)
	if err == nil && flags.NArg() > 0 {
		// Not quoted: it may be a private key gone astray.
		err = fmt.Errorf("argument %d does not begin with --", len(arguments)-flags.NArg()+1)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, flag.ErrHelp) {
		err = errors.New("help cannot be asked for here")
	}
	var known []string
	flags.VisitAll(func(argument *flag.Flag) { known = append(known, "--"+argument.Name) })
	if len(known) == 0 {
		return fmt.Errorf("%w; the plugin takes no arguments", err)
	}
	return fmt.Errorf("%w; the arguments are %s", err, strings.Join(known, ", "))
}

// portInRange returns an error if the number cannot be a port.
func portInRange(argument string, port int) error {
	if messages := validation.IsValidPortNum(port); len(messages) > 0 {
		return fmt.Errorf("--%s is %d: %s", argument, port, messages[0])
	}
	return nil
}
