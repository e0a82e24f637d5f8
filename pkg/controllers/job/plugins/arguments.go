package plugins

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// parse reads arguments in the form of Go's flag package, which is what manifests use: --name=value, -name=value, or the
// value as an argument of its own.
func parse(arguments []string, declare func(*flag.FlagSet)) error {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	declare(flags)
	err := flags.Parse(arguments)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is not an argument: arguments begin with --", flags.Arg(0))
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

// withoutKeys returns the arguments as they may be told to anyone who reads events.
func withoutKeys(arguments []string) []string {
	const secret = privateKeyArgument
	told := slices.Clone(arguments)
	for i, argument := range told {
		name, _, hasValue := strings.Cut(strings.TrimLeft(argument, "-"), "=")
		switch {
		case name != secret:
		case hasValue:
			told[i] = "--" + secret + "=…"
		case i+1 < len(told):
			told[i+1] = "…"
		}
	}
	return told
}
